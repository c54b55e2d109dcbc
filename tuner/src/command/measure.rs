//! `tuner run` and `tuner sweep`: a search, a target, and the files that come of it.

use std::time::{Duration, Instant, SystemTime};

use crate::command::load;
use crate::console::Console;
use crate::failure::{Exit, Failure, Result};
use crate::interrupt::Interrupt;
use crate::load::Live;
use crate::plan::Plan;
use crate::report::{self, Beside, Journal, OutFolder, Outcome, ResultFile, Terms, Window};
use crate::search::{self, Answer, End, Probe, Purpose, Search, Step, Trial, Verdict};
use crate::space::Point;
use crate::target::sim::SimTarget;
use crate::target::{LiveTarget, Target};

/// What a window needs at the least to be worth its start.
const LEAST: Duration = Duration::from_millis(600);

/// Rounds in which the chosen point and another one are measured in turns.
const ROUNDS: u32 = 8;

/// Runs a search over a plan and writes what it found.
pub(crate) fn run(plan: &Plan, search: &dyn Search) -> Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let console = Console::new(plan.json);
    let (result, ..) = search_on(plan, search, &console, &interrupt, |before| open(plan, before, &interrupt))?;
    if plan.json {
        Console::result(&serde_json::to_string(&result).map_err(|error| Failure::input(error.to_string()))?);
    }
    Ok(result.verdict.exit())
}

/// Runs a search on what is opened for it, behind these windows of an earlier part of the run, and writes what it found.
pub(crate) fn search_on<T: Target>(
    plan: &Plan,
    search: &dyn Search,
    console: &Console,
    interrupt: &Interrupt,
    open: impl FnOnce(&[Window]) -> Result<T>,
) -> Result<(ResultFile, Answer, T)> {
    let before = earlier(plan, search)?;
    let (mut out, mut journal) =
        if plan.resume { OutFolder::resume(&plan.out, &before)? } else { OutFolder::claim(&plan.out)? };
    let mut target = open(&before)?;
    let notes = target.notes();
    for line in report::opening(plan, &notes) {
        console.line(&line);
    }
    console.line(&report::header());
    out.keep();
    if !plan.resume {
        out.write_json("settings.json", &Terms::of(plan))?;
    }
    for window in &before {
        console.line(&report::row(window));
    }
    let spent_before = before.last().map_or(Duration::ZERO, |window| window.trial.spent);
    let most = usize::try_from(search.most()).unwrap_or(usize::MAX);
    let mut watch = Watch { plan, console, interrupt, journal: &mut journal, spent_before, most };
    let mut outcome = Outcome { notes, ..watch.drive(search, before, &mut target)? };
    if let Some(other) = plan.beside {
        watch.beside(&mut outcome, other, &mut target)?;
    }
    if let Some(hold) = plan.hold {
        watch.hold(&mut outcome, hold, &mut target)?;
    }
    console.clear();
    let result = write(plan, &outcome, &out)?;
    show(console, &result, &out);
    Ok((result, outcome.answer, target))
}

/// The windows of a run that is resumed, as far as they are those that the search asks for.
fn earlier(plan: &Plan, search: &dyn Search) -> Result<Vec<Window>> {
    if !plan.resume {
        return Ok(Vec::new());
    }
    OutFolder::check_terms(&plan.out, &Terms::of(plan))?;
    let lines = report::read(&plan.out)?;
    let (mut history, mut windows) = (Vec::new(), Vec::new());
    for line in lines.into_iter().filter(|line| !line.partial) {
        let window = line.window(&plan.objectives);
        match search.next(&history) {
            Step::Measure(probe) if probe.is_like(&window.trial.probe) => {
                history.push(window.trial.clone());
                windows.push(window);
            }
            _ => break,
        }
    }
    Ok(windows)
}

