//! One window of load at one point: warm-up, measurement, and what came of it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use peristyle::Client;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::chooser::{Chooser, Fresh};
use super::pace::Pace;
use super::recorder::{Recorder, UNANSWERED};
use super::worker::{Counter, Shared, nanos, work};
use crate::interrupt::Interrupt;
use crate::machine::{CpuClock, CpuShares, ServerSource, ServerUse};
use crate::space::Point;
use crate::stats::{Estimate, in_flight, real, real_len, steady_from};
use crate::target::{Measurement, Schedule};
use crate::workload::Workload;

/// How often progress and steadiness are looked at.
const TICK: Duration = Duration::from_millis(50);
/// Steadiness needs many looks, of which each must see some answers.
const SHORTEST_TICK: Duration = Duration::from_millis(5);
/// How long to wait for the last answers, above the length of the window.
const GRACE: Duration = Duration::from_secs(2);
/// The end of the time that is kept for them.
const LAST_ANSWERS: Duration = Duration::from_millis(250);

/// What a window is run with.
pub(crate) struct Load<'l> {
    pub(crate) runtime: &'l Runtime,
    pub(crate) client: &'l Client,
    pub(crate) workload: &'l Arc<Workload>,
    pub(crate) fresh: &'l Arc<Fresh>,
    pub(crate) interrupt: &'l Interrupt,
    pub(crate) point: Point,
    /// Requests per second in open loop.
    pub(crate) rate: Option<f64>,
    /// Where the server is to be seen, where it is on this machine and known.
    pub(crate) server: Option<&'l ServerSource>,
    /// The measured part.
    pub(crate) window: Duration,
    /// All of it, warm-up and last answers included.
    pub(crate) limit: Duration,
    /// The number of the window in the run.
    pub(crate) number: u64,
}

/// What is going on, a few times a second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Live {
    pub(crate) rows_per_s: f64,
    pub(crate) failed: u64,
}

/// Runs a window. The calling thread only looks on; the load runs on the runtime's own threads.
pub(crate) fn measure(load: &Load<'_>, watch: &dyn Fn(Live)) -> Measurement {
    let begun = Instant::now();
    let bucket = (load.window / 30).clamp(Duration::from_millis(20), Duration::from_millis(500));
    let shared = Arc::new(load.shared());
    // Without its thread nothing is due, which the measurement shows.
    let keeper = shared.pace.as_ref().map(|pace| pace.keep(Arc::clone(&shared.stop)));
    let mut workers = load.spawn(&shared, bucket);
    let warm_up = load.warm_up(&shared, begun, watch);
    let (cpu, server) = (CpuClock::now(), load.server.and_then(ServerSource::clock));
    let start = Instant::now();
    // The last answers need time too.
    let window = load.window.min(load.limit.saturating_sub(begun.elapsed() + LAST_ANSWERS));
    shared.end.store(nanos(start - shared.origin + window), Ordering::Relaxed);
    shared.start.store(nanos(start - shared.origin), Ordering::Release);
    let complete = load.wait(&shared, start + window, watch);
    let elapsed = start.elapsed().min(window);
    let used = Used { cpu: cpu.and_then(|cpu| cpu.shares()), server: server.and_then(|server| server.used()) };
    shared.stop.store(true, Ordering::Relaxed);
    let patience = load.window + GRACE;
    let grace = patience.min(load.limit.saturating_sub(begun.elapsed())).max(LAST_ANSWERS / 2);
    let (mut total, unanswered) = load.gather(&mut workers, bucket, grace);
    // Where the wait was cut short, nobody knows whether the answers would have come.
    let gave_up = unanswered > 0 && grace < patience;
    if unanswered > 0 && !gave_up && complete {
        total.fail(UNANSWERED, unanswered);
    }
    let partial = !complete || gave_up || window < load.window;
    if let Some(Ok(keeper)) = keeper {
        // It ends by itself; a panic in it would have shown as nothing started.
        let _ = keeper.join();
    }
    let intended = shared.pace.as_ref().map(|pace| pace.between(start, start + elapsed));
    let schedule = intended.map(|intended| Schedule { intended, dropped: intended.saturating_sub(total.started) });
    let full = usize::try_from(elapsed.as_nanos() / bucket.as_nanos().max(1)).unwrap_or(usize::MAX);
    let measured = summarise(load, total, Times { elapsed, bucket, full, warm_up, partial }, used);
    Measurement { schedule, ..measured }
}

