//! The state of one circuit.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::CircuitPolicy;
use crate::error::{Error, ErrorKind, Result};
use crate::layers::names::CIRCUIT_OPENED;

#[derive(Debug)]
pub(super) struct Breaker {
    endpoint: Arc<str>,
    policy: CircuitPolicy,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Answers that were asked for in an earlier phase count no more.
    generation: u64,
    /// How long it was open the last time.
    pause: Option<Duration>,
}

#[derive(Debug)]
enum Phase {
    Closed(Counts),
    Open { until: Instant },
    HalfOpen { under_way: u32, succeeded: u32 },
}

/// What was answered in this window and the one before, which fades out as this one fills.
#[derive(Debug)]
struct Counts {
    since: Instant,
    this: Tally,
    before: Tally,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    all: u32,
    failed: u32,
}

impl Counts {
    fn new() -> Self {
        Self { since: Instant::now(), this: Tally::default(), before: Tally::default() }
    }

    /// Counts an answer; gives all and failed ones over half a window to a whole one.
    fn add(&mut self, failed: bool, window: Duration) -> Tally {
        let half = window / 2;
        let age = self.since.elapsed();
        if age >= half {
            self.before = if age >= window { Tally::default() } else { self.this };
            self.this = Tally::default();
            self.since = Instant::now();
        }
        self.this.all += 1;
        self.this.failed += u32::from(failed);
        Tally { all: self.this.all + self.before.all, failed: self.this.failed + self.before.failed }
    }
}

impl Breaker {
    pub(super) fn new(endpoint: Arc<str>, policy: CircuitPolicy) -> Self {
        let state = State { phase: Phase::Closed(Counts::new()), generation: 0, pause: None };
        Self { endpoint, policy, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it would let a request through now.
    pub(super) fn admits(&self) -> bool {
        match &self.state().phase {
            Phase::Closed(_) => true,
            Phase::Open { until } => Instant::now() >= *until,
            Phase::HalfOpen { under_way, .. } => *under_way < self.policy.probes,
        }
    }

    /// A ticket for a request, or the refusal.
    pub(super) fn admit(self: &Arc<Self>) -> Result<Ticket> {
        let mut state = self.state();
        if let Phase::Open { until } = state.phase {
            let now = Instant::now();
            if now < until {
                return Err(self.refusal(format_args!("for another {:?}", until - now)));
            }
            state.enter(Phase::HalfOpen { under_way: 0, succeeded: 0 });
        }
        let is_probe = match &mut state.phase {
            Phase::HalfOpen { under_way, .. } if *under_way >= self.policy.probes => {
                return Err(self.refusal(format_args!("until the probes under way have succeeded")));
            }
            Phase::HalfOpen { under_way, .. } => {
                *under_way += 1;
                true
            }
            _ => false,
        };
        Ok(Ticket { breaker: Arc::clone(self), generation: state.generation, is_probe, is_noted: false })
    }

    fn refusal(&self, time: fmt::Arguments<'_>) -> Error {
        let endpoint = &self.endpoint;
        let message = format!("{endpoint} failed too many requests and is left alone {time}; check whether it is well");
        Error::new(ErrorKind::Unavailable, message)
    }

    fn note(&self, generation: u64, failed: bool) {
        let mut state = self.state();
        if state.generation != generation {
            return;
        }
        let policy = &self.policy;
        match &mut state.phase {
            Phase::Closed(counts) => {
                let tally = counts.add(failed, policy.window);
                if failed && tally.all >= policy.least && f64::from(tally.failed) >= policy.share * f64::from(tally.all)
                {
                    self.open(&mut state);
                }
            }
            Phase::HalfOpen { .. } if failed => self.open(&mut state),
            Phase::HalfOpen { under_way, succeeded } => {
                *under_way = under_way.saturating_sub(1);
                *succeeded += 1;
                if *succeeded >= policy.probes {
                    state.pause = None;
                    state.enter(Phase::Closed(Counts::new()));
                    tracing::info!(endpoint = &*self.endpoint, "circuit closed: the endpoint answers again");
                }
            }
            Phase::Open { .. } => {}
        }
    }

    fn open(&self, state: &mut State) {
        let pause = state.pause.map_or(self.policy.pause, |pause| (pause * 2).min(self.policy.longest_pause));
        state.pause = Some(pause);
        state.enter(Phase::Open { until: Instant::now() + pause });
        metrics::counter!(CIRCUIT_OPENED, "node" => self.endpoint.to_string()).increment(1);
        tracing::warn!(endpoint = &*self.endpoint, ?pause, "circuit opened: the endpoint fails too many requests");
    }

    /// A probe was dropped: it says nothing, and another may go.
    fn forget(&self, generation: u64) {
        let mut state = self.state();
        if state.generation == generation
            && let Phase::HalfOpen { under_way, .. } = &mut state.phase
        {
            *under_way = under_way.saturating_sub(1);
        }
    }
}

impl State {
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.generation += 1;
    }
}

/// A request that was let through; noted when it is answered, forgotten when it is dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    breaker: Arc<Breaker>,
    generation: u64,
    is_probe: bool,
    is_noted: bool,
}

impl Ticket {
    pub(super) fn note(mut self, failed: bool) {
        self.is_noted = true;
        self.breaker.note(self.generation, failed);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.is_probe && !self.is_noted {
            self.breaker.forget(self.generation);
        }
    }
}
