//! How policies that limit requests under way do on simulated servers, in virtual time.
//!
//! Each flies for 120 s on a server at its full capacity, at half of it, at full again, and at twice the capacity, at which it
//! then stands still for 5 s and goes on. What counts is the time from 60 s after each change on. It holds the bar if goodput
//! was at least 95 % of the best there, with at most 1.5 times the requests of the knee, in all five parts.
#![expect(clippy::expect_used, reason = "a bench stops where its set-up fails")]

use fastrand::Rng;
use peristyle_core::layers::autopilot::{Autopilot, Sample};
use peristyle_core::testkit::simulator::{Course, Policy, Usl};

const SEEDS: u64 = 200;
const MOST: f64 = 1_024.0;

fn main() {
    let servers = [("A", Usl::A), ("B", Usl::B), ("C", Usl::C), ("D", Usl::D), ("E", Usl::E)];
    println!(
        "{:<6} {:<10} {:>5}   {:>16}   {:>16}   {:>11}",
        "server", "policy", "noise", "goodput, % best", "limit / knee", "hold of 200"
    );
    println!("{:<6} {:<10} {:>5}   {:>7} {:>8}   {:>7} {:>8}", "", "", "", "worst", "median", "median", "worst");
    for (name, server) in servers {
        for noise in [0.01, 0.02, 0.05] {
            report(name, "autopilot", noise, server, || Autopilot::default().pilot());
            report(name, "gradient2", noise, server, Gradient2::new);
            report(name, "vegas", noise, server, Vegas::new);
            report(name, "aimd", noise, server, || Aimd { limit: 20.0 });
        }
    }
}

fn report<P: Policy>(name: &str, policy: &str, noise: f64, server: Usl, start: impl Fn() -> P) {
    let runs: Vec<Vec<(f64, f64)>> = (0..SEEDS).map(|seed| run(start(), seed, noise, server)).collect();
    let hold = runs.iter().filter(|run| run.iter().all(|(goodput, limit)| *goodput >= 0.95 && *limit <= 1.5)).count();
    let sorted = |part: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = runs.iter().flatten().map(part).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let (goodput, limit) = (sorted(|run| run.0), sorted(|run| run.1));
    let median = |all: &[f64]| *all.get(all.len() / 2).expect("runs");
    let worst = (*goodput.first().expect("runs"), *limit.last().expect("runs"));
    println!(
        "{name:<6} {policy:<10} {:>3} %   {:>7.1} {:>8.1}   {:>7.2} {:>8.2}   {hold:>11}",
        100.0 * noise,
        100.0 * worst.0,
        100.0 * median(&goodput),
        median(&limit),
        worst.1,
    );
}

/// Goodput as a share of the best, and the limit as a multiple of the knee, in each part.
fn run(mut policy: impl Policy, seed: u64, noise: f64, server: Usl) -> Vec<(f64, f64)> {
    let mut dice = Rng::with_seed(seed);
    let course = Course { noise, seconds: 120, skip: 60 };
    let mut part = |capacity: f64, freeze: bool| {
        if freeze {
            Course { noise, seconds: 5, skip: 0 }.fly(&mut policy, &mut dice, |_| 0.0);
        }
        let (best, knee) = server.best(capacity);
        let flown = course.fly(&mut policy, &mut dice, |requests| server.goodput(capacity, requests));
        (flown.goodput / best, flown.limit / knee)
    };
    [(1.0, false), (0.5, false), (1.0, false), (2.0, false), (2.0, true)]
        .map(|(capacity, freeze)| part(capacity, freeze))
        .into()
}

/// What the others look at: how long a request takes, by Little's law.
fn latency(sample: &Sample) -> Option<f64> {
    (sample.succeeded > 0).then(|| sample.in_flight / sample.goodput())
}

fn whole(limit: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 1 and MOST")]
    let limit = limit.clamp(1.0, MOST) as usize;
    limit
}

/// `Gradient2Limit` of Netflix's concurrency-limits (revision 78a74b9) with its defaults, but for the largest limit.
struct Gradient2 {
    limit: f64,
    long: f64,
    seen: u32,
}

impl Gradient2 {
    fn new() -> Self {
        Self { limit: 20.0, long: 0.0, seen: 0 }
    }

    /// An average over 600 windows, the plain mean of the first ten.
    fn average(&mut self, latency: f64) -> f64 {
        self.seen += 1;
        let weight = if self.seen <= 10 { 1.0 / f64::from(self.seen) } else { 2.0 / 601.0 };
        self.long += weight * (latency - self.long);
        self.long
    }
}

impl Policy for Gradient2 {
    fn limit(&self) -> usize {
        whole(self.limit)
    }

    fn observe(&mut self, sample: &Sample) {
        let Some(latency) = latency(sample) else { return };
        let long = self.average(latency);
        if long / latency > 2.0 {
            self.long *= 0.95;
        }
        let gradient = (1.5 * long / latency).clamp(0.5, 1.0);
        let target = self.limit * gradient + 4.0;
        self.limit = (0.8 * self.limit + 0.2 * target).clamp(1.0, MOST);
    }
}

/// `VegasLimit` of the same library with its defaults, but for the largest limit.
struct Vegas {
    limit: f64,
    best: f64,
    until_probe: f64,
}

impl Vegas {
    fn new() -> Self {
        Self { limit: 20.0, best: f64::INFINITY, until_probe: 600.0 }
    }
}

impl Policy for Vegas {
    fn limit(&self) -> usize {
        whole(self.limit)
    }

    fn observe(&mut self, sample: &Sample) {
        let Some(latency) = latency(sample) else { return };
        self.until_probe -= 1.0;
        if self.until_probe <= 0.0 {
            (self.best, self.until_probe) = (latency, 30.0 * self.limit);
            return;
        }
        if latency < self.best {
            self.best = latency;
            return;
        }
        let queue = (self.limit * (1.0 - self.best / latency)).ceil();
        let step = self.limit.log10().max(1.0);
        self.limit = match queue {
            queue if queue <= step => self.limit + 6.0 * step,
            queue if queue < 3.0 * step => self.limit + step,
            queue if queue > 6.0 * step => self.limit - step,
            _ => self.limit,
        }
        .clamp(1.0, MOST);
    }
}

/// `AIMDLimit` of the same library: up by one while the limit is used, down by a tenth on a drop; but for the largest limit.
struct Aimd {
    limit: f64,
}

impl Policy for Aimd {
    fn limit(&self) -> usize {
        whole(self.limit)
    }

    fn observe(&mut self, sample: &Sample) {
        let step = if sample.failed > 0 { -0.1 * self.limit } else { 1.0 };
        self.limit = (self.limit + step).clamp(1.0, MOST);
    }
}