impl Load<'_> {
    fn shared(&self) -> Shared {
        let origin = Instant::now();
        Shared {
            client: self.client.clone(),
            origin,
            pace: self.rate.map(|rate| Arc::new(Pace::new(origin, rate))),
            start: AtomicU64::new(u64::MAX),
            end: AtomicU64::new(u64::MAX),
            stop: Arc::new(AtomicBool::new(false)),
            live: (0..self.point.threads).map(|_| Counter::default()).collect(),
        }
    }

    fn spawn(&self, shared: &Arc<Shared>, bucket: Duration) -> JoinSet<Recorder> {
        let mut workers = JoinSet::new();
        let batch = usize::try_from(self.point.batch).unwrap_or(usize::MAX);
        for worker in 0..self.point.threads {
            let (workload, fresh) = (Arc::clone(self.workload), Arc::clone(self.fresh));
            let chooser = Chooser::new(workload, fresh, u64::from(worker), self.number, batch);
            let recorder = Recorder::new(self.workload.operations.len(), bucket);
            let place = usize::try_from(worker).unwrap_or(usize::MAX);
            workers.spawn_on(work(Arc::clone(shared), place, chooser, recorder), self.runtime.handle());
        }
        workers
    }

    /// Waits until throughput is steady, for an eighth of the window at least and half of it at most.
    fn warm_up(&self, shared: &Shared, begun: Instant, watch: &dyn Fn(Live)) -> Duration {
        let (least, most) = (self.window / 8, (self.window / 2).min(self.limit / 2));
        let mut rates = Vec::new();
        let mut seen = (Instant::now(), 0);
        loop {
            let is_steady = begun.elapsed() >= least && steady_from(&rates).is_some();
            if is_steady || begun.elapsed() >= most || self.interrupt.is_set() {
                return begun.elapsed();
            }
            sleep((self.window / 100).clamp(SHORTEST_TICK, TICK));
            rates.push(look(shared, &mut seen, watch));
        }
    }

    /// Waits for the end of the window; whether it came.
    fn wait(&self, shared: &Shared, end: Instant, watch: &dyn Fn(Live)) -> bool {
        let mut last = (Instant::now(), live_rows(shared));
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            if self.interrupt.is_set() {
                return false;
            }
            sleep(left.min(TICK));
            look(shared, &mut last, watch);
        }
    }

    /// Collects what the workers did, and gives up those that get no answer; returns how many.
    fn gather(&self, workers: &mut JoinSet<Recorder>, bucket: Duration, grace: Duration) -> (Recorder, u64) {
        let mut total = Recorder::new(self.workload.operations.len(), bucket);
        self.runtime.block_on(async {
            let all = async {
                while let Some(done) = workers.join_next().await {
                    match done {
                        Ok(recorder) => total.merge(recorder),
                        Err(_) => total.fail("client_fault", 1),
                    }
                }
            };
            let _ = tokio::time::timeout(grace, all).await;
        });
        let unanswered = workers.len() as u64;
        workers.abort_all();
        (total, unanswered)
    }
}

fn live_rows(shared: &Shared) -> u64 {
    shared.live.iter().map(|counter| counter.rows.load(Ordering::Relaxed)).sum()
}

/// Shows progress, and returns the rate since the last look.
fn look(shared: &Shared, last: &mut (Instant, u64), watch: &dyn Fn(Live)) -> f64 {
    let now = (Instant::now(), live_rows(shared));
    let seconds = (now.0 - last.0).as_secs_f64().max(f64::EPSILON);
    let rows_per_s = real(now.1.saturating_sub(last.1)) / seconds;
    *last = now;
    let failed = shared.live.iter().map(|counter| counter.failed.load(Ordering::Relaxed)).sum();
    watch(Live { rows_per_s, failed });
    rows_per_s
}

/// What client and server used.
struct Used {
    cpu: Option<CpuShares>,
    server: Option<ServerUse>,
}

struct Times {
    elapsed: Duration,
    bucket: Duration,
    /// How many buckets are whole.
    full: usize,
    warm_up: Duration,
    partial: bool,
}

fn summarise(load: &Load<'_>, mut total: Recorder, times: Times, used: Used) -> Measurement {
    // What was counted after an interrupt, or lies in a bucket that isn't whole, has no rate.
    total.buckets.resize(times.full, super::recorder::Bucket::default());
    let seconds = times.bucket.as_secs_f64();
    let rates: Vec<f64> = total.buckets.iter().map(|bucket| bucket.flow / seconds).collect();
    let requests: u64 = total.buckets.iter().map(|bucket| bucket.requests).sum();
    let measured = seconds * real_len(times.full);
    // The median: a thread that is displaced while it makes a request would count for many.
    let making = total.generating.as_ref().map_or(0.0, |histogram| real(histogram.value_at_quantile(0.5)) / 1e9);
    let generator = making * real(requests) / measured.max(f64::EPSILON);
    // What was sent is in flight from then on, however late it was sent.
    let times_in_flight = if load.rate.is_some() { &total.service } else { &total.latencies };
    let answered: f64 = times_in_flight.iter().map(|histogram| real(histogram.len())).sum();
    let waited: f64 = times_in_flight.iter().map(|histogram| histogram.mean() * real(histogram.len()) / 1e9).sum();
    let mean_time = Duration::try_from_secs_f64(waited / answered).unwrap_or_default();
    let service = if load.rate.is_some() { total.service } else { Vec::new() };
    Measurement {
        rows: total.buckets.iter().map(|bucket| bucket.rows).sum(),
        requests,
        missing: total.missing,
        errors: total.errors.into_iter().map(|(class, count)| (class.to_owned(), count)).collect(),
        example: total.example,
        rate: Estimate::of_series(&rates),
        latencies: by_name(load, total.latencies),
        service: by_name(load, service),
        schedule: None,
        in_flight: (answered > 0.0).then(|| in_flight(answered / measured.max(f64::EPSILON), mean_time)),
        elapsed: times.elapsed,
        warm_up: times.warm_up,
        cpu: used.cpu,
        server: used.server,
        generator,
        partial: times.partial,
    }
}

/// Histograms by the names of the operations; two operations of one kind are one in the results.
fn by_name(load: &Load<'_>, histograms: Vec<Histogram<u64>>) -> BTreeMap<&'static str, Histogram<u64>> {
    let names = load.workload.operations.iter().map(|operation| operation.kind.name());
    let mut found = BTreeMap::new();
    for (name, histogram) in names.zip(histograms) {
        match found.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(histogram);
            }
            // Histograms that grow take every value.
            Entry::Occupied(mut entry) => drop(Histogram::add(entry.get_mut(), histogram)),
        }
    }
    found
}
