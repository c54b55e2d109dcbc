//! When the warm-up of a window is over.

use super::real_len;

/// Samples in a batch: the 5 of MSER-5.
const BATCH: usize = 5;
/// Batches that are needed before anything can be said.
const LEAST: usize = 4;

/// Where the steady part of a series begins, by MSER-5 (White 1997; Franklin and White 2008): the cut after which the mean of
/// batches of five samples is known best, in samples. `None` where there are too few, where nothing was done, or where the
/// best cut lies in the middle or behind it: then the series is still on its way.
pub(crate) fn steady_from(samples: &[f64]) -> Option<usize> {
    let batches: Vec<f64> =
        samples.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / real_len(BATCH)).collect();
    if batches.len() < LEAST || batches.iter().rev().take(2).any(|rate| *rate <= 0.0) {
        return None;
    }
    // Behind the middle too little is left for its spread to be known.
    let last = batches.len() / 2;
    let cuts = (0..=last).map(|cut| (cut, doubt(batches.get(cut..).unwrap_or_default())));
    let (cut, _) = cuts.min_by(|a, b| a.1.total_cmp(&b.1))?;
    (cut < last).then_some(cut * BATCH)
}

/// The squared standard error of the mean of what is left after a cut.
fn doubt(rest: &[f64]) -> f64 {
    let count = real_len(rest.len());
    let mean = rest.iter().sum::<f64>() / count;
    rest.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (count * count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::real;
    use crate::workload::mix;

    /// Noise of some percent around a level.
    fn noisy(level: f64, place: u64) -> f64 {
        level * (0.95 + 0.1 * real(mix(3, place) >> 32) / real(u64::from(u32::MAX)))
    }

    #[test]
    fn a_rise_is_not_steady_and_its_plateau_is_from_its_start() {
        let rising: Vec<f64> = (0..40).map(|place| f64::from(place) + 1.0).collect();
        assert_eq!(steady_from(&rising), None);
        let risen: Vec<f64> =
            (0..80).map(|place| if place < 20 { 5.0 * real(place) } else { noisy(100.0, place) }).collect();
        let cut = steady_from(&risen).unwrap();
        assert!((15..=30).contains(&cut), "{cut}");
    }

    #[test]
    fn too_little_and_nothing_are_not_steady() {
        assert_eq!(steady_from(&[1.0; 19]), None);
        assert_eq!(steady_from(&[0.0; 60]), None);
        assert_eq!(steady_from(&[&[9.0; 30][..], &[0.0; 10]].concat()), None);
    }

    #[test]
    fn the_verdict_does_not_depend_on_the_scale() {
        for seed in 0..20 {
            let series: Vec<f64> =
                (0..60).map(|place| noisy(if place < 15 { 20.0 } else { 90.0 }, 60 * seed + place)).collect();
            let scaled: Vec<f64> = series.iter().map(|rate| rate * 1e6).collect();
            assert_eq!(steady_from(&series), steady_from(&scaled));
            assert!(steady_from(&series).is_none_or(|cut| cut >= 15));
        }
    }
}
