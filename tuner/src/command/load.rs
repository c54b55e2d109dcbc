//! `tuner load`: the rows that reading workloads read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use peristyle::request::Write;
use peristyle::{Client, Request};
use tokio::task::JoinSet;

use crate::console::{Console, bar};
use crate::failure::{Exit, Failure, Result};
use crate::interrupt::Interrupt;
use crate::load::class_of;
use crate::plan::LoadPlan;
use crate::report::rate;
use crate::stats::real;
use crate::target::{LiveTarget, Session};
use crate::workload::Workload;

/// How a temporary engine is filled before a sweep.
const FILLERS: u32 = 16;
const FILL_BATCH: u64 = 100;
/// A load ends when it is done.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Loads a workload's rows and says how that went.
pub(crate) fn run(plan: &LoadPlan) -> Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let console = Console::new(false);
    let deadline = Instant::now() + FOR_EVER;
    let target = LiveTarget::open(&plan.target, &plan.workload, plan.point, &interrupt, deadline)?;
    target.prepare(plan.create)?;
    let begun = Instant::now();
    let job = Job {
        workload: Arc::clone(&plan.workload),
        rows: plan.rows,
        batch: plan.point.batch.into(),
        interrupt,
        deadline,
    };
    let loaded = job.run(target.session()?, plan.point.threads)?;
    let seconds = begun.elapsed().as_secs_f64();
    let speed = rate(real(loaded.rows) / seconds.max(f64::EPSILON));
    console.line(&format!(
        "loaded    {} rows into {} in {seconds:.1} s, {speed} rows/s",
        loaded.rows,
        plan.workload.table.name()
    ));
    console.line(&format!("failed    {}", loaded.failures()));
    Ok(match (loaded.failed.is_empty(), job.interrupt.is_set()) {
        (_, true) => Exit::Interrupted,
        (true, false) => Exit::Done,
        (false, false) => Exit::Failed,
    })
}

/// Fills an engine that lives no longer than the sweep. A sweep over half of the rows would be a lie, so any failure ends it.
pub(crate) fn fill(
    session: &Session,
    workload: &Arc<Workload>,
    interrupt: &Interrupt,
    deadline: Instant,
) -> Result<()> {
    let (workload, rows, interrupt) = (Arc::clone(workload), workload.rows.count(), interrupt.clone());
    let job = Job { workload, rows, batch: FILL_BATCH, interrupt, deadline };
    let loaded = job.run(session, FILLERS)?;
    if job.interrupt.is_set() {
        return Err(Failure::interrupted());
    }
    if !loaded.failed.is_empty() {
        return Err(Failure::input(format!("can't load the rows to read: {}", loaded.failures())));
    }
    if loaded.rows < rows {
        return Err(Failure::too_late(&format!("{} of {rows} rows to read were loaded", loaded.rows)));
    }
    Ok(())
}

/// What was loaded.
#[derive(Debug, Default)]
struct Loaded {
    rows: u64,
    failed: BTreeMap<&'static str, u64>,
    example: Option<String>,
}

impl Loaded {
    fn fail(&mut self, error: &peristyle::Error, rows: u64) {
        *self.failed.entry(class_of(error)).or_default() += rows;
        self.example.get_or_insert_with(|| error.to_string());
    }

    fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        for (class, count) in other.failed {
            *self.failed.entry(class).or_default() += count;
        }
        self.example = self.example.take().or(other.example);
    }

    fn failures(&self) -> String {
        if self.failed.is_empty() {
            return "0 rows".into();
        }
        let classes: Vec<String> = self.failed.iter().map(|(class, count)| format!("{count} rows {class}")).collect();
        format!("{}; the first: {}", classes.join(", "), self.example.as_deref().unwrap_or("unknown"))
    }
}

/// One load.
#[derive(Debug, Clone)]
struct Job {
    workload: Arc<Workload>,
    rows: u64,
    batch: u64,
    interrupt: Interrupt,
    deadline: Instant,
}

impl Job {
    fn run(&self, session: &Session, threads: u32) -> Result<Loaded> {
        let (next, progress) = (Arc::new(AtomicU64::new(0)), bar(self.rows));
        let mut workers = JoinSet::new();
        for _ in 0..threads {
            let worker = self.clone().work(session.client.clone(), Arc::clone(&next), progress.clone());
            workers.spawn_on(worker, session.runtime.handle());
        }
        let mut loaded = Loaded::default();
        while let Some(done) = session.runtime.block_on(workers.join_next()) {
            loaded.merge(done.map_err(|error| Failure::input(format!("a loading thread failed: {error}")))?);
        }
        progress.finish_and_clear();
        Ok(loaded)
    }

    /// Writes one batch after the other until none is left.
    async fn work(self, client: Client, next: Arc<AtomicU64>, progress: ProgressBar) -> Loaded {
        let mut loaded = Loaded::default();
        while !self.interrupt.is_set() && Instant::now() < self.deadline {
            let from = next.fetch_add(self.batch, Ordering::Relaxed);
            if from >= self.rows {
                break;
            }
            let to = (from + self.batch).min(self.rows);
            let rows = (from..to).map(|index| self.workload.rows.put(index, client.next_write_time())).collect();
            let request = Request::write(Arc::clone(&self.workload.table), Write::ApplyAll(rows));
            let answer = client.call(request).await;
            match answer.and_then(peristyle::Response::into_outcomes) {
                Ok(outcomes) => {
                    for outcome in outcomes {
                        match outcome {
                            Ok(()) => loaded.rows += 1,
                            Err(error) => loaded.fail(&error, 1),
                        }
                    }
                }
                Err(error) => loaded.fail(&error, to - from),
            }
            progress.inc(to - from);
            tokio::task::consume_budget().await;
        }
        loaded
    }
}
