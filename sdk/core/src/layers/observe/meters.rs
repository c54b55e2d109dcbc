//! Metrics, whose handles are looked up once for each operation.

use std::sync::{Arc, OnceLock};

use metrics::{Gauge, Histogram, counter, gauge, histogram};
use tokio::time::Instant;

use super::{Eye, Sight};
use crate::error::{Error, ErrorKind, TimeoutPhase};
use crate::layers::names::{
    ABORTED, CLIENT_TIMEOUTS, IN_FLIGHT, MESSAGES, OTHER_ERRORS, READ_TIMEOUTS, REQUESTS, UNAVAILABLES, UNSENT,
    WRITE_TIMEOUTS,
};
use crate::request::{Action, Read, Request, RequestOptions, Write};

/// Operations on data; those on the schema are too rare to keep handles for.
const SLOTS: usize = 9;

pub(super) struct Meters {
    system: &'static str,
    sight: Sight,
    node: &'static str,
    successes: [OnceLock<Histogram>; SLOTS],
    in_flight: OnceLock<Option<Gauge>>,
}

impl Meters {
    pub(super) fn new(system: &'static str, sight: Sight, node: &'static str) -> Self {
        Self { system, sight, node, successes: Default::default(), in_flight: OnceLock::new() }
    }

    fn times(&self, operation: &'static str, exception: &'static str) -> Histogram {
        let Self { system, node, .. } = *self;
        match self.sight {
            Sight::Call => {
                histogram!(REQUESTS, "system" => system, "operation" => operation, "exception" => exception)
            }
            Sight::Attempt => {
                histogram!(MESSAGES, "system" => system, "node" => node, "operation" => operation, "exception" => exception)
            }
        }
    }

    fn in_flight(&self) -> Option<&Gauge> {
        let gauge = || {
            let is_attempt = self.sight == Sight::Attempt;
            is_attempt.then(|| gauge!(IN_FLIGHT, "system" => self.system, "node" => self.node))
        };
        self.in_flight.get_or_init(gauge).as_ref()
    }

    fn succeeded(&self, slot: Option<u8>, operation: &'static str, seconds: f64) {
        match slot.and_then(|slot| self.successes.get(usize::from(slot))) {
            Some(success) => success.get_or_init(|| self.times(operation, "none")).record(seconds),
            None => self.times(operation, "none").record(seconds),
        }
    }

    fn failed(&self, is_read: bool, operation: &'static str, kind: ErrorKind, seconds: f64) {
        self.times(operation, kind.name()).record(seconds);
        match self.sight {
            Sight::Attempt => {
                counter!(error_of_node(kind, is_read), "system" => self.system, "node" => self.node).increment(1);
            }
            Sight::Call if matches!(kind, ErrorKind::Timeout(TimeoutPhase::Deadline | TimeoutPhase::Queue)) => {
                counter!(CLIENT_TIMEOUTS, "system" => self.system).increment(1);
            }
            Sight::Call => {}
        }
    }
}

/// The name under which an error of an attempt is counted.
fn error_of_node(kind: ErrorKind, is_read: bool) -> &'static str {
    match kind {
        ErrorKind::Timeout(TimeoutPhase::Attempt | TimeoutPhase::Deadline) if is_read => READ_TIMEOUTS,
        ErrorKind::Timeout(TimeoutPhase::Attempt | TimeoutPhase::Deadline) => WRITE_TIMEOUTS,
        ErrorKind::Timeout(TimeoutPhase::Connect | TimeoutPhase::Queue) => UNSENT,
        ErrorKind::ConnectionLost => ABORTED,
        ErrorKind::Unavailable => UNAVAILABLES,
        _ => OTHER_ERRORS,
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
    meters: Arc<Meters>,
    slot: Option<u8>,
    operation: &'static str,
    is_read: bool,
    options: RequestOptions,
    start: Instant,
    is_stopped: bool,
}

impl Meter {
    /// Starts the time, if there is a recorder for it.
    pub(super) fn start(eye: &Eye, request: &Request) -> Option<Self> {
        if !eye.is_recorded() {
            return None;
        }
        let meters = Arc::clone(eye.meters(request));
        if let Some(gauge) = meters.in_flight() {
            gauge.increment(1.0);
        }
        let (slot, operation) = (slot(&request.action), request.operation());
        let is_read = matches!(request.action, Action::Read { .. });
        Some(Self {
            meters,
            slot,
            operation,
            is_read,
            options: request.options,
            start: Instant::now(),
            is_stopped: false,
        })
    }

    pub(super) fn stop(mut self, error: Option<&Error>) {
        self.is_stopped = true;
        let seconds = self.start.elapsed().as_secs_f64();
        match error {
            None => self.meters.succeeded(self.slot, self.operation, seconds),
            Some(error) => self.meters.failed(self.is_read, self.operation, error.kind(), seconds),
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(gauge) = self.meters.in_flight() {
            gauge.decrement(1.0);
        }
        // The layer that set the limit drops what runs into it.
        if !self.is_stopped && self.meters.sight == Sight::Attempt && self.options.is_over() {
            let kind = ErrorKind::Timeout(TimeoutPhase::Attempt);
            self.meters.failed(self.is_read, self.operation, kind, self.start.elapsed().as_secs_f64());
        }
    }
}
