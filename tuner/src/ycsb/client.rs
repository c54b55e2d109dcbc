//! A load or run: the workers, and what they share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use peristyle_ycsb::{Settings, Status, Store};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::generator::Acknowledged;
use super::measurement::{Measuring, Sheet};
use super::options::Phase;
use super::watch::Watch;
use super::worker::Worker;
use super::workload::Core;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::stats::real;

/// How often the end is looked for.
const TICK: Duration = Duration::from_millis(50);
/// In a short window, whose rate is to be seen many times.
const SHORTEST_TICK: Duration = Duration::from_millis(5);

/// A load or run.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) phase: Phase,
    pub(crate) store: Store,
    pub(crate) core: Core,
    pub(crate) measuring: Measuring,
    /// How many operations; `None` for as long as there is time.
    pub(crate) operations: Option<u64>,
    pub(crate) threads: u32,
    /// Operations per second.
    pub(crate) rate: Option<f64>,
    /// What is done until then is no part of the result.
    pub(crate) warm_up: Duration,
    /// When it ends at the latest.
    pub(crate) limit: Option<Duration>,
    /// Seconds between status lines.
    pub(crate) status_interval: Option<u64>,
    pub(crate) label: String,
    /// How the table is written.
    pub(crate) settings: Settings,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) operations: u64,
    pub(crate) elapsed: Duration,
    pub(crate) warm_up: Duration,
    pub(crate) sheet: Sheet,
    /// One of the failures, for people.
    pub(crate) example: Option<String>,
    /// Writes that failed in batches, or without being waited for.
    pub(crate) lost: u64,
    /// How many records there are now.
    pub(crate) records: u64,
    /// Operations per second between looks, behind the warm-up.
    pub(crate) rates: Vec<f64>,
}

/// What all workers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) job: Job,
    pub(super) origin: Instant,
    pub(super) stop: AtomicBool,
    /// The number of the next record to load.
    pub(super) next_record: AtomicU64,
    pub(super) inserted: Acknowledged,
    /// The requests of a sequential choice.
    pub(super) sequence: AtomicU64,
    /// The starts of a limited rate.
    starts: AtomicU64,
    done: Vec<Done>,
    sheets: Vec<Mutex<Sheet>>,
    example: Mutex<Option<String>>,
    /// Writes that failed in batches, or without being waited for.
    pub(super) lost: AtomicU64,
}

/// A worker's count, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Done(AtomicU64);

impl Job {
    fn tick(&self) -> Duration {
        match self.limit {
            Some(limit) if !self.warm_up.is_zero() => (limit / 100).clamp(SHORTEST_TICK, TICK),
            _ => TICK,
        }
    }

    /// Runs it to its end, or until Ctrl-C.
    pub(crate) fn run(self, runtime: &Handle, interrupt: &Interrupt) -> Result<Outcome> {
        let threads = u64::from(self.threads).min(self.operations.unwrap_or(u64::MAX));
        if threads < u64::from(self.threads) {
            eprintln!("warning: more threads than operations; {threads} are enough");
        }
        let shared = Arc::new(Shared::new(self, threads));
        let mut workers = JoinSet::new();
        for number in 0..threads {
            let quota = shared.job.operations.map(|all| all / threads + u64::from(number < all % threads));
            workers.spawn_on(Worker::new(Arc::clone(&shared), number, quota).run(), runtime);
        }
        let mut watch = Watch::new(&shared);
        let tick = shared.job.tick();
        let fault = runtime.block_on(async {
            let mut fault = None;
            loop {
                match tokio::time::timeout(tick, workers.join_next()).await {
                    Ok(None) => return fault,
                    Ok(Some(done)) => fault = fault.or(done.err()),
                    Err(_) => watch.look(interrupt),
                }
            }
        });
        if let Some(fault) = fault {
            return Err(Failure::input(format!("a worker failed: {fault}")));
        }
        let (elapsed, rates) = (shared.origin.elapsed(), watch.rates());
        let (warm_up, before) = watch.warm_up();
        let sheet = watch.finish()?;
        let example = shared.example.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (operations, records) = (shared.done() - before, shared.inserted.limit());
        let elapsed = elapsed.saturating_sub(warm_up);
        Ok(Outcome {
            operations,
            elapsed,
            warm_up,
            sheet,
            example,
            lost: shared.lost.load(Ordering::Relaxed),
            records,
            rates,
        })
    }
}

impl Shared {
    fn new(job: Job, threads: u64) -> Self {
        Self {
            origin: Instant::now(),
            stop: AtomicBool::new(false),
            next_record: AtomicU64::new(job.core.insert_start),
            inserted: Acknowledged::new(job.core.records),
            sequence: AtomicU64::new(0),
            starts: AtomicU64::new(0),
            done: (0..threads).map(|_| Done::default()).collect(),
            sheets: (0..threads).map(|_| Mutex::default()).collect(),
            example: Mutex::default(),
            lost: AtomicU64::new(0),
            job,
        }
    }

    /// When the next operation is to begin, where the rate is limited. The number of workers has no part in it.
    pub(super) fn intended(&self) -> Option<Instant> {
        let rate = self.job.rate?;
        let number = self.starts.fetch_add(1, Ordering::Relaxed);
        self.origin.checked_add(Duration::try_from_secs_f64(real(number) / rate).ok()?)
    }

    pub(super) fn count(&self, worker: usize) {
        if let Some(done) = self.done.get(worker) {
            done.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Operations so far.
    pub(super) fn done(&self) -> u64 {
        self.done.iter().map(|done| done.0.load(Ordering::Relaxed)).sum()
    }

    /// Changes what a worker measured.
    pub(super) fn sheet(&self, worker: usize, change: impl FnOnce(&mut Sheet, &Measuring, Instant)) {
        if let Some(sheet) = self.sheets.get(worker) {
            let mut sheet = sheet.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut sheet, &self.job.measuring, self.origin);
        }
    }

    /// Takes away all that was measured since the last time.
    pub(super) fn take(&self) -> Sheet {
        let mut total = Sheet::default();
        for sheet in &self.sheets {
            let taken = std::mem::take(&mut *sheet.lock().unwrap_or_else(PoisonError::into_inner));
            total.merge(taken, &self.job.measuring);
        }
        total
    }

    /// The status of an answer; the first failure is kept for people.
    pub(super) fn status<T>(&self, answer: &peristyle::Result<T>) -> Status {
        match answer {
            Ok(_) => Status::Ok,
            Err(error) => {
                self.tell(error);
                Status::from(error)
            }
        }
    }

    /// Keeps the first failure.
    pub(super) fn tell(&self, error: &peristyle::Error) {
        self.example.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.to_string());
    }
}
