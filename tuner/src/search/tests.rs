//! The search against simulated servers whose answer is known.

use std::time::Duration;

use super::*;
use crate::space::{Space, Span};
use crate::workload::mix;

/// A server under the Universal Scalability Law, with the faults that a test switches on.
struct Server {
    lambda: f64,
    sigma: f64,
    kappa: f64,
    /// Relative noise of a window.
    noise: f64,
    seed: u64,
    /// In-flight requests from which on they fail.
    fails_above: Option<u32>,
    /// Rows/s that it never exceeds.
    plateau: Option<f64>,
    /// A change of speed from this share of the budget on.
    drift: Option<(f64, f64)>,
    /// Cost of a request and of a row in it, relative to each other.
    batching: Option<(f64, f64)>,
}

const BUDGET: Duration = Duration::from_secs(120);

impl Server {
    fn usl(lambda: f64, sigma: f64, kappa: f64) -> Self {
        Self {
            lambda,
            sigma,
            kappa,
            noise: 0.01,
            seed: 1,
            fails_above: None,
            plateau: None,
            drift: None,
            batching: None,
        }
    }

    /// Rows/s without noise.
    fn truth(&self, point: Point) -> f64 {
        let n = f64::from(point.threads);
        let requests = self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0));
        let rows = self.batching.map_or(requests, |(request, row)| {
            let batch = f64::from(point.batch);
            requests * batch * (request + row) / (request + row * batch)
        });
        self.plateau.map_or(rows, |plateau| rows.min(plateau))
    }

    fn measure(&self, probe: Probe, index: usize, spent: Duration) -> Trial {
        let fails = self.fails_above.is_some_and(|limit| probe.point.threads > limit);
        let drifted = self.drift.filter(|(from, _)| spent > BUDGET.mul_f64(*from)).map_or(1.0, |(_, factor)| factor);
        let rate = self.truth(probe.point) * drifted * (1.0 + self.noise * self.normal(index));
        Trial {
            probe,
            rate,
            std_err: self.noise * rate,
            errors: if fails { 7 } else { 0 },
            cause: fails.then(|| "overloaded".into()),
            late: Vec::new(),
            spent: spent + probe.window.mul_f64(1.3),
        }
    }

    /// The sum of twelve uniform numbers, less six: near enough to a normal one.
    fn normal(&self, index: usize) -> f64 {
        let uniform = |part: u64| {
            f64::from(u32::try_from(mix(mix(self.seed, index as u64), part) >> 32).unwrap()) / f64::from(u32::MAX)
        };
        (0..12).map(uniform).sum::<f64>() - 6.0
    }

    fn sweep(&self, search: &dyn Search) -> (Answer, Vec<Trial>) {
        let mut history = Vec::new();
        let mut spent = Duration::from_millis(500);
        loop {
            match search.next(&history) {
                Step::Measure(probe) => {
                    let trial = self.measure(probe, history.len(), spent);
                    spent = trial.spent;
                    history.push(trial);
                    assert!(history.len() < 300, "the search doesn't end");
                }
                Step::Done(answer) => return (*answer, history),
            }
        }
    }
}

fn space(threads: &str) -> Space {
    let one = Span::fixed(1);
    Space { threads: threads.parse().unwrap(), io_threads: one, pool: one, batch: one, cores: 2 }
}

fn climb(space: Space, seed: u64) -> Climb {
    Climb::new(space, BUDGET, seed)
}

fn best(server: &Server, space: Space) -> f64 {
    let rates = (space.threads.lo()..=space.threads.hi())
        .map(|n| server.truth(space.lowest().with(crate::space::Axis::Threads, n)));
    rates.fold(0.0, f64::max)
}

/// Loss of the knee against the true peak, over many seeds, sorted; with the verdicts.
fn losses(make: impl Fn() -> Server, space: Space, seeds: u64) -> (Vec<f64>, Vec<Verdict>, usize) {
    let (mut losses, mut verdicts, mut windows) = (Vec::new(), Vec::new(), 0);
    for seed in 0..seeds {
        let server = Server { seed: mix(99, seed), ..make() };
        let (answer, history) = server.sweep(&climb(space, seed));
        let choice = answer.knee.or(answer.peak).unwrap();
        losses.push(1.0 - server.truth(choice.point) / best(&server, space));
        verdicts.push(answer.verdict);
        windows = windows.max(history.len());
    }
    losses.sort_by(f64::total_cmp);
    (losses, verdicts, windows)
}

/// The 95th percentile of losses that are sorted.
fn p95(losses: &[f64]) -> f64 {
    losses[losses.len() * 95 / 100]
}

fn count(verdicts: &[Verdict], wanted: Verdict) -> usize {
    verdicts.iter().filter(|verdict| **verdict == wanted).count()
}

const SEEDS: u64 = 100;

