//! Confidence intervals of figures that have no formula for one, such as percentiles.

use super::real_len;
use crate::workload::{below, mix};

/// How often the samples are drawn again.
const DRAWS: u64 = 200;

/// The 95 % interval of a statistic over so many independent samples (Efron 1979): it is computed again and again of as many
/// samples drawn with replacement, given by their indexes, and the middle 95 % are kept. Samples are whole windows, since
/// neighbours within one are alike. `None` with fewer than three samples, or where the statistic has no value.
pub(crate) fn bootstrap(samples: usize, seed: u64, statistic: impl Fn(&[usize]) -> Option<f64>) -> Option<[f64; 2]> {
    if samples < 3 {
        return None;
    }
    let draw = |number: u64| -> Vec<usize> {
        let place = |sample: usize| below(mix(mix(seed, number), sample as u64), samples as u64);
        (0..samples).map(|sample| usize::try_from(place(sample)).unwrap_or_default()).collect()
    };
    let mut values: Vec<f64> = (0..DRAWS).map(|number| statistic(&draw(number))).collect::<Option<_>>()?;
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = super::whole(share * (real_len(values.len()) - 1.0));
        values.get(usize::try_from(place).unwrap_or_default()).copied()
    };
    Some([at(0.025)?, at(0.975)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::real;

    #[test]
    fn the_interval_of_a_mean_is_about_two_standard_errors_on_either_side() {
        let samples: Vec<f64> = (0..50).map(|place| real(below(mix(9, place), 1000))).collect();
        let mean = |places: &[usize]| Some(places.iter().map(|place| samples[*place]).sum::<f64>() / 50.0);
        let [lo, hi] = bootstrap(samples.len(), 1, mean).unwrap();
        let estimate = crate::stats::Estimate::of_independent(&samples).unwrap();
        let width = (hi - lo) / (2.0 * estimate.half_width());
        assert!(lo < estimate.mean && estimate.mean < hi && (0.7..1.3).contains(&width), "{width}");
    }

    #[test]
    fn two_samples_say_nothing_and_a_seed_says_the_same_twice() {
        assert_eq!(bootstrap(2, 1, |_| Some(1.0)), None);
        assert_eq!(bootstrap(5, 1, |_| None), None);
        let sum = |places: &[usize]| Some(real_len(places.iter().sum()));
        assert_eq!(bootstrap(9, 4, sum), bootstrap(9, 4, sum));
    }
}
