//! One search against one simulated server, and how good its answer was.

use std::time::Duration;

use super::baselines::{BASELINES, Found};
use super::servers::Case;
use crate::search::{Answer, BUDGET, Climb, Purpose, Search, Step, Trial, Verdict};
use crate::space::Point;
use crate::stats::{Estimate, real};
use crate::target::sim::{Order, Server};
use crate::workload::mix;

/// What a window costs besides the measured part, as a simulated target has it.
const WARM_UP: f64 = 0.25;
/// A search that measures more than this doesn't end.
const ENDLESS: usize = 1000;
/// Windows of a warm-up that is not longer than usual.
const USUAL_WARM_UP: usize = 7;
/// The only operation.
pub(super) const OPERATIONS: &[(&str, f64)] = &[("get", 1.0)];

/// How one search fared.
#[derive(Debug, Clone)]
pub(crate) struct Fared {
    pub(crate) verdict: Verdict,
    /// The share of the best throughput that the recommended point lacks; 1 without one, or where it fails.
    pub(crate) loss: f64,
    /// The reported throughput over the true one of that point, less one.
    pub(crate) bias: Option<f64>,
    /// Whether the confidence interval holds the true one.
    pub(crate) covers: Option<bool>,
    /// Errors in the confirming run.
    pub(crate) errors: u64,
    /// Without those by which a server's warm-up is longer than usual.
    pub(crate) windows: usize,
    /// What each baseline lacks.
    pub(crate) baselines: [f64; BASELINES.len()],
}

/// Runs a search to its end. `None` if it has none.
pub(crate) fn sweep(case: &Case, server: &Server, search: &dyn Search) -> Option<(Answer, Vec<Trial>)> {
    let (mut history, mut now) = (Vec::new(), Duration::ZERO);
    while history.len() < ENDLESS {
        let probe = match search.next(&history) {
            Step::Done(answer) => return Some((*answer, history)),
            Step::Measure(probe) => probe,
        };
        let from = now + probe.window.mul_f64(WARM_UP);
        now = from + probe.window;
        let order = Order {
            point: probe.point,
            window: probe.window,
            from,
            number: history.len() as u64,
            offered: probe.rate,
            operations: OPERATIONS,
        };
        history.push(Trial::of(probe, &server.measure(&order), &case.objectives, now));
    }
    None
}

impl Case {
    /// Runs the search and the baselines with this noise. `best` is the oracle's throughput.
    pub(crate) fn judge(&self, cv: f64, seed: u64, best: f64) -> Option<Fared> {
        let seed_of_case = self.name.bytes().fold(41, |seed, byte| mix(seed, byte.into()));
        let server = Server { cv, seed: mix(seed_of_case, seed), ..self.server.clone() };
        let (answer, history) = sweep(self, &server, &Climb::new(self.space, BUDGET, None, seed))?;
        let chosen = answer.knee.as_ref().or(answer.peak.as_ref());
        let truth = chosen.and_then(|choice| self.truth(choice.point));
        let fresh = |index: &&usize| history.get(**index).is_some_and(|it| it.probe.purpose == Purpose::Confirm);
        let trials: Vec<&Trial> = chosen.map_or_else(Vec::new, |choice| {
            choice.trials.iter().filter(fresh).filter_map(|index| history.get(*index)).collect()
        });
        let warm_ups = history.iter().filter(|trial| trial.probe.purpose == Purpose::WarmUp).count();
        let rates: Vec<f64> = trials.iter().map(|trial| trial.rate).collect();
        let reported = Estimate::of_independent(&rates).zip(truth);
        let covers = |(reported, truth): (Estimate, f64)| {
            let [lo, hi] = reported.interval();
            (lo..=hi).contains(&truth)
        };
        Some(Fared {
            verdict: answer.verdict,
            loss: 1.0 - truth.unwrap_or_default() / best,
            bias: reported.map(|(reported, truth)| reported.mean / truth - 1.0),
            covers: reported.map(covers),
            errors: trials.iter().map(|trial| trial.errors).sum(),
            windows: history.len() - warm_ups.saturating_sub(USUAL_WARM_UP),
            baselines: BASELINES.map(|(_, baseline)| {
                let mut number = 0;
                let mut measure = |threads| {
                    number += 1;
                    self.window(&server, threads, mix(seed, number))
                };
                let found: Found = baseline(&mut measure, self.space.threads.hi());
                1.0 - self
                    .truth(self.space.lowest().with(crate::space::Axis::Threads, found.threads))
                    .unwrap_or_default()
                    / best
            }),
        })
    }

    /// The true throughput of a point; `None` where it fails, or misses an objective.
    pub(crate) fn truth(&self, point: Point) -> Option<f64> {
        let rate = self.server.rows_per_s(point)?;
        let quiet = Server { cv: 0.0, drift: None, freeze: None, warmup: 0.0, bimodal: 0.0, ..self.server.clone() };
        let order =
            Order { number: 0, offered: None, operations: OPERATIONS, from: Duration::ZERO, point, window: BUDGET };
        let met = self.objectives.is_empty() || {
            let measurement = quiet.measure(&order);
            self.objectives.iter().map(|it| it.late(&measurement)).all(|it| real(it.slow) <= it.allowed * real(it.all))
        };
        met.then_some(rate)
    }

    /// A window of a baseline: the throughput, or none where a request fails.
    fn window(&self, server: &Server, threads: u32, number: u64) -> f64 {
        let point = self.space.lowest().with(crate::space::Axis::Threads, threads);
        let window = Duration::from_secs(4);
        let order = Order { point, window, from: BUDGET / 4, number, offered: None, operations: OPERATIONS };
        let measurement = server.measure(&order);
        if measurement.failures() > 0 { 0.0 } else { measurement.rate.map_or(0.0, |rate| rate.mean) }
    }
}
