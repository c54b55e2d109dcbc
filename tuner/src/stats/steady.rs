//! When the warm-up of a window is over.

use super::Estimate;

/// How many buckets are compared at the least.
const HALF: usize = 3;
/// A difference below this share is steady, whatever the noise.
const TOLERANCE: f64 = 0.03;

/// Whether the newest buckets no longer differ from those just before: the means of the last two stretches of three lie
/// within 3 % or two standard errors of each other. A stretch that has done nothing is never steady.
pub(crate) fn is_steady(buckets: &[f64]) -> bool {
    let Some(recent) = buckets.len().checked_sub(2 * HALF).and_then(|from| buckets.get(from..)) else {
        return false;
    };
    let (before, after) = recent.split_at(HALF);
    let (Some(before), Some(after)) = (Estimate::of_independent(before), Estimate::of_independent(after)) else {
        return false;
    };
    let noise = 2.0 * before.std_err.hypot(after.std_err);
    after.mean > 0.0 && (after.mean - before.mean).abs() <= noise.max(TOLERANCE * after.mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_is_not_steady_and_its_plateau_is() {
        let rising = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0];
        assert!(!is_steady(&rising));
        let risen = [10.0, 50.0, 99.0, 101.0, 100.0, 100.0, 99.0, 101.0];
        assert!(is_steady(&risen));
    }

    #[test]
    fn too_little_and_nothing_are_not_steady() {
        assert!(!is_steady(&[1.0; 5]));
        assert!(!is_steady(&[0.0; 12]));
    }
}
