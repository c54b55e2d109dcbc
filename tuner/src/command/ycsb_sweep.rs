//! `tuner ycsb sweep`: the settings that a workload of YCSB's is best run with.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::measure::search_on;
use super::ycsb::Plan as YcsbPlan;
use crate::console::Console;
use crate::failure::{Exit, Failure, Result};
use crate::interrupt::Interrupt;
use crate::machine::cores;
use crate::plan::{Plan, check, default_folder};
use crate::search::{BUDGET, Climb};
use crate::space::{Space, Span};
use crate::target::Session;
use crate::ycsb::{Database, Options, Outcome, Swept, workload};

/// Searches threads, io threads, the pool and, where records are inserted, the batch. Writes what `tuner sweep` writes, says it on
/// standard error, and returns the last window of the point that was chosen: standard output has that window's result, in YCSB's
/// form.
pub(super) fn run(
    ycsb: &YcsbPlan,
    database: Database,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<(Option<Outcome>, Session, Exit)> {
    let plan = plan(ycsb, &database, options)?;
    let search = Climb::new(plan.space, plan.budget, plan.rate(), plan.seed);
    let console = Console::new(true);
    let begun = Instant::now();
    let open = |_: &[_]| {
        let (session, store) = database.open(plan.space.lowest(), None)?;
        let job = ycsb.job(options, store)?;
        ycsb.prepare(&database, &job, &session, options, interrupt)?;
        Ok(Swept::new(database.clone(), session, job, interrupt, begun))
    };
    let (result, answer, swept) = search_on(&plan, &search, &console, interrupt, open)?;
    let choice = answer.knee.as_ref().or(answer.peak.as_ref());
    let chosen = choice.and_then(|choice| choice.trials.last().copied());
    let (outcome, session) = swept.into_outcome(chosen.unwrap_or(usize::MAX));
    Ok((outcome, session, result.verdict.exit()))
}

fn plan(ycsb: &YcsbPlan, database: &Database, options: &Options) -> Result<Plan> {
    let (settings, search, target) = (&ycsb.settings, &options.search, database.uri.clone());
    let number = |given: usize| Span::fixed(u32::try_from(given).unwrap_or(u32::MAX));
    let mut notes = Vec::new();
    let of_uri = target.pool().transpose()?;
    let mut space = Space {
        threads: ycsb.threads,
        io_threads: search.io_threads.or(settings.io_threads.map(number)).unwrap_or(Span::up_to(cores().min(16))),
        pool: search.pool.or(of_uri).unwrap_or(Span::up_to(4)),
        batch: search.batch.or((settings.batch > 1).then(|| number(settings.batch))).unwrap_or(Span::up_to(256)),
        cores: cores(),
    };
    check(&space)?;
    if target.is_in_process() {
        space.pool = Span::fixed(1);
    }
    if !ycsb.core.inserts() {
        space.batch = Span::fixed(1);
        notes.push(format!("batch means nothing to {}, which inserts nothing: it stays 1", options.workload));
    }
    let described = workload(&options.workload, &ycsb.core, settings);
    Ok(Plan {
        simulated: None,
        workload: Arc::new(described.map_err(|error| Failure::input(error.to_string()))?),
        space,
        objectives: Vec::new(),
        rates: options.rate()?.into_iter().collect(),
        apdex: None,
        hold: None,
        server: None,
        beside: None,
        resume: false,
        budget: match options.seconds()? {
            0 => BUDGET,
            seconds => Duration::from_secs(seconds),
        },
        seed: 1,
        create: settings.create,
        out: search.out.clone().unwrap_or_else(|| default_folder(&options.workload)),
        json: true,
        notes,
        target,
    })
}
