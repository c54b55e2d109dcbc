//! A mean and how well it is known.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{real_len, whole};

/// A mean, its standard error, and the degrees of freedom behind that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) mean: f64,
    /// Zero where there was but one sample: then nothing is known of the error.
    pub(crate) std_err: f64,
    pub(crate) freedom: f64,
}

impl Estimate {
    /// The mean of independent samples; `None` of none.
    pub(crate) fn of_independent(samples: &[f64]) -> Option<Self> {
        let (mean, variance) = moments(samples)?;
        let count = real_len(samples.len());
        Some(Self { mean, std_err: (variance / count).sqrt(), freedom: (count - 1.0).max(1.0) })
    }

    /// The mean of samples in order of time, which may resemble their neighbours: batch means at dyadic sizes, the largest
    /// standard error of those with at least five batches. Neighbours that are alike make single samples look more certain
    /// than they are; batches longer than the likeness show the true error.
    pub(crate) fn of_series(samples: &[f64]) -> Option<Self> {
        let mut best = Self::of_independent(samples)?;
        let mut size = 2;
        while samples.len() / size >= 5 {
            let batches: Vec<f64> =
                samples.chunks_exact(size).filter_map(|batch| moments(batch).map(|it| it.0)).collect();
            if let Some(batched) = Self::of_independent(&batches)
                && batched.std_err > best.std_err
            {
                best = Self { mean: best.mean, ..batched };
            }
            size *= 2;
        }
        Some(best)
    }

    /// Half the width of the 95 % confidence interval.
    pub(crate) fn half_width(&self) -> f64 {
        self.std_err * quantile(self.freedom)
    }

    /// Half the width of the 95 % confidence interval, relative to the mean; `None` where that has no meaning.
    pub(crate) fn relative_error(&self) -> Option<f64> {
        (self.mean > 0.0 && self.std_err > 0.0).then(|| self.half_width() / self.mean)
    }

    /// The 95 % confidence interval, never below zero: rates aren't.
    pub(crate) fn interval(&self) -> [f64; 2] {
        [(self.mean - self.half_width()).max(0.0), self.mean + self.half_width()]
    }
}

/// Mean and unbiased variance; the variance of one sample is 0.
pub(super) fn moments(samples: &[f64]) -> Option<(f64, f64)> {
    if samples.is_empty() {
        return None;
    }
    let count = real_len(samples.len());
    let mean = samples.iter().sum::<f64>() / count;
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    Some((mean, if samples.len() > 1 { squares / (count - 1.0) } else { 0.0 }))
}

/// The 97.5 % quantile of Student's t.
fn quantile(freedom: f64) -> f64 {
    let freedom = real_len(usize::try_from(whole(freedom)).unwrap_or(usize::MAX).max(1));
    StudentsT::new(0.0, 1.0, freedom).map_or(1.96, |students| students.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_mean_and_one_sample_no_error() {
        assert_eq!(Estimate::of_series(&[]), None);
        let one = Estimate::of_series(&[5.0]).unwrap();
        assert_eq!((one.mean, one.interval(), one.relative_error()), (5.0, [5.0, 5.0], None));
    }

    #[test]
    fn the_interval_is_students() {
        // Mean 3, variance 2.5, t(4) = 2.776.
        let estimate = Estimate::of_independent(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let half = 2.776_445 * (2.5_f64 / 5.0).sqrt();
        assert!((estimate.half_width() - half).abs() < 1e-4, "{estimate:?}");
    }

    #[test]
    fn likeness_of_neighbours_widens_the_interval() {
        let slow: Vec<f64> = (0..80).map(|place| if (place / 8) % 2 == 0 { 90.0 } else { 110.0 }).collect();
        let fast: Vec<f64> = (0..80).map(|place| if place % 2 == 0 { 90.0 } else { 110.0 }).collect();
        let error = |samples: &[f64]| Estimate::of_series(samples).unwrap().std_err;
        assert!(error(&slow) > 2.0 * error(&fast), "{} {}", error(&slow), error(&fast));
    }

    #[test]
    fn an_interval_of_a_rate_is_not_negative() {
        let estimate = Estimate::of_independent(&[0.0, 10.0]).unwrap();
        assert!(estimate.interval()[0] >= 0.0);
    }
}
