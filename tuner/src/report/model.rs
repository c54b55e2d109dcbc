//! What the Universal Scalability Law says of the curve over threads. It explains; it decides nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Window;
use crate::search::Purpose;
use crate::space::{Axis, Point};
use crate::stats::{Usl, kneedle, real_len};

/// Distinct numbers of threads below which three coefficients are little more than a drawing of the points.
const FEW: usize = 6;

/// Numbers of threads that a line needs to be fitted.
const ENOUGH: usize = 4;

/// The fit, for `result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Model {
    /// Rows per second of one thread.
    pub(crate) lambda: f64,
    /// The share of the work that queues for something shared.
    pub(crate) sigma: f64,
    /// The cost of every pair of threads that must agree.
    pub(crate) kappa: f64,
    /// Whether κ is held by its bound, 0: then the model has no peak.
    pub(crate) kappa_at_bound: bool,
    /// What the model leaves unexplained, relative to the mean throughput.
    pub(crate) residual: f64,
    /// Threads at the model's peak, whether in range or not.
    pub(crate) peak_threads: Option<f64>,
    /// What the model never passes, where it has no peak.
    pub(crate) limit_rows_per_s: Option<f64>,
    /// The knee by Kneedle, which depends on where the range ends.
    pub(crate) kneedle_threads: Option<f64>,
    /// How many numbers of threads it rests on; below six it is to be taken with care.
    pub(crate) points: usize,
}

impl Model {
    /// Fits the line of threads through a point, or the one beside it that tells more. `None` with fewer than four distinct
    /// numbers of threads.
    pub(crate) fn of(windows: &[Window], chosen: Point) -> Option<Self> {
        let line = line(windows, fullest(windows, chosen));
        let curve: Vec<(f64, f64)> = line.iter().map(|(threads, rates)| (f64::from(*threads), mean(rates))).collect();
        let all = line.iter().flat_map(|(threads, rates)| rates.iter().map(|rate| (f64::from(*threads), *rate)));
        let usl = Usl::fit(&all.collect::<Vec<_>>())?;
        Some(Self {
            lambda: usl.lambda,
            sigma: usl.sigma,
            kappa: usl.kappa,
            kappa_at_bound: usl.kappa == 0.0,
            residual: usl.residual,
            peak_threads: usl.peak(),
            limit_rows_per_s: usl.limit(),
            kneedle_threads: kneedle(&curve),
            points: curve.len(),
        })
    }

    /// The fitted throughput.
    pub(crate) fn at(&self, threads: f64) -> f64 {
        let Self { lambda, sigma, kappa, residual, .. } = *self;
        Usl { lambda, sigma, kappa, residual }.at(threads)
    }

    /// Whether it rests on few points.
    pub(crate) fn is_weak(&self) -> bool {
        self.points < FEW
    }
}

/// The point whose line of threads tells most of the chosen one: its own if it has four numbers of threads, or else the one with
/// as many rows per request but other connections or io threads that has most.
pub(super) fn fullest(windows: &[Window], chosen: Point) -> Point {
    let of = |point: Point| line(windows, point).len();
    if of(chosen) >= ENOUGH {
        return chosen;
    }
    let points = windows.iter().map(|window| window.trial.probe.point.with(Axis::Threads, chosen.threads));
    let beside = points.filter(|point| point.batch == chosen.batch);
    beside.fold(chosen, |best, point| if of(point) > of(best) { point } else { best })
}

/// Rates by threads of the windows without errors that share a point's other settings.
pub(super) fn line(windows: &[Window], through: Point) -> BTreeMap<u32, Vec<f64>> {
    let mut line: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for window in windows {
        let (probe, point) = (window.trial.probe, window.trial.probe.point);
        let on_line = point.with(Axis::Threads, 1) == through.with(Axis::Threads, 1);
        if probe.purpose != Purpose::WarmUp && on_line && window.trial.errors == 0 && window.trial.rate > 0.0 {
            line.entry(point.threads).or_default().push(window.trial.rate);
        }
    }
    line
}

pub(super) fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / real_len(rates.len().max(1))
}