/// A, B, C, E and the published fit of the Cisco benchmark (B. Schwartz, Practical Scalability Analysis with the USL).
const PEAKED: [(f64, f64, f64); 5] = [
    (1000.0, 0.05, 0.0005),
    (5000.0, 0.02, 2e-5),
    (200.0, 0.1, 0.01),
    (1.0, 0.02, 0.02),
    (995.649, 0.026_716, 7.690_94e-4),
];

#[test]
fn the_knee_of_a_server_with_a_peak_is_found_with_little_loss() {
    for noise in [0.01, 0.02] {
        for (lambda, sigma, kappa) in PEAKED {
            let make = || Server { noise, ..Server::usl(lambda, sigma, kappa) };
            let (losses, verdicts, windows) = losses(make, space("1..512"), SEEDS);
            let name = format!("{lambda} at {noise}: p95 {:.4}, {windows} windows", p95(&losses));
            assert!(p95(&losses) <= 0.03, "{name}");
            assert!(count(&verdicts, Verdict::KneeFound) >= 97, "{name}: {verdicts:?}");
            assert!(windows <= 75, "{name}");
        }
    }
}

#[test]
fn the_knee_is_the_cheap_end_of_a_plateau() {
    // MySQL 5.6 on four cores with eight threads (xaprb.com, 2015): flat from 8 clients on.
    let make = || Server { plateau: Some(128_000.0), ..Server::usl(24_078.0, 0.0744, 0.0) };
    let (losses, verdicts, _) = losses(make, space("1..512"), SEEDS);
    assert!(p95(&losses) <= 0.03 && count(&verdicts, Verdict::KneeFound) >= 97);
    let (answer, _) = make().sweep(&climb(space("1..512"), 1));
    assert!((8..=9).contains(&answer.knee.unwrap().point.threads));
}

#[test]
fn what_still_rises_at_the_end_has_no_peak_in_range() {
    let rising = |lambda, sigma, kappa, threads| {
        let (_, verdicts, _) = losses(|| Server::usl(lambda, sigma, kappa), space(threads), SEEDS);
        count(&verdicts, Verdict::NoPeakInRange)
    };
    // D has no peak at all, that of A lies beyond.
    assert!(rising(1000.0, 0.03, 0.0, "1..512") >= 95);
    assert!(rising(1000.0, 0.05, 0.0005, "1..16") >= 97);
    let (answer, _) = Server::usl(1000.0, 0.05, 0.0005).sweep(&climb(space("1..16"), 1));
    assert!(answer.knee.is_none());
    assert_eq!(answer.peak.unwrap().point.threads, 16);
    assert_eq!(answer.stop_reason, "rows/s still rise at the end of threads 1..16; raise it to find the peak");
}

#[test]
fn a_point_with_errors_is_a_ceiling_and_never_the_answer() {
    for seed in 0..SEEDS {
        let server = Server { fails_above: Some(20), seed, ..Server::usl(1000.0, 0.05, 0.0005) };
        let (answer, _) = server.sweep(&climb(space("1..512"), seed));
        assert_eq!(answer.verdict, Verdict::KneeFound, "{answer:?}");
        let knee = answer.knee.unwrap().point;
        assert!((16..=20).contains(&knee.threads), "{knee}");
        let ceiling = answer.ceiling.unwrap();
        assert!(ceiling.point.threads > 20 && ceiling.cause == "overloaded", "{ceiling:?}");
    }
}

#[test]
fn where_everything_fails_no_point_is_feasible() {
    let server = Server { fails_above: Some(0), ..Server::usl(1000.0, 0.05, 0.0005) };
    let (answer, history) = server.sweep(&climb(space("1..512"), 1));
    assert_eq!((answer.verdict, answer.peak, answer.knee), (Verdict::NoFeasiblePoint, None, None));
    assert!(answer.stop_reason.contains("overloaded"), "{}", answer.stop_reason);
    assert!(history.len() <= 6);
}

#[test]
fn a_server_that_does_nothing_is_not_feasible() {
    let (answer, _) = Server { lambda: 0.0, ..Server::usl(1.0, 0.0, 0.0) }.sweep(&climb(space("1..8"), 1));
    assert_eq!(answer.verdict, Verdict::NoFeasiblePoint);
    assert!(answer.stop_reason.contains("did nothing"), "{}", answer.stop_reason);
}

#[test]
fn a_server_that_slows_down_meanwhile_is_unstable() {
    let make = || Server { drift: Some((0.2, 0.9)), ..Server::usl(1000.0, 0.05, 0.0005) };
    let (_, verdicts, _) = losses(make, space("1..512"), SEEDS);
    assert!(count(&verdicts, Verdict::Unstable) >= 95, "{verdicts:?}");
}