/// The target of a plan, ready to be measured behind these windows.
fn open(plan: &Plan, before: &[Window], interrupt: &Interrupt) -> Result<Box<dyn Target>> {
    if let Some(server) = &plan.simulated {
        let begun = before.last().map_or(Duration::ZERO, |window| window.trial.spent);
        return Ok(Box::new(SimTarget::new(server.clone(), &plan.workload, begun, before.len() as u64)));
    }
    let deadline = Instant::now() + plan.budget + after(plan);
    let mut target = LiveTarget::open(&plan.target, &plan.workload, plan.space.lowest(), interrupt, deadline)?;
    if let Some(server) = &plan.server {
        target.watch_server(server.clone());
    }
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

/// The time for what comes after the search.
fn after(plan: &Plan) -> Duration {
    let beside = plan.beside.map_or(Duration::ZERO, |_| beside_window(plan) * (4 * ROUNDS));
    beside + plan.hold.unwrap_or_default()
}

/// The length of a window beside another point.
fn beside_window(plan: &Plan) -> Duration {
    (plan.budget / 75).clamp(Duration::from_millis(250), Duration::from_secs(10))
}

fn write(plan: &Plan, outcome: &Outcome, out: &OutFolder) -> Result<ResultFile> {
    let result = ResultFile::of(plan, outcome);
    out.write_json("result.json", &result)?;
    out.write("points.csv", &outcome.csv())?;
    out.write("latency.hdr", &report::log(&outcome.windows, SystemTime::now()))?;
    out.write("report.html", &report::html(&result, &outcome.windows))?;
    if let Some(tuned) = result.tuned() {
        out.write("tuned.toml", &tuned.to_string())?;
    }
    Ok(result)
}

fn show(console: &Console, result: &ResultFile, out: &OutFolder) {
    console.line("");
    console.closing(result);
    let tuned = if result.chosen().is_some() { ", tuned.toml" } else { "" };
    let files =
        format!("{}: report.html, result.json, points.csv, latency.hdr, journal.jsonl{tuned}", out.path().display());
    console.line(&format!("{} {files}", console.strong(&format!("{:<9}", "wrote"))));
}

/// A search under way.
struct Watch<'w> {
    plan: &'w Plan,
    console: &'w Console,
    interrupt: &'w Interrupt,
    journal: &'w mut Journal,
    /// The time of the windows that were measured before a resumption.
    spent_before: Duration,
    /// Windows of the search at the most.
    most: usize,
}

