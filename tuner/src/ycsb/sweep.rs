//! A workload of YCSB's as the target of a search.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use peristyle::Client;
use peristyle_ycsb::{Settings, Status};

use super::client::{Job, Outcome};
use super::target::Database;
use super::workload::{Core, Operation};
use crate::failure::Result;
use crate::interrupt::Interrupt;
use crate::load::Live;
use crate::machine::{CpuClock, ServerClock};
use crate::search::Probe;
use crate::stats::{Estimate, in_flight, real, whole};
use crate::target::{Measurement, Session, Target};
use crate::workload::{self, Keys, Kind, Rows, Source, Workload};

/// The share of a window that is left out at its start.
const WARM_UP: f64 = 0.2;

/// A database under a workload of YCSB's.
pub(crate) struct Swept {
    database: Database,
    session: Session,
    /// An engine in this process, which stays open between sessions.
    engine: Option<Client>,
    /// The job of the next window.
    job: Job,
    interrupt: Interrupt,
    begun: Instant,
    /// Of each window; `None` where nothing could be opened.
    outcomes: Vec<Option<Outcome>>,
}

impl Swept {
    /// A target that has this job done again and again, each time at the point that is asked for. Its time has run since it
    /// `begun`.
    pub(crate) fn new(database: Database, session: Session, job: Job, interrupt: &Interrupt, begun: Instant) -> Self {
        let engine = database.uri.is_in_process().then(|| session.client.clone());
        let job = Job { measuring: job.measuring.of_sweep(job.rate.is_some()), ..job };
        let (interrupt, outcomes) = (interrupt.clone(), Vec::new());
        Self { database, session, engine, job, interrupt, begun, outcomes }
    }

    /// What came of a window, and the session that is open.
    pub(crate) fn into_outcome(mut self, window: usize) -> (Option<Outcome>, Session) {
        let outcome = if window < self.outcomes.len() { self.outcomes.swap_remove(window) } else { None };
        (outcome, self.session)
    }

    /// Does the job at a point. What it inserts is there for the next.
    fn run(&mut self, probe: &Probe, limit: Duration) -> Result<Outcome> {
        if !self.session.serves(probe.point) {
            let (session, store) = self.database.open(probe.point, self.engine.as_ref())?;
            std::mem::replace(&mut self.session, session).end(&self.database.uri);
            self.job.store = store;
        }
        let whole = length(probe).min(limit);
        let batch = usize::try_from(probe.point.batch).unwrap_or(usize::MAX);
        let job = Job {
            threads: probe.point.threads,
            settings: Settings { batch, ..self.job.settings.clone() },
            warm_up: whole.mul_f64(WARM_UP),
            limit: Some(whole),
            ..self.job.clone()
        };
        let outcome = job.run(self.session.runtime.handle(), &self.interrupt)?;
        self.job.core.records = outcome.records;
        Ok(outcome)
    }
}

impl Target for Swept {
    fn measure(&mut self, probe: &Probe, limit: Duration, _: &dyn Fn(Live)) -> Measurement {
        let own = self.database.uri.is_in_process().then(std::process::id);
        let (cpu, server) = (CpuClock::now(), own.and_then(ServerClock::now));
        let run = self.run(probe, limit);
        let measurement = match &run {
            Ok(outcome) => Measurement {
                cpu: cpu.and_then(|cpu| cpu.shares()),
                server: server.and_then(|server| server.used()),
                partial: self.interrupt.is_set() || limit < length(probe),
                ..measured(outcome, probe.rate.is_some())
            },
            Err(failure) => Measurement::failed("client_fault", failure.to_string()),
        };
        self.outcomes.push(run.ok());
        measurement
    }

    fn spent(&self) -> Duration {
        self.begun.elapsed()
    }
}

/// How long a window is with its warm-up.
fn length(probe: &Probe) -> Duration {
    probe.window.div_f64(1.0 - WARM_UP)
}

/// A window as the search sees it.
fn measured(outcome: &Outcome, is_open_loop: bool) -> Measurement {
    let statuses = outcome.sheet.statuses();
    let missing = statuses.get(&Status::NotFound).copied().unwrap_or_default();
    let failed = statuses.into_iter().filter(|(status, _)| !status.is_ok() && *status != Status::NotFound);
    let mut errors: BTreeMap<String, u64> =
        failed.map(|(status, count)| (status.name().to_lowercase(), count)).collect();
    if outcome.lost > 0 {
        errors.insert("lost_writes".into(), outcome.lost);
    }
    let rate = Estimate::of_series(&outcome.rates);
    let service = outcome.sheet.latencies(false);
    let in_flight = rate.map(|rate| in_flight(rate.mean, mean(&service)));
    let (latencies, service) =
        if is_open_loop { (outcome.sheet.latencies(true), service) } else { (service, BTreeMap::new()) };
    Measurement {
        rows: outcome.operations.saturating_sub(errors.values().sum()),
        requests: outcome.operations,
        missing,
        errors,
        example: outcome.example.clone(),
        rate,
        latencies,
        service,
        in_flight,
        elapsed: outcome.elapsed,
        warm_up: outcome.warm_up,
        ..Measurement::default()
    }
}

/// The mean over all operations.
fn mean(latencies: &BTreeMap<&'static str, Histogram<u64>>) -> Duration {
    let single = || latencies.iter().filter(|(name, _)| **name != "READ-MODIFY-WRITE" && **name != "CLEANUP");
    let count: f64 = single().map(|(_, histogram)| real(histogram.len())).sum();
    let total: f64 = single().map(|(_, histogram)| histogram.mean() * real(histogram.len())).sum();
    Duration::try_from_secs_f64(total / count / 1e9).unwrap_or_default()
}

/// The workload as reports describe it.
pub(crate) fn workload(name: &str, core: &Core, settings: &Settings) -> peristyle::Result<Workload> {
    let table = Arc::new(settings.spec()?);
    let mut sources = vec![Source::Constant(core.key(0))];
    sources.resize(table.columns().len(), Source::Random { length: core.mean_length() });
    let shares: Vec<String> =
        core.shares().map(|(operation, share)| format!("{operation:?} {:.0} %", share * 1e2)).collect();
    let operations = core.shares().map(|(operation, share)| workload::Operation {
        kind: if matches!(operation, Operation::Update | Operation::Insert) { Kind::Put } else { Kind::Get },
        weight: u32::try_from(whole((share * 1e3).round())).unwrap_or(u32::MAX),
        keys: Keys::Uniform,
    });
    Ok(Workload {
        name: name.to_owned(),
        about: format!("YCSB's core workload: {}", shares.join(", ")),
        rows: Rows::new(&table, sources, core.records, 1),
        operations: operations.collect(),
        table,
    })
}
