//! A worker's random numbers.

use crate::workload::{below, mix};

/// A stream of random numbers of its own: no worker waits for another.
#[derive(Debug, Clone)]
pub(super) struct Random {
    seed: u64,
    draws: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, draws: 0 }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.draws += 1;
        mix(self.seed, self.draws)
    }

    /// A whole number below `bound`; 0 for a bound of 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        below(self.next(), bound)
    }

    /// A real number from 0 to below 1.
    pub(super) fn unit(&mut self) -> f64 {
        const STEPS: u64 = 1 << 53;
        crate::stats::real(self.next() >> 11) / crate::stats::real(STEPS)
    }
}
