//! `tuner ycsb sweep`: how many threads a workload is best run with.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::failure::{Exit, Failure, Result};
use crate::interrupt::Interrupt;
use crate::report::rate;
use crate::search::{Answer, Climb, End, Probe, Search as _, Step, Trial};
use crate::space::{Space, Span};
use crate::stats::Estimate;
use crate::target::Measurement;
use crate::ycsb::{Job, Options, Outcome};

/// The time where `maxexecutiontime` sets none.
const BUDGET: Duration = Duration::from_secs(120);
/// What a window needs at the least.
const LEAST: Duration = Duration::from_millis(600);
/// The share of a window that is left out at its start.
const WARM_UP: f64 = 0.2;

/// A sweep under way.
struct Sweep<'s> {
    /// The job of the next window.
    job: Job,
    runtime: &'s Handle,
    interrupt: &'s Interrupt,
    begun: Instant,
    history: Vec<Trial>,
    outcomes: Vec<Outcome>,
}

/// Searches a range of threads, and returns the last window of the number that was chosen. What it found is said on standard
/// error: standard output has that window's result, in YCSB's form.
pub(super) fn run(
    job: Job,
    threads: Span,
    options: &Options,
    runtime: &Handle,
    interrupt: &Interrupt,
) -> Result<(Outcome, Exit)> {
    let fixed = Span::fixed(1);
    let space = Space { threads, io_threads: fixed, pool: fixed, batch: fixed, cores: 1 };
    let budget = match options.seconds()? {
        0 => BUDGET,
        seconds => Duration::from_secs(seconds),
    };
    let search = Climb::new(space, budget, options.rate()?, 1);
    let (history, outcomes) = (Vec::new(), Vec::new());
    let mut sweep = Sweep { job, runtime, interrupt, begun: Instant::now(), history, outcomes };
    let answer = sweep.drive(&search, budget)?;
    let choice = answer.knee.as_ref().or(answer.peak.as_ref());
    let chosen = choice.and_then(|choice| choice.trials.last().copied()).filter(|last| *last < sweep.outcomes.len());
    let Some(chosen) = chosen else {
        return Err(Failure::no_point(&answer.stop_reason, answer.verdict.exit()));
    };
    tell(&answer, sweep.history.get(chosen));
    Ok((sweep.outcomes.swap_remove(chosen), answer.verdict.exit()))
}

impl Sweep<'_> {
    fn drive(&mut self, search: &Climb, budget: Duration) -> Result<Answer> {
        eprintln!("threads       ops/s   ±95 %   failed");
        loop {
            let probe = match search.next(&self.history) {
                Step::Done(answer) => return Ok(*answer),
                Step::Measure(probe) => probe,
            };
            let left = budget.saturating_sub(self.begun.elapsed());
            if left < LEAST {
                return Ok(search.conclude(&self.history, End::Budget));
            }
            self.window(probe, left)?;
            if self.interrupt.is_set() {
                return Ok(search.conclude(&self.history, End::Interrupted));
            }
        }
    }

    /// Measures one window. What it inserts is there for the next.
    fn window(&mut self, probe: Probe, left: Duration) -> Result<()> {
        let mut job = self.job.clone();
        job.threads = probe.point.threads;
        job.limit = Some(probe.window.div_f64(1.0 - WARM_UP).min(left));
        let outcome = job.run(self.runtime, self.interrupt)?;
        self.job.core.records = outcome.records;
        let measurement = measured(&outcome);
        let trial = Trial::of(probe, &measurement, &[], self.begun.elapsed());
        let error = measurement.rate.and_then(|rate| rate.relative_error());
        let error = error.map_or_else(|| "?".into(), |error| format!("{:.1} %", error * 100.0));
        eprintln!("{:>7}  {:>10}  {error:>6}  {:>7}", probe.point.threads, rate(trial.rate), trial.errors);
        self.history.push(trial);
        self.outcomes.push(outcome);
        Ok(())
    }
}

/// A window as the search sees it.
fn measured(outcome: &Outcome) -> Measurement {
    let failed = outcome.sheet.failures();
    let errors = if failed > 0 { BTreeMap::from([("failed".to_owned(), failed)]) } else { BTreeMap::new() };
    let from = outcome.elapsed.mul_f64(WARM_UP);
    let rates: Vec<f64> = outcome.rates.iter().filter(|(at, _)| *at >= from).map(|(_, rate)| *rate).collect();
    Measurement {
        rows: outcome.operations.saturating_sub(failed),
        requests: outcome.operations,
        errors,
        example: outcome.example.clone(),
        rate: Estimate::of_series(&rates),
        elapsed: outcome.elapsed,
        ..Measurement::default()
    }
}

fn tell(answer: &Answer, chosen: Option<&Trial>) {
    if let Some(trial) = chosen {
        let threads = trial.probe.point.threads;
        eprintln!("knee      {threads} threads: {} ops/s; the result is that of this window", rate(trial.rate));
    }
    if let Some(ceiling) = &answer.ceiling {
        eprintln!("ceiling   {} threads: {} operations {}", ceiling.point.threads, ceiling.errors, ceiling.cause);
    }
    eprintln!("stopped   {}", answer.stop_reason);
}
