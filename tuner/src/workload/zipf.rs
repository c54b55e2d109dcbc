//! Zipf's distribution: a few are asked for much more than the rest.

use crate::stats::{real, whole};

/// The exponent: that of most key-value benchmarks.
const EXPONENT: f64 = 0.99;

/// Numbers below a count of which the k-th is drawn in proportion to 1 / (k + 1)^0.99, in constant time and without a table:
/// rejection-inversion (Hörmann and Derflinger 1996).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Zipf {
    count: f64,
    /// The integral of the hat at its ends.
    first: f64,
    last: f64,
}

impl Zipf {
    /// Over so many items; at least one.
    pub(crate) fn new(count: u64) -> Self {
        let count = real(count.max(1));
        Self { count, first: integral(1.5) - 1.0, last: integral(count + 0.5) }
    }

    /// A number below the count, from a source of numbers between 0 and 1.
    pub(crate) fn sample(&self, mut unit: impl FnMut() -> f64) -> u64 {
        loop {
            let under = self.last + unit() * (self.first - self.last);
            let x = inverse(under);
            let k = x.round().clamp(1.0, self.count);
            if under >= integral(k + 0.5) - k.powf(-EXPONENT) {
                return whole(k) - 1;
            }
        }
    }
}

/// The integral of x^-0.99, and its inverse.
fn integral(x: f64) -> f64 {
    x.powf(1.0 - EXPONENT) / (1.0 - EXPONENT)
}

fn inverse(area: f64) -> f64 {
    (area * (1.0 - EXPONENT)).powf(1.0 / (1.0 - EXPONENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::mix;

    #[test]
    fn shares_are_those_of_the_law() {
        let (zipf, times) = (Zipf::new(1000), 200_000_u64);
        let mut counts = vec![0_u64; 1000];
        let mut number = 0;
        for _ in 0..times {
            let chosen = zipf.sample(|| {
                number += 1;
                real(mix(3, number) >> 11) / real(1 << 53)
            });
            counts[usize::try_from(chosen).unwrap()] += 1;
        }
        let sum: f64 = (1..=1000).map(|k| f64::from(k).powf(-0.99)).sum();
        for (k, count) in [(1, counts[0]), (2, counts[1]), (10, counts[9])] {
            let expected = f64::from(k).powf(-0.99) / sum * real(times);
            assert!((real(count) / expected - 1.0).abs() < 0.06, "{k}: {count}, not {expected}");
        }
    }

    #[test]
    fn one_item_is_always_the_first() {
        assert_eq!(Zipf::new(1).sample(|| 0.7), 0);
        assert!(Zipf::new(u64::MAX).sample(|| 0.999_999) < u64::MAX);
    }
}
