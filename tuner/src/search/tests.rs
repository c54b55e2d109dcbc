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
            spent: spent + probe.window.mul_f64(1.3),
        }
    }

    /// The sum of twelve uniform numbers, less six: near enough to a normal one.
    fn normal(&self, index: usize) -> f64 {
        let uniform = |part: u64| f64::from(u32::try_from(mix(mix(self.seed, index as u64), part) >> 32).unwrap()) / f64::from(u32::MAX);
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
    let rates = (space.threads.lo()..=space.threads.hi()).map(|n| server.truth(space.lowest().with(crate::space::Axis::Threads, n)));
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

#[test]
#[ignore]
fn show() {
    let spaces = space("1..512");
    for noise in [0.01, 0.02] {
        for (name, l, s, k) in [("A", 1000.0, 0.05, 0.0005), ("B", 5000., 0.02, 2e-5), ("C", 200.0, 0.1, 0.01), ("D", 1000.0, 0.03, 0.0), ("E", 1.0, 0.02, 0.02), ("cisco", 995.649, 0.026716, 7.69094e-4)] {
            let (losses, verdicts, windows) = losses(|| Server { noise, ..Server::usl(l, s, k) }, spaces, 200);
            let count = |v: Verdict| verdicts.iter().filter(|x| **x == v).count();
            println!("{name} {noise}: p50 {:.2} p95 {:.2} max {:.2} knee {} nopeak {} unstable {} budget {} windows {windows}", losses[100]*100., losses[190]*100., losses[199]*100.,
                count(Verdict::KneeFound), count(Verdict::NoPeakInRange), count(Verdict::Unstable), count(Verdict::BudgetExhausted));
        }
        let (losses, verdicts, windows) = losses(|| Server { noise, plateau: Some(128000.), ..Server::usl(24078., 0.074, 0.0) }, spaces, 200);
        println!("plateau {noise}: p95 {:.2} knee {} windows {windows}", losses[190]*100., verdicts.iter().filter(|v| **v==Verdict::KneeFound).count());
        let (losses, verdicts, windows) = self::losses(|| Server { noise, drift: Some((0.3, 0.9)), ..Server::usl(1000., 0.05, 0.0005) }, spaces, 200);
for d in [0.12, 0.2, 0.4, 0.5] {
        let (losses, verdicts, windows) = self::losses(|| Server { noise, drift: Some((d, 0.9)), ..Server::usl(1000., 0.05, 0.0005) }, spaces, 200);
        println!("drift {d} {noise}: p95 {:.2} unstable {} windows {windows}", losses[190]*100., verdicts.iter().filter(|v| **v==Verdict::Unstable).count());}
        println!("drift {noise}: p95 {:.2} unstable {} windows {windows}", losses[190]*100., verdicts.iter().filter(|v| **v==Verdict::Unstable).count());
    }
}
