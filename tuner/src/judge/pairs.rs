//! The comparison of two runs of the same server, and of one that is a little slower.

use std::time::Duration;

use super::trial::OPERATIONS;
use crate::space::Point;
use crate::stats::{real, welch};
use crate::target::sim::{Curve, Order, Server};
use crate::workload::mix;

/// Windows of a run.
const WINDOWS: u64 = 8;
/// How often equals may be called different.
pub(super) const FALSELY: f64 = 0.05;
/// How much slower the other server is.
const SLOWER: f64 = 0.97;

/// How often pairs of runs are called different.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pairs {
    cv: f64,
    seeds: u64,
    /// The share of pairs of equals.
    falsely: f64,
    /// The share of pairs of which one is 3 % slower.
    rightly: f64,
}

impl Pairs {
    /// Compares so many pairs with this noise.
    pub(crate) fn judge(cv: f64, seeds: u64) -> Self {
        let different = |lambda: f64, seed: u64| {
            let [first, second] =
                [(1000.0, 2 * seed), (lambda, 2 * seed + 1)].map(|(lambda, seed)| run(lambda, cv, seed));
            welch(&first, &second).is_some_and(|compared| compared.is_different())
        };
        let share = |lambda: f64| real((0..seeds).filter(|seed| different(lambda, *seed)).count() as u64) / real(seeds);
        Self { cv, seeds, falsely: share(1000.0), rightly: share(1000.0 * SLOWER) }
    }

    /// Its noise.
    pub(crate) fn name(&self) -> String {
        format!("compare, cv {:.0}", self.cv * 100.0)
    }

    /// The share of equals that are called different.
    pub(crate) fn falsely(&self) -> f64 {
        self.falsely
    }

    /// The line of the judgement.
    pub(crate) fn text(&self) -> String {
        let [falsely, rightly] = [self.falsely, self.rightly].map(|share| share * 100.0);
        let name = self.name();
        format!("{name}: {falsely:.1} % of equals called different, {rightly:.1} % of those 3 % slower")
    }

    /// Whether equals are called different more often than they may be, chance allowed for.
    pub(crate) fn misses(&self) -> bool {
        self.falsely > FALSELY + 2.0 * (FALSELY * (1.0 - FALSELY) / real(self.seeds)).sqrt()
    }
}

/// The rates of a run of one point.
fn run(lambda: f64, cv: f64, seed: u64) -> Vec<f64> {
    let curve = Curve::Usl { lambda, sigma: 0.05, kappa: 0.0005 };
    let server = Server { cv, seed: mix(77, seed), ..Server::new(curve) };
    let point = Point { threads: 44, io_threads: 1, pool: 1, batch: 1 };
    let order = |number| Order {
        point,
        window: Duration::from_secs(2),
        from: Duration::ZERO,
        number,
        offered: None,
        operations: OPERATIONS,
    };
    (0..WINDOWS).filter_map(|number| Some(server.measure(&order(number)).rate?.mean)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_are_seldom_called_different_and_a_small_difference_is_found() {
        let pairs = Pairs::judge(0.01, 100);
        assert!(!pairs.misses() && pairs.rightly > 0.95, "{pairs:?}");
    }
}
