//! `tuner paths`: which way to write is the fastest here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::cli::PathsSettings;
use crate::console::{Console, bar};
use crate::failure::{Exit, Failure, Result};
use crate::interrupt::Interrupt;
use crate::machine::cpu_time;
use crate::paths::{PathFigures, Round, WritePath, Writer, bars, figures, svg};
use crate::plan::PathsPlan;
use crate::report::{OutFolder, rate};
use crate::target::LiveTarget;

/// Its results.
const FILE: &str = "paths.json";
/// On top of the rounds: connecting, making the table, waiting for the last outcomes.
const AROUND: Duration = Duration::from_secs(120);

pub(crate) fn run(settings: &PathsSettings) -> Result<Exit> {
    let plan = PathsPlan::new(settings)?;
    let mut out = plan.out.as_ref().map(|out| OutFolder::make(out, &[FILE])).transpose()?;
    let interrupt = Interrupt::listen()?;
    let console = Console::new(plan.json);
    let deadline = Instant::now() + plan.time * 3 * plan.rounds + AROUND;
    let target = LiveTarget::open(&plan.target, &plan.workload, plan.point, &interrupt, deadline)?;
    target.prepare(plan.create)?;
    console.line(&format!("target    {}", plan.target));
    console.line(&format!(
        "workload  {}: each path for {} s, {} rounds in turns; single puts from {} tasks",
        plan.workload.name,
        plan.time.as_secs_f64(),
        plan.rounds,
        plan.point.threads
    ));
    let found = measure(&plan, &target, &interrupt)?;
    report(&plan, &console, &found, out.as_mut())?;
    let failed = found.iter().any(|it| it.failed > 0);
    Ok(if interrupt.is_set() {
        Exit::Interrupted
    } else if failed {
        Exit::Failed
    } else {
        Exit::Done
    })
}

fn measure(plan: &PathsPlan, target: &LiveTarget, interrupt: &Interrupt) -> Result<Vec<PathFigures>> {
    let session = target.session()?;
    let open = session.client.table(Arc::clone(&plan.workload.table));
    let table = session.runtime.block_on(open).map_err(|error| Failure::input(error.to_string()))?;
    let writer = Writer::new(table, Arc::clone(&plan.workload), plan.point.threads);
    let progress = bar(u64::from(plan.rounds) * 3);
    let mut rounds: [Vec<Round>; 3] = Default::default();
    for number in 0..plan.rounds {
        // In turns, each round from another path on, so that none is always the first.
        for turn in 0..3 {
            let place = (turn + usize::try_from(number).unwrap_or_default()) % 3;
            if interrupt.is_set() {
                break;
            }
            let (Some(path), Some(done)) = (WritePath::ALL.get(place), rounds.get_mut(place)) else { continue };
            let cpu = cpu_time();
            // On the runtime's own threads, as an application's tasks are.
            let work = writer.clone();
            let (path, time) = (*path, plan.time);
            let task = session.runtime.spawn(async move { work.round(path, time).await });
            let mut round = session.runtime.block_on(task).map_err(|error| Failure::input(error.to_string()))?;
            round.cpu = cpu_time().saturating_sub(cpu);
            done.push(round);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    let [puts, _, _] = &rounds;
    Ok(WritePath::ALL.into_iter().zip(&rounds).map(|(path, own)| figures(path, own, puts)).collect())
}

fn report(plan: &PathsPlan, console: &Console, found: &[PathFigures], out: Option<&mut OutFolder>) -> Result<()> {
    console.line("     path    rows/s   ±95 %    × put   client µs/row   failed");
    for it in found {
        let half = (it.interval[1] - it.rows_per_s) / it.rows_per_s.max(f64::EPSILON) * 100.0;
        console.line(&format!(
            "{:>9}  {:>8}  {half:>4.1} %  {:>7.1}  {:>14.2}  {:>7}",
            it.path.name(),
            rate(it.rows_per_s),
            it.times_put,
            it.cpu_us_per_row,
            it.failed
        ));
    }
    for line in bars(found) {
        console.line(&line);
    }
    for it in found.iter().filter(|it| it.failed > 0) {
        console.line(&format!("failed    {}: {}", it.path.name(), it.example.as_deref().unwrap_or("unknown")));
    }
    let result = json!({
        "target": plan.target.to_string(), "workload": plan.workload.name, "threads": plan.point.threads,
        "seconds": plan.time.as_secs_f64(), "rounds": plan.rounds, "paths": found,
    });
    let text = format!("{result:#}\n");
    if plan.json {
        Console::result(&text);
    }
    if let Some(out) = out {
        out.keep();
        out.write(FILE, &text)?;
        out.write("paths.svg", &svg(found, &format!("{} into {}", plan.workload.name, plan.target)))?;
        console.line(&format!("wrote     {}: {FILE}, paths.svg", out.path().display()));
    }
    Ok(())
}
