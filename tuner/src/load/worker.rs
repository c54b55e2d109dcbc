//! One logical client, in a closed loop or at a pace that all share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use peristyle::request::{Action, Read};
use peristyle::response::Page;
use peristyle::{Client, Request, Response, Result};

use super::chooser::Chooser;
use super::pace::Pace;
use super::recorder::{Recorder, Tally};
use crate::stats::real;

/// One request in so many is timed while it is made.
const SAMPLE: u64 = 64;

/// What all workers of a window share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) origin: Instant,
    /// Nanoseconds from the origin to the start of what is measured; `u64::MAX` during warm-up.
    pub(crate) start: AtomicU64,
    /// Nanoseconds from the origin to its end.
    pub(crate) end: AtomicU64,
    pub(crate) stop: Arc<AtomicBool>,
    /// When requests are to begin, in open loop.
    pub(crate) pace: Option<Arc<Pace>>,
    /// Rows and failures so far by worker, for progress and the steadiness of the warm-up.
    pub(crate) live: Vec<Counter>,
}

/// A worker's own counters, on a cache line of their own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Counter {
    pub(crate) rows: AtomicU64,
    pub(crate) failed: AtomicU64,
}

/// Sends one request after the other until the window stops. It shares nothing with other workers but the client, and the pace.
pub(crate) async fn work(shared: Arc<Shared>, worker: usize, mut chooser: Chooser, mut recorder: Recorder) -> Recorder {
    let mut sent: u64 = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        let intended = match &shared.pace {
            None => None,
            Some(pace) => match pace.start().await {
                Some(intended) => Some(intended),
                None => break,
            },
        };
        let begun = Instant::now();
        let (operation, request) = chooser.next(&shared.client);
        let start = if sent.is_multiple_of(SAMPLE) {
            let made = Instant::now();
            recorder.generated(made - begun);
            made
        } else {
            begun
        };
        sent += 1;
        // Starts behind the end of the window are dropped, as are those that nobody has taken.
        if intended.is_some_and(|intended| shared.offset(intended).is_some() && shared.offset(start).is_some()) {
            recorder.started += 1;
        }
        let tally = Tally::of(&execute(&shared.client, request).await);
        let end = Instant::now();
        if let Some(counter) = shared.live.get(worker) {
            counter.rows.fetch_add(tally.rows, Ordering::Relaxed);
            counter.failed.fetch_add(tally.failed.len() as u64, Ordering::Relaxed);
        }
        if let Some((from, to, share)) = shared.overlap(start, end) {
            recorder.flow(from, to, real(tally.rows) * share);
        }
        if let Some(at) = shared.offset(end) {
            if intended.is_some() && tally.failed.is_empty() {
                recorder.record_service(operation, end - start);
            }
            recorder.record(operation, at, end - intended.unwrap_or(start), tally);
        }
        // An engine in the process may answer without ever waiting; others must get their turn.
        tokio::task::consume_budget().await;
    }
    recorder
}

impl Shared {
    /// How far into the measured window an instant lies; `None` outside it.
    fn offset(&self, instant: Instant) -> Option<Duration> {
        let at = nanos(instant - self.origin);
        let start = self.start.load(Ordering::Acquire);
        let inside = at >= start && at < self.end.load(Ordering::Relaxed);
        inside.then(|| Duration::from_nanos(at - start))
    }
}

impl Shared {
    /// Which part of a request's time lies in the measured window, and its share of the whole; `None` if none does.
    fn overlap(&self, begun: Instant, ended: Instant) -> Option<(Duration, Duration, f64)> {
        let (begun, ended) = (nanos(begun - self.origin), nanos(ended - self.origin));
        let start = self.start.load(Ordering::Acquire);
        let (from, to) = (begun.max(start), ended.min(self.end.load(Ordering::Relaxed)));
        let share = if ended > begun { real(to.checked_sub(from)?) / real(ended - begun) } else { 1.0 };
        (from <= to && share > 0.0)
            .then(|| (Duration::from_nanos(from - start), Duration::from_nanos(to - start), share))
    }
}

/// A duration in nanoseconds, as long as centuries aren't enough.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// One operation: one request, or all the pages of a query up to its limit.
async fn execute(client: &Client, request: Request) -> Result<Response> {
    let Action::Read { table, read: Read::Query(query) } = &request.action else {
        return client.call(request).await;
    };
    let (table, mut query) = (Arc::clone(table), query.clone());
    let mut page = client.call(request).await?.into_page()?;
    let mut rows = std::mem::take(&mut page.rows);
    while page.more && rows.len() < query.limit {
        query.after = rows.last().map(|row| row.key(&table)).transpose()?;
        let mut rest = query.clone();
        rest.limit -= rows.len();
        page = client.call(Request::read(Arc::clone(&table), Read::Query(rest))).await?.into_page()?;
        rows.append(&mut page.rows);
    }
    Ok(Response::Page(Page { rows, more: page.more }))
}
