//! Metrics, whose handles are looked up once for each operation.

use std::sync::{Arc, OnceLock};

use metrics::{Gauge, Histogram, counter, gauge, histogram};
use tokio::time::Instant;

use super::{Eye, Sight};
use crate::error::{Error, ErrorKind, TimeoutPhase};
use crate::layers::names::{CLIENT_TIMEOUTS, IN_FLIGHT, MESSAGES, REQUESTS};
use crate::request::{Action, Read, Request, Write};

/// Operations on data; those on the schema are too rare to keep handles for.
const SLOTS: usize = 9;

pub(super) struct Meters {
    system: &'static str,
    sight: Sight,
    successes: [OnceLock<Histogram>; SLOTS],
    in_flight: OnceLock<Option<Gauge>>,
    is_recorded: OnceLock<bool>,
}

impl Meters {
    pub(super) fn new(system: &'static str, sight: Sight) -> Self {
        Self { system, sight, successes: Default::default(), in_flight: OnceLock::new(), is_recorded: OnceLock::new() }
    }

    /// Whether there is a recorder, as the first request finds it. The facade doesn't tell, but the recorder that stands in for
    /// none has no state, and one that keeps or sends what it gets has.
    fn is_recorded(&self) -> bool {
        *self.is_recorded.get_or_init(|| metrics::with_recorder(|recorder| size_of_val(recorder) > 0))
    }

    fn times(&self, operation: &'static str, exception: &'static str) -> Histogram {
        let name = match self.sight {
            Sight::Call => REQUESTS,
            Sight::Attempt => MESSAGES,
        };
        histogram!(name, "system" => self.system, "operation" => operation, "exception" => exception)
    }

    fn in_flight(&self) -> Option<&Gauge> {
        let gauge = || (self.sight == Sight::Attempt).then(|| gauge!(IN_FLIGHT, "system" => self.system));
        self.in_flight.get_or_init(gauge).as_ref()
    }

    fn record(&self, slot: Option<u8>, operation: &'static str, error: Option<&Error>, seconds: f64) {
        let Some(error) = error else {
            match slot.and_then(|slot| self.successes.get(usize::from(slot))) {
                Some(success) => success.get_or_init(|| self.times(operation, "none")).record(seconds),
                None => self.times(operation, "none").record(seconds),
            }
            return;
        };
        self.times(operation, error.kind().name()).record(seconds);
        let timed_out = matches!(error.kind(), ErrorKind::Timeout(TimeoutPhase::Deadline | TimeoutPhase::Queue));
        if self.sight == Sight::Call && timed_out {
            counter!(CLIENT_TIMEOUTS, "system" => self.system).increment(1);
        }
    }
}

impl std::fmt::Debug for Meters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meters").field("system", &self.system).field("sight", &self.sight).finish_non_exhaustive()
    }
}

/// The place of an operation among those with a handle.
fn slot(action: &Action) -> Option<u8> {
    match action {
        Action::Read { read: Read::Get { .. }, .. } => Some(0),
        Action::Read { read: Read::GetAll { .. }, .. } => Some(1),
        Action::Read { read: Read::Query(_), .. } => Some(2),
        Action::Read { read: Read::Scan(_), .. } => Some(3),
        Action::Write { write: Write::Apply(mutation), .. } if mutation.is_delete() => Some(4),
        Action::Write { write: Write::Apply(_), .. } => Some(5),
        Action::Write { write: Write::ApplyAll(_), .. } => Some(6),
        Action::Write { write: Write::Increment { .. }, .. } => Some(7),
        Action::Write { write: Write::CompareAndPut { .. }, .. } => Some(8),
        Action::Schema(_) => None,
    }
}

/// A request that is timed, and counted as under way until it is stopped or dropped.
#[derive(Debug)]
pub(super) struct Meter {
    eye: Arc<Eye>,
    slot: Option<u8>,
    operation: &'static str,
    start: Instant,
}

impl Meter {
    /// Starts the time, if there is a recorder for it.
    pub(super) fn start(eye: &Arc<Eye>, request: &Request) -> Option<Self> {
        if !eye.meters.is_recorded() {
            return None;
        }
        if let Some(gauge) = eye.meters.in_flight() {
            gauge.increment(1.0);
        }
        let (slot, operation) = (slot(&request.action), request.operation());
        Some(Self { eye: Arc::clone(eye), slot, operation, start: Instant::now() })
    }

    pub(super) fn stop(self, error: Option<&Error>) {
        self.eye.meters.record(self.slot, self.operation, error, self.start.elapsed().as_secs_f64());
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(gauge) = self.eye.meters.in_flight() {
            gauge.decrement(1.0);
        }
    }
}
