//! Which call meets which fault.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Outcome, Result};
use crate::request::{Action, Request, Write};

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// It isn't sent, and fails with this kind, not applied.
    FailBefore(ErrorKind),
    /// It is sent and done, and fails with this kind, its outcome unknown: the connection broke before the answer came.
    FailAfter(ErrorKind),
    /// It is sent after this time.
    Delay(Duration),
    /// It is never sent, and there is no answer.
    Hang,
    /// It is sent and done, and there is no answer.
    DropAnswer,
    /// Of many writes in one request, each is left out with this probability and fails, not applied. Other requests pass.
    Partial(f64),
}

/// Which calls meet a fault.
#[derive(Debug, Clone, PartialEq)]
pub enum When {
    /// These ones, counted from 0.
    Calls(Range<u64>),
    /// Each with this probability.
    Share(f64),
}

/// Faults and when they happen. A call meets the first one that applies to it.
#[derive(Debug, Clone)]
pub struct FaultPlan {
    seed: u64,
    rules: Vec<(Option<&'static str>, When, Fault)>,
}

impl FaultPlan {
    /// A plan without a fault, whose chances come from this seed.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, rules: Vec::new() }
    }

    /// Adds a fault.
    #[must_use]
    pub fn fault(mut self, when: When, fault: Fault) -> Self {
        self.rules.push((None, when, fault));
        self
    }

    /// Adds a fault of one [operation](Request::operation), such as `put_all`; others are not counted.
    #[must_use]
    pub fn fault_of(mut self, operation: &'static str, when: When, fault: Fault) -> Self {
        self.rules.push((Some(operation), when, fault));
        self
    }
}

/// A plan under way.
#[derive(Debug)]
pub(super) struct Plan {
    rules: Vec<(Option<&'static str>, When, Fault)>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    random: fastrand::Rng,
    /// How many calls each rule has seen.
    seen: Vec<u64>,
}

/// What becomes of one call.
#[derive(Debug)]
pub(super) struct Fate {
    pub(super) delay: Option<Duration>,
    pub(super) is_sent: bool,
    pub(super) end: End,
}

/// How a call ends.
#[derive(Debug)]
pub(super) enum End {
    /// As the service below answers.
    Answer,
    /// With this error, unless there is a real one.
    Error(Error),
    /// Never.
    Never,
    /// With these outcomes, once those of the rows that were sent are in their places.
    Rows { outcomes: Vec<Result<()>>, sent: Vec<usize> },
}

impl Plan {
    pub(super) fn new(plan: FaultPlan) -> Self {
        let state = State { random: fastrand::Rng::with_seed(plan.seed), seen: vec![0; plan.rules.len()] };
        Self { rules: plan.rules, state: Mutex::new(state) }
    }

    /// Decides what becomes of a call, and takes out the rows that are not sent.
    pub(super) fn fate(&self, request: &mut Request) -> Fate {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (delay, is_sent, end) = match self.draw(&mut state, request.operation()) {
            None => (None, true, End::Answer),
            Some(Fault::Delay(time)) => (Some(time), true, End::Answer),
            Some(Fault::Hang) => (None, false, End::Never),
            Some(Fault::DropAnswer) => (None, true, End::Never),
            Some(Fault::FailBefore(kind)) => (None, false, End::Error(error(kind, Outcome::NotApplied))),
            Some(Fault::FailAfter(kind)) => (None, true, End::Error(error(kind, Outcome::Unknown))),
            Some(Fault::Partial(share)) => {
                let end = leave_out(&mut state.random, share, request);
                (None, !matches!(&end, End::Rows { sent, .. } if sent.is_empty()), end)
            }
        };
        Fate { delay, is_sent, end }
    }

    /// The first fault that applies. Every rule of the operation counts the call and draws, so that one doesn't shift another.
    fn draw(&self, state: &mut State, operation: &str) -> Option<Fault> {
        let mut met = None;
        for ((of, when, fault), seen) in self.rules.iter().zip(&mut state.seen) {
            if of.is_some_and(|of| of != operation) {
                continue;
            }
            let applies = match when {
                When::Calls(calls) => calls.contains(seen),
                When::Share(share) => state.random.f64() < *share,
            };
            *seen += 1;
            met = met.or(applies.then_some(*fault));
        }
        met
    }
}

fn leave_out(random: &mut fastrand::Rng, share: f64, request: &mut Request) -> End {
    let Action::Write { write: Write::ApplyAll(mutations), .. } = &mut request.action else { return End::Answer };
    let mut outcomes = Vec::with_capacity(mutations.len());
    let mut sent = Vec::new();
    mutations.retain(|_| {
        let left_out = random.f64() < share;
        if !left_out {
            sent.push(outcomes.len());
        }
        outcomes.push(if left_out { Err(error(ErrorKind::Unavailable, Outcome::NotApplied)) } else { Ok(()) });
        !left_out
    });
    End::Rows { outcomes, sent }
}

fn error(kind: ErrorKind, outcome: Outcome) -> Error {
    Error::new(kind, "a fault that was asked for").with_outcome(outcome)
}
