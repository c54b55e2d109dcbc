//! `tuner run` and `tuner sweep`: a search, a target, and the files that come of it.

use std::time::{Duration, Instant};

use crate::command::load;
use crate::console::Console;
use crate::failure::{Exit, Failure, Result};
use crate::interrupt::Interrupt;
use crate::load::Live;
use crate::plan::Plan;
use crate::report::{self, Journal, OutFolder, Outcome, ResultFile, Window};
use crate::search::{End, Probe, Purpose, Search, Step, Trial, Verdict};
use crate::target::sim::SimTarget;
use crate::target::{LiveTarget, Target};

/// What a window needs at the least to be worth its start.
const LEAST: Duration = Duration::from_millis(600);

/// Runs a search over a plan and writes what it found.
pub(crate) fn run(plan: &Plan, search: &dyn Search) -> Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let console = Console::new(plan.json);
    let (mut out, mut journal) = OutFolder::claim(&plan.out)?;
    let mut target = open(plan, &interrupt)?;
    for line in report::opening(plan) {
        console.line(&line);
    }
    console.line(&report::header());
    out.keep();
    let mut watch = Watch { plan, console: &console, interrupt: &interrupt, journal: &mut journal };
    let outcome = watch.drive(search, &mut *target)?;
    console.clear();
    let result = write(plan, &outcome, &out)?;
    show(&console, &result, &out);
    if plan.json {
        Console::result(&serde_json::to_string(&result).map_err(|error| Failure::input(error.to_string()))?);
    }
    Ok(result.verdict.exit())
}

/// The target of a plan, ready to be measured.
fn open(plan: &Plan, interrupt: &Interrupt) -> Result<Box<dyn Target>> {
    if let Some(server) = &plan.simulated {
        return Ok(Box::new(SimTarget::new(server.clone(), &plan.workload, Duration::ZERO, 0)));
    }
    let deadline = Instant::now() + plan.budget;
    let target = LiveTarget::open(&plan.target, &plan.workload, plan.space.lowest(), interrupt, deadline)?;
    target.prepare(plan.create)?;
    rows_to_read(plan, &target, interrupt, deadline)?;
    Ok(Box::new(target))
}

/// A workload that reads needs rows. Where they can't have been written before, they are written now.
fn rows_to_read(plan: &Plan, target: &LiveTarget, interrupt: &Interrupt, deadline: Instant) -> Result<()> {
    if !plan.workload.reads() {
        return Ok(());
    }
    if plan.target.is_temporary() {
        return load::fill(target.session()?, &plan.workload, interrupt, deadline);
    }
    if target.has_rows()? {
        return Ok(());
    }
    let name = &plan.workload.name;
    Err(Failure::input(format!(
        "table {} has no rows that {name} could read; write them with tuner load --target '{}' --workload {name}",
        plan.workload.table.name(),
        plan.target
    )))
}

fn write(plan: &Plan, outcome: &Outcome, out: &OutFolder) -> Result<ResultFile> {
    let result = ResultFile::of(plan, outcome, report::explain(plan, outcome));
    let json = serde_json::to_string_pretty(&result).map_err(|error| Failure::write(out.path(), error))?;
    out.write("result.json", &(json + "\n"))?;
    out.write("points.csv", &outcome.csv())?;
    if let Some(tuned) = result.tuned() {
        out.write("tuned.toml", &tuned.to_string())?;
    }
    Ok(result)
}

fn show(console: &Console, result: &ResultFile, out: &OutFolder) {
    console.line("");
    for (name, text) in report::closing(result) {
        console.line(&format!("{} {text}", console.strong(&format!("{name:<9}"))));
    }
    let tuned = if result.chosen().is_some() { ", tuned.toml" } else { "" };
    let files = format!("{}: result.json, points.csv, journal.jsonl{tuned}", out.path().display());
    console.line(&format!("{} {files}", console.strong(&format!("{:<9}", "wrote"))));
}

/// A search under way.
struct Watch<'w> {
    plan: &'w Plan,
    console: &'w Console,
    interrupt: &'w Interrupt,
    journal: &'w mut Journal,
}

impl Watch<'_> {
    /// Measures what the search wants until it has an answer, the time is over, or the user has had enough.
    fn drive(&mut self, search: &dyn Search, target: &mut dyn Target) -> Result<Outcome> {
        let (mut history, mut windows): (Vec<Trial>, Vec<Window>) = (Vec::new(), Vec::new());
        let answer = loop {
            let probe = match search.next(&history) {
                Step::Done(answer) => break *answer,
                Step::Measure(probe) => probe,
            };
            let left = self.plan.budget.saturating_sub(target.spent());
            if let Some(end) = self.end(left) {
                break search.conclude(&history, end);
            }
            let window = self.window(target, probe, left);
            self.journal.add(&window)?;
            self.console.line(&report::row(&window));
            if window.measurement.partial {
                let end = self.end(Duration::ZERO).unwrap_or(End::Budget);
                windows.push(window);
                break search.conclude(&history, end);
            }
            history.push(window.trial.clone());
            windows.push(window);
        };
        if windows.is_empty() && answer.verdict == Verdict::Interrupted {
            return Err(Failure::interrupted());
        }
        Ok(Outcome { answer, windows, spent: target.spent() })
    }

    fn end(&self, left: Duration) -> Option<End> {
        match (self.interrupt.is_set(), left < LEAST) {
            (true, _) => Some(End::Interrupted),
            (false, true) => Some(End::Budget),
            (false, false) => None,
        }
    }

    fn window(&self, target: &mut dyn Target, probe: Probe, limit: Duration) -> Window {
        let begun = Instant::now();
        let before = target.spent();
        let watch = |live: Live| self.console.status(self.status(&probe, live, before + begun.elapsed()));
        let measurement = target.measure(&probe, limit, &watch);
        Window { trial: Trial::of(probe, &measurement, &self.plan.objectives, target.spent()), measurement }
    }

    fn status(&self, probe: &Probe, live: Live, spent: Duration) -> String {
        let purpose = if probe.purpose == Purpose::Explore { "exploring" } else { probe.purpose.name() };
        let spent = Duration::from_secs(spent.as_secs());
        format!(
            "{purpose} {}: {} rows/s, {} errors, {} of {}",
            probe.point,
            report::rate(live.rows_per_s),
            live.failed,
            humantime::format_duration(spent),
            humantime::format_duration(self.plan.budget)
        )
    }
}
