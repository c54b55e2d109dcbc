//! Whether two series of windows differ, and by how much they would have to.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::estimate::moments;
use super::{Estimate, real_len};

/// The share of true differences that an experiment should find.
const POWER: f64 = 0.8;

/// The comparison of two means.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Comparison {
    /// The second mean over the first.
    pub(crate) ratio: f64,
    /// Its 95 % confidence interval.
    pub(crate) ci95: [f64; 2],
    /// The chance of such a difference between equals.
    pub(crate) p: f64,
    /// The smallest relative difference that windows like these show in four cases of five.
    pub(crate) detectable: f64,
}

/// Compares means of independent samples on the scale of logarithms: ratios matter, and rates are never negative. Welch's t,
/// whose degrees of freedom allow for unequal variances (Welch 1947). `None` with fewer than two samples on a side, or with
/// some that aren't positive.
pub(crate) fn welch(first: &[f64], second: &[f64]) -> Option<Comparison> {
    let (first, second) = (logarithms(first)?, logarithms(second)?);
    let ((a, va), (b, vb)) = (moments(&first)?, moments(&second)?);
    let (na, nb) = (real_len(first.len()), real_len(second.len()));
    if na < 2.0 || nb < 2.0 {
        return None;
    }
    let (ea, eb) = (va / na, vb / nb);
    let freedom = (ea + eb).powi(2) / (ea.powi(2) / (na - 1.0) + eb.powi(2) / (nb - 1.0));
    let freedom = if freedom.is_finite() { freedom } else { na + nb - 2.0 };
    Some(Comparison::of(Estimate { mean: b - a, std_err: (ea + eb).sqrt(), freedom }))
}

/// Compares samples that belong together in pairs, such as windows of one round or of one point: what both share, a server that
/// slows down for instance, cancels out. `None` with fewer than two pairs, or where one isn't positive.
pub(crate) fn paired(first: &[f64], second: &[f64]) -> Option<Comparison> {
    let (first, second) = (logarithms(first)?, logarithms(second)?);
    let differences: Vec<f64> = first.iter().zip(&second).map(|(a, b)| b - a).collect();
    (differences.len() > 1).then_some(())?;
    Estimate::of_independent(&differences).map(Comparison::of)
}

impl Comparison {
    /// From the difference of the logarithms.
    fn of(difference: Estimate) -> Self {
        let half = difference.half_width();
        let t = difference.mean.abs() / difference.std_err;
        let students = StudentsT::new(0.0, 1.0, difference.freedom).ok();
        // The survival function keeps its precision where 1 - cdf has none left.
        let p = students.filter(|_| t.is_finite()).map_or(f64::from(difference.mean == 0.0), |it| 2.0 * it.sf(t));
        let power = students.map_or(0.84, |it| it.inverse_cdf(POWER));
        Self {
            ratio: difference.mean.exp(),
            ci95: [(difference.mean - half).exp(), (difference.mean + half).exp()],
            p: p.clamp(0.0, 1.0),
            detectable: (half + power * difference.std_err).exp_m1(),
        }
    }

    /// Whether the difference is more than chance, at 5 %.
    pub(crate) fn is_different(&self) -> bool {
        self.p < 0.05
    }
}

fn logarithms(samples: &[f64]) -> Option<Vec<f64>> {
    samples.iter().map(|sample| (*sample > 0.0).then(|| sample.ln())).collect()
}

/// The p-values of several comparisons, raised so that the chance of any false difference among them stays that of one (Holm
/// 1979), in their order.
pub(crate) fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> = p.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut raised = Vec::with_capacity(p.len());
    let mut most = 0.0_f64;
    for (rank, (place, p)) in order.into_iter().enumerate() {
        most = most.max((p * real_len(raised.capacity() - rank)).min(1.0));
        raised.push((place, most));
    }
    raised.sort_by_key(|it| it.0);
    raised.into_iter().map(|it| it.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::real;
    use crate::workload::mix;

    #[test]
    fn welch_agrees_with_the_published_example() {
        // Student's sleep data (1908), as exponents: R's t.test gives t = -1.8608, df = 17.776, p = 0.07939.
        let a = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0].map(f64::exp);
        let b = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4].map(f64::exp);
        let welch = welch(&a, &b).unwrap();
        assert!((welch.p - 0.07939).abs() < 1e-3, "{welch:?}");
        assert!((welch.ratio.ln() - 1.58).abs() < 1e-9);
        // Paired: t = -4.0621, df = 9, p = 0.002833, interval 0.70 to 2.46.
        let paired = paired(&a, &b).unwrap();
        assert!((paired.p - 0.002_833).abs() < 1e-5, "{paired:?}");
        assert!((paired.ci95[0].ln() - 0.700_114).abs() < 1e-4 && (paired.ci95[1].ln() - 2.459_886).abs() < 1e-4);
    }

    #[test]
    fn too_little_and_what_has_no_logarithm_is_refused() {
        assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(paired(&[1.0], &[2.0]), None);
        assert_eq!(welch(&[1.0, 0.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn equal_samples_without_spread_are_not_different() {
        assert!(!welch(&[5.0; 3], &[5.0; 3]).unwrap().is_different());
        assert!(welch(&[5.0; 3], &[6.0; 3]).unwrap().is_different());
    }

    #[test]
    fn holm_raises_as_in_the_textbook() {
        let raised = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert!(raised.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{raised:?}");
        assert!(holm(&[]).is_empty());
    }

    /// Normal noise: the sum of twelve uniform numbers, less six.
    fn noisy(level: f64, cv: f64, seed: u64, count: u64) -> Vec<f64> {
        let uniform = |it: u64| real(mix(seed, it) >> 32) / real(u64::from(u32::MAX));
        (0..count)
            .map(|place| level * (1.0 + cv * ((0..12).map(|part| uniform(place * 12 + part)).sum::<f64>() - 6.0)))
            .collect()
    }

    #[test]
    fn equals_are_seldom_called_different_and_the_detectable_difference_is_mostly_found() {
        let (mut false_alarms, mut found) = (0, 0);
        for seed in 0..400 {
            let a = noisy(100.0, 0.02, 2 * seed, 8);
            let same = welch(&a, &noisy(100.0, 0.02, 2 * seed + 1, 8)).unwrap();
            false_alarms += u32::from(same.is_different());
            let other = noisy(103.0, 0.02, 2 * seed + 1, 8);
            found += u32::from(welch(&a, &other).unwrap().is_different());
        }
        assert!((8..=32).contains(&false_alarms), "{false_alarms}");
        assert!(found >= 300, "{found}");
        let [a, b] = [1, 2].map(|seed| noisy(100.0, 0.02, seed, 8));
        let detectable = welch(&a, &b).unwrap().detectable;
        assert!((0.015..0.05).contains(&detectable), "{detectable}");
    }
}
