//! `tuner ycsb`: YCSB's workloads and results, without Java.

use std::path::Path;
use std::time::Duration;

use peristyle_ycsb::{Settings, Store};

use crate::cli::YcsbCommand;
use crate::command::ycsb_sweep;
use crate::console::Console;
use crate::failure::{Exit, Failure, Result};
use crate::interrupt::Interrupt;
use crate::machine::cores;
use crate::space::{Point, Span};
use crate::target::Session;
use crate::ycsb::{Core, Database, Job, Measuring, Options, Outcome, Phase, overall, warnings};

/// Workers that fill a database that lives no longer than the run.
const FILLERS: u32 = 16;
/// Their inserts in a request.
const FILL_BATCH: usize = 100;

/// Loads or runs.
pub(crate) fn run(command: &YcsbCommand) -> Result<Exit> {
    let options = match command {
        YcsbCommand::Load { arguments } => Options::parse(Phase::Load, arguments)?,
        YcsbCommand::Run { arguments } => Options::parse(Phase::Run, arguments)?,
        YcsbCommand::Sweep { arguments } => Options::parse(Phase::Sweep, arguments)?,
    };
    let interrupt = Interrupt::listen()?;
    let job = Plan::new(&options)?;
    for line in warnings(&options.properties) {
        eprintln!("{line}");
    }
    job.run(&options, &interrupt)
}

/// All that the properties say, checked before anything is opened.
pub(super) struct Plan {
    pub(super) core: Core,
    pub(super) settings: Settings,
    measuring: Measuring,
    pub(super) threads: Span,
}

impl Plan {
    fn new(options: &Options) -> Result<Self> {
        let properties = &options.properties;
        let settings = Settings::new(|name| properties.get(name)).map_err(|error| Failure::input(error.to_string()))?;
        let core = Core::new(properties, &settings.fields)?;
        match options.phase {
            Phase::Load => options.demand_records()?,
            Phase::Run => drop(options.operations()?),
            Phase::Sweep => {}
        }
        options.exporter()?;
        options.rate()?;
        Ok(Self { core, settings, measuring: Measuring::new(properties)?, threads: options.threads()? })
    }

    fn run(&self, options: &Options, interrupt: &Interrupt) -> Result<Exit> {
        let database = Database::of(options, &self.settings)?;
        let (outcome, session, exit) = if options.phase == Phase::Sweep {
            ycsb_sweep::run(self, database, options, interrupt)?
        } else {
            self.once(&database, options, interrupt)?
        };
        if let Some(outcome) = &outcome {
            self.tell(outcome, options)?;
        }
        // What is written must be there for the next who opens it; a server that doesn't answer now has it already.
        let _ = session
            .runtime
            .block_on(async { tokio::time::timeout(Duration::from_secs(5), session.client.close()).await });
        Ok(exit)
    }

    /// A load or run.
    fn once(
        &self,
        database: &Database,
        options: &Options,
        interrupt: &Interrupt,
    ) -> Result<(Option<Outcome>, Session, Exit)> {
        let io_threads = self.settings.io_threads.and_then(|threads| u32::try_from(threads).ok()).unwrap_or_else(cores);
        let point = Point { threads: self.threads.hi(), io_threads, pool: 1, batch: 1 };
        let (session, store) = database.open(point, None)?;
        let job = self.job(options, store)?;
        self.prepare(database, &job, &session, options, interrupt)?;
        let outcome = job.run(session.runtime.handle(), interrupt)?;
        let exit = exit(&outcome, interrupt);
        Ok((Some(outcome), session, exit))
    }

    /// What is to be done.
    pub(super) fn job(&self, options: &Options, store: Store) -> Result<Job> {
        Ok(Job {
            phase: options.phase,
            store,
            core: self.core.clone(),
            measuring: self.measuring.clone(),
            operations: match options.phase {
                Phase::Load => Some(self.core.insert_count),
                Phase::Run => options.operations()?,
                // Its windows end by time.
                Phase::Sweep => None,
            },
            threads: self.threads.hi(),
            rate: options.rate()?,
            warm_up: Duration::ZERO,
            limit: Some(options.seconds()?).filter(|seconds| *seconds > 0).map(Duration::from_secs),
            status_interval: if options.phase == Phase::Sweep { None } else { options.status_interval()? },
            label: options.properties.get("label").unwrap_or_default().to_owned(),
            settings: self.settings.clone(),
        })
    }

    /// Says what is unusual about scans, and loads what is to be read into a database that has nothing yet.
    pub(super) fn prepare(
        &self,
        database: &Database,
        job: &Job,
        session: &Session,
        options: &Options,
        interrupt: &Interrupt,
    ) -> Result<()> {
        if options.phase == Phase::Load {
            return Ok(());
        }
        if self.core.scans() && !job.store.scans_in_key_order() {
            let hint = "make the table with -p peristyle.buckets=N for the order of keys";
            eprintln!("warning: scans come in the order of the keys' hashes; {hint}");
        }
        if !database.uri.is_temporary() {
            return Ok(());
        }
        options.demand_records()?;
        fill(job, session.runtime.handle(), interrupt)
    }

    /// The result, in YCSB's form.
    fn tell(&self, outcome: &Outcome, options: &Options) -> Result<()> {
        if outcome.sheet.has_raw() {
            outcome.sheet.write_raw(&self.measuring)?;
        }
        let mut lines = overall(outcome.operations, outcome.elapsed);
        lines.extend(outcome.sheet.lines(&self.measuring));
        export(options, &options.exporter()?.write(&lines))?;
        if let Some(example) = &outcome.example {
            let failed = outcome.sheet.failures().max(outcome.lost);
            eprintln!("warning: {failed} operations failed; the first: {example}");
        }
        Ok(())
    }
}

fn exit(outcome: &Outcome, interrupt: &Interrupt) -> Exit {
    if interrupt.is_set() {
        Exit::Interrupted
    } else if outcome.sheet.failures() + outcome.lost > 0 {
        Exit::Failed
    } else {
        Exit::Done
    }
}

/// Loads the records that a run reads into a database that has none.
fn fill(job: &Job, runtime: &tokio::runtime::Handle, interrupt: &Interrupt) -> Result<()> {
    eprintln!("loading {} records first, into a database that ends with the run", job.core.insert_count);
    let load = Job {
        phase: Phase::Load,
        store: job.store.clone(),
        core: job.core.clone(),
        measuring: Measuring::default(),
        operations: Some(job.core.insert_count),
        threads: FILLERS,
        rate: None,
        warm_up: Duration::ZERO,
        limit: None,
        status_interval: None,
        label: String::new(),
        settings: Settings { batch: FILL_BATCH, ..job.settings.clone() },
    };
    let loaded = load.run(runtime, interrupt)?;
    match loaded.example {
        Some(example) => Err(Failure::input(format!("can't load the records to read: {example}"))),
        None if interrupt.is_set() => Err(Failure::interrupted()),
        None => Ok(()),
    }
}

/// Writes the result to standard output, or to `exportfile`.
fn export(options: &Options, text: &str) -> Result<()> {
    match options.properties.get("exportfile") {
        None => {
            Console::result(text.trim_end());
            Ok(())
        }
        Some(path) => std::fs::write(path, text).map_err(|error| Failure::write(Path::new(path), error)),
    }
}
