//! Why the knee is where it is, in sentences.

use super::figures::{cpu, latency, percentile};
use super::limit::{Explanation, poorer_failure};
use super::table::percent;
use super::{Outcome, Window};
use crate::plan::Plan;
use crate::space::Point;
use crate::stats::real;

/// Requests in flight below this share of the threads: they waited for something in the client.
const IDLE: f64 = 0.8;
/// And above this one there were more in flight than there were threads, so the measurement is wrong.
const IMPOSSIBLE: f64 = 1.05;

/// Requests that take more than a window over this are long.
const LONG: f64 = 8.0;

/// Sentences that explain the chosen point: why throughput ends there, what to do, and what else is worth knowing.
pub(crate) fn explain(plan: &Plan, outcome: &Outcome, explanation: &Explanation) -> Vec<String> {
    let answer = &outcome.answer;
    let mut why = vec![explanation.why.clone(), explanation.advice.clone()];
    if let Some(choice) = answer.knee.as_ref().or(answer.peak.as_ref()) {
        let windows = outcome.windows_at(&choice.trials);
        if !choice.confirmed {
            why.push("the figures are those of the search: there was no time for a fresh run".into());
        }
        why.extend(cured(outcome, choice.point));
        why.extend(processor(plan, &windows));
        why.extend(in_flight(plan, choice.point.threads, &windows));
        why.extend(offer(&windows));
    }
    why.extend(outcome.notes.iter().cloned());
    why.extend(missing(&outcome.windows));
    why.extend(failures(outcome));
    why
}

/// Settings that fail at a load which the chosen ones carry: what more io threads and connections are for.
fn cured(outcome: &Outcome, chosen: Point) -> Option<String> {
    let (works, failed) = poorer_failure(outcome, chosen)?;
    let point = failed.trial.probe.point;
    let cause = failed.measurement.cause().unwrap_or("errors");
    let with = |point: Point| format!("{} threads with {} io, {} pool", point.threads, point.io_threads, point.pool);
    Some(format!("{} fail with {cause}; {} don't", with(point), with(works)))
}

/// How busy the client was.
fn processor(plan: &Plan, windows: &[&Window]) -> Option<String> {
    let cpu = cpu(windows)?;
    let (client, others) = (percent(cpu.client), percent(cpu.others));
    Some(if plan.target.is_in_process() {
        format!("client and engine are one process, which takes {client} of the machine, and all else {others}")
    } else if plan.target.is_on_this_machine() {
        format!("the client takes {client} of this machine, the server with all else {others}")
    } else {
        format!("the client's processor is at {client}")
    })
}

/// Little's law: in closed loop every thread has a request in flight, or something is wrong.
fn in_flight(plan: &Plan, threads: u32, windows: &[&Window]) -> Option<String> {
    let each: Vec<f64> = windows.iter().filter_map(|window| window.measurement.in_flight).collect();
    // What takes a good part of the window is cut off at its ends, and the law can't be seen.
    let longest = percentile(latency(windows).as_ref(), 0.99).unwrap_or_default() * LONG;
    let cut = windows.iter().any(|window| longest > window.measurement.elapsed.as_secs_f64() * 1e3);
    if each.is_empty() || cut || !plan.rates.is_empty() {
        return None;
    }
    let share = each.iter().sum::<f64>() / real(each.len() as u64) / f64::from(threads);
    if share < IDLE {
        Some(format!(
            "by Little's law only {} of the threads had a request in flight: the client is slow",
            percent(share)
        ))
    } else if share > IMPOSSIBLE {
        Some(format!("by Little's law {} of the threads were in flight, which can't be: measure again", percent(share)))
    } else {
        None
    }
}

/// In open loop, what was not even started.
fn offer(windows: &[&Window]) -> Option<String> {
    let schedules = windows.iter().filter_map(|window| window.measurement.schedule);
    let (intended, dropped) = schedules.fold((0, 0), |sum, it| (sum.0 + it.intended, sum.1 + it.dropped));
    (dropped > 0).then(|| format!("{dropped} of {intended} requests were not started in time: all threads were busy"))
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
