//! Servers whose best limit is known, in windows of virtual time: the judge of policies that limit requests under way.

use std::time::Duration;

use crate::layers::autopilot::{Pilot, Sample};

/// A server by the Universal Scalability Law: requests per second at so many under way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usl {
    /// Of one request at a time.
    pub rate: f64,
    /// The share of the work that can't be done side by side.
    pub contention: f64,
    /// What each pair of requests costs.
    pub coherency: f64,
}

impl Usl {
    /// A peak at 44 under way.
    pub const A: Self = Self { rate: 1_000.0, contention: 0.05, coherency: 0.000_5 };
    /// A peak at 221.
    pub const B: Self = Self { rate: 5_000.0, contention: 0.02, coherency: 0.000_02 };
    /// A peak at 9.
    pub const C: Self = Self { rate: 200.0, contention: 0.1, coherency: 0.01 };
    /// No peak: goodput rises for ever, and ever slower.
    pub const D: Self = Self { rate: 1_000.0, contention: 0.03, coherency: 0.0 };
    /// A steep peak at 7.
    pub const E: Self = Self { rate: 1_000.0, contention: 0.02, coherency: 0.02 };

    /// With this capacity: so many times the server, side by side.
    pub fn goodput(self, capacity: f64, requests: f64) -> f64 {
        let n = requests / capacity;
        capacity * self.rate * n / (1.0 + self.contention * (n - 1.0) + self.coherency * n * (n - 1.0))
    }

    /// The best goodput within 1024 requests, and the knee: the fewest that come within 2 % of it.
    pub fn best(self, capacity: f64) -> (f64, f64) {
        let goodput = |n: u16| self.goodput(capacity, f64::from(n));
        let best = (1..=1_024).map(goodput).fold(0.0, f64::max);
        let knee = (1..=1_024).find(|n| goodput(*n) >= 0.98 * best).unwrap_or(1_024);
        (best, f64::from(knee))
    }
}

/// What limits requests by what it sees.
pub trait Policy {
    /// How many requests may be under way now.
    fn limit(&self) -> usize;

    /// Takes what was measured at this limit.
    fn observe(&mut self, sample: &Sample);
}

impl Policy for Pilot {
    fn limit(&self) -> usize {
        Self::limit(self)
    }

    fn observe(&mut self, sample: &Sample) {
        Self::observe(self, sample);
    }
}

/// The length of a window.
pub const WINDOW: Duration = Duration::from_millis(200);

/// What a policy reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flown {
    /// The mean goodput, as it would have been without noise.
    pub goodput: f64,
    /// The mean limit.
    pub limit: f64,
}

/// A server, its noise and the time on it.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    /// The relative standard deviation of the goodput of a window.
    pub noise: f64,
    /// Seconds in all.
    pub seconds: u32,
    /// Of them, seconds at the beginning that don't count.
    pub skip: u32,
}

impl Course {
    /// Lets a policy fly; the server tells the goodput at so many requests under way.
    pub fn fly(self, policy: &mut impl Policy, dice: &mut fastrand::Rng, server: impl Fn(f64) -> f64) -> Flown {
        let (mut goodput, mut limit) = (0.0, 0.0);
        let skipped = WINDOWS_PER_SECOND * self.skip;
        for window in 0..WINDOWS_PER_SECOND * self.seconds {
            let now = policy.limit();
            let done = server(to_f64(now));
            let seen = done * (self.noise * normal(dice) - self.noise * self.noise / 2.0).exp();
            policy.observe(&sample(seen, now));
            if window >= skipped {
                (goodput, limit) = (goodput + done, limit + to_f64(now));
            }
        }
        let counted = f64::from((WINDOWS_PER_SECOND * self.seconds).saturating_sub(skipped).max(1));
        Flown { goodput: goodput / counted, limit: limit / counted }
    }
}

const WINDOWS_PER_SECOND: u32 = 5;

/// A window in which the whole limit was used.
pub fn sample(goodput: f64, limit: usize) -> Sample {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "requests of a window")]
    let succeeded = (goodput * WINDOW.as_secs_f64()).round() as u64;
    Sample { elapsed: WINDOW, succeeded, failed: 0, ended: succeeded, in_flight: to_f64(limit) }
}

/// A number from a normal distribution.
fn normal(dice: &mut fastrand::Rng) -> f64 {
    (-2.0 * (1.0 - dice.f64()).ln()).sqrt() * (std::f64::consts::TAU * dice.f64()).cos()
}

fn to_f64(requests: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "numbers of requests")]
    let requests = requests as f64;
    requests
}