#[test]
fn windows_that_tell_nothing_apart_are_unstable() {
    let server = Server { noise: 0.4, ..Server::usl(1000.0, 0.05, 0.0005) };
    let (answer, _) = server.sweep(&climb(space("1..64"), 3));
    assert_ne!(answer.verdict, Verdict::KneeFound, "{answer:?}");
}

#[test]
fn the_best_batch_is_found_and_fewer_threads_with_it() {
    let batch = Space { batch: "1..256".parse().unwrap(), ..space("1..512") };
    let mut few = 0;
    for seed in 0..SEEDS {
        let server =
            Server { batching: Some((10.0, 1.0)), plateau: Some(20_000.0), seed, ..Server::usl(1000.0, 0.05, 0.0005) };
        let (answer, _) = server.sweep(&climb(batch, seed));
        let knee = answer.knee.or(answer.peak).unwrap().point;
        assert!(server.truth(knee) >= 20_000.0 * 0.96, "{knee}");
        few += u32::from(knee.threads <= 5);
    }
    // One row per request never gets there, two rows do with 40 threads, 256 rows with two.
    assert!(few >= 90, "{few}");
}

#[test]
fn the_budget_is_kept_and_its_end_is_said() {
    for seconds in [2, 5, 10, 20, 40] {
        let budget = Duration::from_secs(seconds);
        let (answer, history) = Server::usl(1000.0, 0.05, 0.0005).sweep(&Climb::new(space("1..512"), budget, 1));
        assert!(history.last().unwrap().spent <= budget, "{seconds}");
        if answer.verdict == Verdict::BudgetExhausted {
            assert!(answer.peak.is_some() && answer.stop_reason.contains("--budget"), "{answer:?}");
        } else {
            assert_eq!(answer.verdict, Verdict::KneeFound, "{seconds}");
        }
    }
}

#[test]
fn a_search_never_measures_outside_its_ranges_and_repeats_itself_exactly() {
    let space = Space {
        threads: "3..100".parse().unwrap(),
        io_threads: "1..3".parse().unwrap(),
        pool: "2..5".parse().unwrap(),
        batch: "2..50".parse().unwrap(),
        cores: 2,
    };
    let server = Server { batching: Some((5.0, 1.0)), ..Server::usl(1000.0, 0.05, 0.0005) };
    let (answer, history) = server.sweep(&climb(space, 4));
    for trial in &history {
        for axis in crate::space::Axis::ALL {
            let (value, span) = (trial.probe.point.on(axis), space.on(axis));
            assert!((span.lo()..=span.hi()).contains(&value), "{}", trial.probe.point);
        }
    }
    assert_eq!(server.sweep(&climb(space, 4)), (answer, history));
}

#[test]
fn an_end_from_outside_keeps_the_best_so_far() {
    let search = climb(space("1..512"), 1);
    let (_, history) = Server::usl(1000.0, 0.05, 0.0005).sweep(&search);
    for length in 0..history.len() {
        let answer = search.conclude(&history[..length], End::Interrupted);
        assert_eq!(answer.verdict, Verdict::Interrupted);
        let measured = history[..length].iter().any(|trial| trial.probe.purpose != Purpose::WarmUp);
        assert_eq!(answer.peak.is_some(), measured, "{length}");
    }
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / crate::stats::real_len(samples.len())
}

#[test]
fn the_reported_figure_is_fresh_and_without_bias() {
    let (mut ratios, mut fresh) = (Vec::new(), true);
    for seed in 0..SEEDS {
        let server = Server { noise: 0.02, seed: mix(5, seed), ..Server::usl(1000.0, 0.05, 0.0005) };
        let (answer, history) = server.sweep(&climb(space("1..512"), seed));
        let Some(knee) = answer.knee else { continue };
        fresh &= knee.trials.iter().all(|index| history[*index].probe.purpose == Purpose::Confirm);
        let rates: Vec<f64> = knee.trials.iter().map(|index| history[*index].rate).collect();
        ratios.push(mean(&rates) / server.truth(knee.point) - 1.0);
    }
    let bias = mean(&ratios);
    assert!(fresh && bias.abs() < 0.005, "{bias}");
}

#[test]
fn a_run_of_one_point_reports_it_without_calling_it_a_knee() {
    let point = Point { threads: 4, io_threads: 1, pool: 1, batch: 1 };
    let server = Server::usl(1000.0, 0.05, 0.0005);
    let (answer, history) = server.sweep(&Fixed::new(point, Duration::from_secs(20)));
    assert_eq!((answer.verdict, answer.knee), (Verdict::NoPeakInRange, None));
    assert_eq!(answer.peak.unwrap().trials.len(), 8);
    assert!(history.last().unwrap().spent <= Duration::from_secs(20));
    let failing = Server { fails_above: Some(1), ..server };
    let (answer, _) = failing.sweep(&Fixed::new(point, Duration::from_secs(20)));
    assert_eq!(answer.verdict, Verdict::NoFeasiblePoint);
}
