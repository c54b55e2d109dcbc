//! What the autopilot needs of the requests under way, and what it does to the limit.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::layers::autopilot::{Autopilot, Pilot, Sample};
use crate::layers::names::CONCURRENCY_LIMIT;
use crate::request::RequestOptions;
use crate::response::Response;

/// A window is at least this long, and at most.
const WINDOW: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// A limit that the autopilot moves.
#[derive(Debug)]
pub(super) struct Steering {
    state: Mutex<State>,
    node: &'static str,
}

#[derive(Debug)]
struct State {
    pilot: Pilot,
    limit: usize,
    window: Window,
}

/// What ended since a limit began to hold.
#[derive(Debug)]
struct Window {
    /// What ends before is the work of the limit before.
    since: Instant,
    succeeded: u64,
    failed: u64,
    ended: u64,
    in_use: u64,
    latency: Duration,
}

impl Window {
    fn new(since: Instant) -> Self {
        Self { since, succeeded: 0, failed: 0, ended: 0, in_use: 0, latency: Duration::ZERO }
    }

    /// Long enough for four answers one after the other.
    fn is_full(&self, elapsed: Duration) -> bool {
        elapsed >= (4 * self.mean_latency()).clamp(WINDOW.0, WINDOW.1)
    }

    fn mean_latency(&self) -> Duration {
        self.latency / u32::try_from(self.ended.max(1)).unwrap_or(u32::MAX)
    }

    fn sample(&self, elapsed: Duration) -> Sample {
        #[expect(clippy::cast_precision_loss, reason = "counts of one window")]
        let in_flight = self.in_use as f64 / self.ended.max(1) as f64;
        Sample { elapsed, succeeded: self.succeeded, failed: self.failed, ended: self.ended, in_flight }
    }
}

impl Steering {
    pub(super) fn new(autopilot: Autopilot, node: &'static str) -> Self {
        let pilot = autopilot.pilot();
        let limit = pilot.limit();
        Self { state: Mutex::new(State { pilot, limit, window: Window::new(Instant::now()) }), node }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limit as it is now.
    pub(super) fn limit(&self) -> usize {
        self.state().limit
    }

    /// Flies on within another range, that of a smaller share.
    pub(super) fn share(&self, autopilot: Autopilot, resize: impl FnOnce(usize)) {
        let mut state = self.state();
        state.pilot.share(autopilot);
        state.window = Window::new(Instant::now());
        state.limit = state.pilot.limit();
        resize(state.limit);
    }

    /// Notes a request that has ended while so many were under way; moves the limit when a window is full.
    pub(super) fn note(&self, flight: &Flight, end: End, in_use: usize, resize: impl FnOnce(usize)) {
        let now = Instant::now();
        let mut state = self.state();
        let window = &mut state.window;
        if now < window.since {
            return;
        }
        window.succeeded += end.succeeded;
        window.failed += end.failed;
        window.ended += 1;
        window.in_use += u64::try_from(in_use).unwrap_or(u64::MAX);
        window.latency += now - flight.sent;
        let elapsed = now.saturating_duration_since(window.since);
        if window.is_full(elapsed) {
            let sample = window.sample(elapsed);
            state.pilot.observe(&sample);
            let limit = state.pilot.limit();
            // A latency later the new limit has taken effect.
            let settled = if limit == state.limit { now } else { now + state.window.mean_latency().min(WINDOW.1) };
            state.window = Window::new(settled);
            state.limit = limit;
            resize(limit);
            #[expect(clippy::cast_precision_loss, reason = "a number of requests")]
            metrics::gauge!(CONCURRENCY_LIMIT, "node" => self.node).set(limit as f64);
        }
    }
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Flight {
    sent: Instant,
    rows: usize,
    options: RequestOptions,
}

impl Flight {
    pub(super) fn new(rows: usize, options: RequestOptions) -> Self {
        Self { sent: Instant::now(), rows, options }
    }

    /// Dropped without an answer: a failure if its time was over, and nothing if its caller went away.
    pub(super) fn dropped(&self) -> Option<End> {
        self.options.is_over().then_some(End { succeeded: 0, failed: 1 })
    }

    pub(super) fn answered(&self, answer: &Result<Response>) -> End {
        let rows = u64::try_from(self.rows).unwrap_or(u64::MAX);
        match answer {
            Ok(Response::Outcomes(outcomes)) => {
                let errors = || outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
                let wrong = u64::try_from(errors().count()).unwrap_or(u64::MAX);
                End { succeeded: rows.saturating_sub(wrong), failed: u64::from(errors().any(tells_of_load)) }
            }
            Ok(_) => End { succeeded: rows, failed: 0 },
            Err(error) => End { succeeded: 0, failed: u64::from(tells_of_load(error)) },
        }
    }
}

/// How a request ended: rows that were done, and whether it tells of too much load.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    succeeded: u64,
    failed: u64,
}

fn tells_of_load(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Overloaded | ErrorKind::Throttled | ErrorKind::Timeout(_))
}