impl Watch<'_> {
    /// Measures what the search wants until it has an answer, the time is over, or the user has had enough.
    fn drive(&mut self, search: &dyn Search, before: Vec<Window>, target: &mut dyn Target) -> Result<Outcome> {
        let mut windows = before;
        let mut history: Vec<Trial> = windows.iter().map(|window| window.trial.clone()).collect();
        let answer = loop {
            let probe = match search.next(&history) {
                Step::Done(answer) => break *answer,
                Step::Measure(probe) => probe,
            };
            let left = self.plan.budget.saturating_sub(self.spent(target));
            if let Some(end) = self.end(left) {
                break search.conclude(&history, end);
            }
            let window = self.window(target, probe, left, &history);
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
        Ok(Outcome { answer, windows, spent: self.spent(target), beside: None, notes: Vec::new() })
    }

    fn end(&self, left: Duration) -> Option<End> {
        match (self.interrupt.is_set(), left < LEAST) {
            (true, _) => Some(End::Interrupted),
            (false, true) => Some(End::Budget),
            (false, false) => None,
        }
    }

    /// The time since the command began, that of an earlier part included.
    fn spent(&self, target: &dyn Target) -> Duration {
        self.spent_before + target.spent()
    }

    /// Measures the chosen point and another one in turns, each round in the other order.
    fn beside(&mut self, outcome: &mut Outcome, other: Point, target: &mut dyn Target) -> Result<()> {
        let answer = &outcome.answer;
        let Some(chosen) = answer.knee.as_ref().or(answer.peak.as_ref()).map(|choice| choice.point) else {
            return Ok(());
        };
        self.most = usize::MAX;
        let (length, rate) = (beside_window(self.plan), self.plan.rate());
        let mut windows = Vec::new();
        for round in 0..ROUNDS {
            let points = if round % 2 == 0 { [chosen, other] } else { [other, chosen] };
            for point in points {
                if chosen == other || self.interrupt.is_set() {
                    continue;
                }
                let probe = Probe { point, purpose: Purpose::Beside, window: length, rate };
                let window = self.window(target, probe, length * 3, &[]);
                self.journal.add(&window)?;
                self.console.line(&report::row(&window));
                windows.push(window);
            }
        }
        outcome.spent = self.spent(target);
        outcome.beside = Beside::of(chosen, other, &windows);
        outcome.windows.append(&mut windows);
        Ok(())
    }

    /// Goes on at the chosen point for a while. A late collapse, or an error, makes the result unstable.
    fn hold(&mut self, outcome: &mut Outcome, hold: Duration, target: &mut dyn Target) -> Result<()> {
        let answer = &outcome.answer;
        let Some(point) = answer.knee.as_ref().or(answer.peak.as_ref()).map(|choice| choice.point) else {
            return Ok(());
        };
        let window = (hold / 10).clamp(Duration::from_millis(250), Duration::from_secs(10));
        let probe = Probe { point, purpose: Purpose::Hold, window, rate: self.plan.rate() };
        let end = self.spent(target) + hold;
        let mut trials: Vec<Trial> = Vec::new();
        while self.spent(target) + window < end && !self.interrupt.is_set() {
            let left = end.saturating_sub(self.spent(target));
            let window = self.window(target, probe, left, &trials);
            self.journal.add(&window)?;
            self.console.line(&report::row(&window));
            trials.push(window.trial.clone());
            outcome.windows.push(window);
        }
        outcome.spent = self.spent(target);
        if let Some(fault) = search::late_collapse(&trials) {
            outcome.answer.verdict = Verdict::Unstable;
            outcome.answer.stop_reason = fault;
        }
        Ok(())
    }

    fn window(&self, target: &mut dyn Target, probe: Probe, limit: Duration, history: &[Trial]) -> Window {
        let begun = Instant::now();
        let before = self.spent(target);
        let curve = report::sparkline(history, probe.point);
        let watch = |live: Live| {
            let spent = before + begun.elapsed();
            self.console.status(format!("{} {curve}", self.status(&probe, live, spent, history.len())));
        };
        let measurement = target.measure(&probe, limit, &watch);
        let trial = Trial::of(probe, &measurement, &self.plan.objectives, self.spent(target));
        Window { trial, measurement }
    }

    fn status(&self, probe: &Probe, live: Live, spent: Duration, done: usize) -> String {
        let purpose = if probe.purpose == Purpose::Explore { "exploring" } else { probe.purpose.name() };
        let left = Duration::from_secs(self.left(spent, done).as_secs());
        let spent = Duration::from_secs(spent.as_secs());
        format!(
            "{purpose} {}: {} rows/s, {} errors, {} of {}, at most {} left",
            probe.point,
            report::rate(live.rows_per_s),
            live.failed,
            humantime::format_duration(spent),
            humantime::format_duration(self.plan.budget + after(self.plan)),
            humantime::format_duration(left)
        )
    }

    /// The time that it still takes at the most: what the budget leaves, and no more than the windows that the search may measure
    /// take by experience.
    fn left(&self, spent: Duration, done: usize) -> Duration {
        let budget = (self.plan.budget + after(self.plan)).saturating_sub(spent);
        match (u32::try_from(done), u32::try_from(self.most.saturating_sub(done))) {
            (Ok(done @ 1..), Ok(windows)) => {
                let by_windows = (spent / done).checked_mul(windows);
                by_windows.map_or(budget, |by_windows| budget.min(by_windows + after(self.plan)))
            }
            _ => budget,
        }
    }
}
