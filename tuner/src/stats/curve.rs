//! Figures that other tools give for a curve or a run: for comparison, never for a decision.

use std::time::Duration;

use super::real;

/// The knee by Kneedle (Satopää et al. 2011): where the curve, scaled to a unit square, is highest above its diagonal. It depends
/// on where the curve ends, so it decides nothing here. `None` where the curve has no bend: nothing lies above the diagonal.
pub(crate) fn kneedle(curve: &[(f64, f64)]) -> Option<f64> {
    let fold = |pick: fn(&(f64, f64)) -> f64, with: fn(f64, f64) -> f64| curve.iter().map(pick).reduce(with);
    let (left, right) = (fold(|it| it.0, f64::min)?, fold(|it| it.0, f64::max)?);
    let (low, high) = (fold(|it| it.1, f64::min)?, fold(|it| it.1, f64::max)?);
    let above = |(n, x): &(f64, f64)| (x - low) / (high - low) - (n - left) / (right - left);
    let knee = curve.iter().max_by(|a, b| above(a).total_cmp(&above(b)))?;
    (curve.len() > 2 && above(knee) > 0.0).then_some(knee.0)
}

/// APDEX for a threshold T: satisfied requests take up to T and count in full, tolerable ones up to 4T and count half
/// (Apdex Alliance 2007). Failed requests count as frustrated. `None` of no requests.
pub(crate) fn apdex(satisfied: u64, tolerable: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| (real(satisfied) + real(tolerable) / 2.0) / real(all))
}

/// The mean number of requests in flight by Little's law, from their rate and mean time.
pub(crate) fn in_flight(requests_per_s: f64, mean_time: Duration) -> f64 {
    requests_per_s * mean_time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kneedle_gives_the_published_knee() {
        // Figure 2 of the paper, as kneed's documentation has it: the knee of these ten points is at 2 of 9.
        let y = [0.0, 0.19, 0.39, 0.45, 0.52, 0.6, 0.7, 0.8, 0.9, 1.0];
        let curve: Vec<(f64, f64)> = y.into_iter().zip(0..).map(|(y, x)| (f64::from(x), y)).collect();
        assert_eq!(kneedle(&curve), Some(2.0));
    }

    #[test]
    fn kneedle_finds_none_without_a_bend_and_one_at_zero() {
        assert_eq!(kneedle(&[(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(kneedle(&[]), None);
        assert_eq!(kneedle(&[(0.0, 5.0), (1.0, 5.0), (2.0, 4.0)]), Some(0.0));
    }

    #[test]
    fn apdex_counts_the_tolerable_half() {
        // The example of the specification: 60 satisfied and 30 tolerable of 100 make 0.75.
        assert_eq!(apdex(60, 30, 100), Some(0.75));
        assert_eq!(apdex(0, 0, 0), None);
    }

    #[test]
    fn littles_law_gives_requests_in_flight() {
        assert!((in_flight(2000.0, Duration::from_millis(16)) - 32.0).abs() < 1e-9);
    }
}
