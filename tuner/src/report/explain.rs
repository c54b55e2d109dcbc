//! Why the knee is where it is, in sentences: what was full, and whose it was.

use super::figures::cpu;
use super::table::percent;
use super::{Outcome, Window};
use crate::machine::CpuShares;
use crate::plan::Plan;
use crate::search::{Answer, DELTA, Verdict};
use crate::space::{Axis, Point};
use crate::stats::real;

/// From this share on a machine, or the client's threads, count as full.
const FULL: f64 = 0.9;
/// From this share of the machine on, the client's own work is its limit.
const CLIENT_BOUND: f64 = 0.8;
/// The generator's share of the client's time that spoils a measurement.
const GENERATOR: f64 = 0.2;

/// Sentences that explain the chosen point.
pub(crate) fn explain(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let answer = &outcome.answer;
    let Some(choice) = answer.knee.as_ref().or(answer.peak.as_ref()) else {
        return failures(outcome).into_iter().collect();
    };
    let windows = outcome.windows_at(&choice.trials);
    let mut why = Vec::new();
    if answer.verdict == Verdict::KneeFound {
        why.push(limit(answer, choice.point));
    }
    if !choice.confirmed {
        why.push("the figures are those of the search: there was no time for a fresh run".into());
    }
    if let Some(cpu) = cpu(&windows) {
        why.push(processor(plan, choice.point, cpu));
        why.extend(generator(plan, &windows, cpu));
    }
    why.extend(missing(&outcome.windows));
    why.extend(failures(outcome));
    why
}

/// What more would bring.
fn limit(answer: &Answer, knee: Point) -> String {
    let percent = percent(DELTA);
    match (&answer.ceiling, &answer.peak) {
        (Some(ceiling), _) if ceiling.point > knee && ceiling.point.threads > knee.threads => {
            format!("no dearer point without errors gains {percent}; at {} threads errors begin", ceiling.point.threads)
        }
        (_, Some(peak)) if peak.point != knee => format!("the peak lies within {percent}, at a dearer point"),
        _ => format!("no dearer point gains {percent}"),
    }
}

/// Whose the processor time was.
fn processor(plan: &Plan, point: Point, cpu: CpuShares) -> String {
    let (client, others, total) = (percent(cpu.client), percent(cpu.others), cpu.client + cpu.others);
    if plan.target.is_in_process() {
        let full = if total >= FULL { "the machine is full" } else { "the processor is not the limit" };
        return format!(
            "{full}: client and engine are one process, which takes {client}, and the rest of the machine {others}"
        );
    }
    let share = f64::from(point.io_threads.min(plan.space.cores)) / f64::from(plan.space.cores.max(1));
    let threads_full = cpu.client >= FULL * share && plan.space.on(Axis::IoThreads).hi() == point.io_threads;
    let bound = cpu.client >= CLIENT_BOUND || threads_full;
    match (plan.target.is_on_this_machine(), bound, total >= FULL) {
        (true, true, _) => format!(
            "client-bound: the client takes {client} of the machine that it shares with the server ({others} with all else)"
        ),
        (true, false, true) => format!(
            "the machine is full: the client takes {client} of it, the server with all else {others}; apart, both may go further"
        ),
        (true, false, false) => {
            format!(
                "the processor is not the limit: the client takes {client} of this machine, the server with all else {others}"
            )
        }
        (false, true, _) => format!("client-bound: the client's processor is at {client}, so the server may take more"),
        (false, false, _) => format!("the client is not the limit: its processor is at {client}"),
    }
}

/// A warning where making the requests is what takes the time.
fn generator(plan: &Plan, windows: &[&Window], cpu: CpuShares) -> Option<String> {
    let cores = windows.iter().map(|window| window.measurement.generator).sum::<f64>() / real(windows.len() as u64);
    let share = cores / (cpu.client * f64::from(plan.space.cores)).max(f64::EPSILON);
    (share > GENERATOR)
        .then(|| format!("making the requests takes {} of the client's processor time", percent(share.min(1.0))))
}

/// A warning where reads found nothing.
fn missing(windows: &[Window]) -> Option<String> {
    let missing: u64 = windows.iter().map(|window| window.measurement.missing).sum();
    (missing > 0).then(|| format!("{missing} rows that were asked for are not there; tuner load writes all of them"))
}

/// One of the failures, word for word.
fn failures(outcome: &Outcome) -> Option<String> {
    let example = outcome.windows.iter().find_map(|window| window.measurement.example.as_ref())?;
    Some(format!("the first failure: {example}"))
}
