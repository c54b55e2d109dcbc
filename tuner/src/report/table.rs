//! What the terminal shows: a row for every window, and the verdict.

use std::collections::BTreeMap;

use super::figures::{cpu, latency, percentile};
use super::{ResultFile, Window};
use crate::plan::Plan;
use crate::search::{Purpose, Trial, Verdict};
use crate::space::{Axis, Point};
use crate::stats::whole;

/// Bars of rising height.
const BARS: &str = "▁▂▃▄▅▆▇█";

/// The lines before the first window.
pub(crate) fn opening(plan: &Plan, notes: &[String]) -> Vec<String> {
    let ranges = Axis::ALL.map(|axis| format!("{} {}", axis.name(), plan.space.on(axis))).join(", ");
    let temporary = if plan.target.is_temporary() { " (gone when it ends)" } else { "" };
    let mut lines = vec![
        format!("target    {}{temporary}", plan.target),
        format!("workload  {}: {}", plan.workload.name, plan.workload.about),
        format!("search    {ranges}; budget {}", humantime::format_duration(plan.budget)),
    ];
    lines.extend(plan.notes.iter().chain(notes).map(|note| format!("note      {note}")));
    lines
}

/// The heads of the columns.
pub(crate) fn header() -> String {
    format!(
        "{:>7} {:>3} {:>5} {:>6} {:>9} {:>7} {:>9} {:>9} {:>8} {:>5}",
        "threads", "io", "pool", "batch", "rows/s", "±95 %", "p50", "p99", "errors", "cpu"
    )
}

/// The row of a window.
pub(crate) fn row(window: &Window) -> String {
    let Point { threads, io_threads, pool, batch } = window.trial.probe.point;
    let (trial, measurement) = (&window.trial, &window.measurement);
    let error = measurement.rate.and_then(|rate| rate.relative_error());
    let error = error.map_or_else(|| "-".into(), |error| format!("{:.1} %", error * 100.0));
    let latency = latency(&[window]);
    let [p50, p99] =
        [0.50, 0.99].map(|quantile| percentile(latency.as_ref(), quantile).map_or_else(|| "-".into(), millis));
    let busy = cpu(&[window]).map_or_else(|| "-".into(), |cpu| percent(cpu.client + cpu.others));
    let note = match (trial.probe.purpose, measurement.cause()) {
        (_, Some(cause)) => format!("  {cause}"),
        (_, None) if measurement.partial => "  cut short".into(),
        (Purpose::Explore, None) => String::new(),
        (purpose, None) => format!("  {}", purpose.name().replace('_', "-")),
    };
    let (rate, errors) = (rate(trial.rate), measurement.failures());
    format!(
        "{threads:>7} {io_threads:>3} {pool:>5} {batch:>6} {rate:>9} {error:>7} {p50:>9} {p99:>9} {errors:>8} {busy:>5}{note}"
    )
}

/// The lines after the last window: a name, and what it is.
pub(crate) fn closing(result: &ResultFile) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let figures = |name, figures: &Option<super::Figures>| Some((name, sentence(figures.as_ref()?)));
    lines.extend(figures("knee", &result.knee));
    if result.knee.as_ref().map(|knee| knee.point) != result.peak.as_ref().map(|peak| peak.point) {
        lines.extend(figures(if result.knee.is_some() { "peak" } else { "best" }, &result.peak));
    }
    for (place, why) in result.why.iter().enumerate() {
        lines.push((if place == 1 { "advice" } else { "why" }, why.clone()));
    }
    for cheaper in &result.cheaper {
        lines.push(("cheaper", format!("{} cost {:.1} %", cheaper.point, cheaper.loss * 100.0)));
    }
    lines.extend(result.beside.as_ref().map(|beside| ("defaults", beside.text())));
    lines.push(("ceiling", ceiling(result)));
    lines.push(("stopped", result.stop_reason.clone()));
    lines
}

fn ceiling(result: &ResultFile) -> String {
    match &result.ceiling {
        Some(ceiling) if ceiling.errors == 0 => format!("{}: {}", ceiling.point, ceiling.cause),
        Some(ceiling) => format!("{}: {} errors, most of them {}", ceiling.point, ceiling.errors, ceiling.cause),
        None if result.verdict == Verdict::NoFeasiblePoint => "none known".into(),
        None => "none met".into(),
    }
}

fn sentence(figures: &super::Figures) -> String {
    let [lo, hi] = figures.ci95.map(rate);
    let p99 = figures.p99_ms.map_or_else(String::new, |p99| format!(", p99 {}", millis(p99)));
    let errors = if figures.errors == 0 { "no errors".to_owned() } else { format!("{} errors", figures.errors) };
    let apdex = figures.apdex.map_or_else(String::new, |apdex| format!(", APDEX {apdex:.3}"));
    let per_cpu = figures.rows_per_cpu_percent.map_or_else(String::new, |rows| format!(", {} per 1 % CPU", rate(rows)));
    format!("{}: {} rows/s ({lo} to {hi}){p99}{apdex}{per_cpu}, {errors}", figures.point, rate(figures.rows_per_s))
}

/// The curve over threads so far, as a row of bars, for the line of a point; empty with fewer than three numbers of threads.
pub(crate) fn sparkline(history: &[Trial], through: Point) -> String {
    let mut line: BTreeMap<u32, (f64, u32)> = BTreeMap::new();
    for trial in history.iter().filter(|trial| trial.probe.purpose != Purpose::WarmUp) {
        if trial.probe.point.with(Axis::Threads, 1) == through.with(Axis::Threads, 1) {
            let (sum, count) = line.entry(trial.probe.point.threads).or_default();
            (*sum, *count) = (*sum + trial.rate, *count + 1);
        }
    }
    let means: Vec<f64> = line.values().map(|(sum, count)| sum / f64::from(*count)).collect();
    let (Some(first), Some(last), top) =
        (line.keys().next(), line.keys().next_back(), means.iter().copied().fold(0.0, f64::max))
    else {
        return String::new();
    };
    if means.len() < 3 || top <= 0.0 {
        return String::new();
    }
    let bar = |mean: &f64| {
        let height = usize::try_from(whole(mean / top * 7.0)).unwrap_or_default();
        BARS.chars().nth(height.min(7)).unwrap_or(' ')
    };
    format!("  {first} {} {last} threads", means.iter().map(bar).collect::<String>())
}

/// A rate in four digits at the most.
pub(crate) fn rate(rate: f64) -> String {
    match rate {
        _ if rate >= 999_500.0 => format!("{:.2} M", rate / 1e6),
        _ if rate >= 99_950.0 => format!("{:.0} k", rate / 1e3),
        _ if rate >= 999.5 => format!("{:.1} k", rate / 1e3),
        _ => format!("{rate:.0}"),
    }
}

/// A time in three digits at the most.
pub(super) fn millis(millis: f64) -> String {
    match millis {
        _ if millis >= 1000.0 => format!("{:.2} s", millis / 1e3),
        _ if millis >= 100.0 => format!("{millis:.0} ms"),
        _ if millis >= 1.0 => format!("{millis:.1} ms"),
        _ => format!("{:.0} µs", millis * 1e3),
    }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_times_are_short() {
        let rates = [3.0, 999.0, 1234.0, 99_900.0, 412_345.0, 1_234_567.0].map(rate);
        assert_eq!(rates, ["3", "999", "1.2 k", "99.9 k", "412 k", "1.23 M"]);
        assert_eq!([0.021, 1.94, 250.0, 1500.0].map(millis), ["21 µs", "1.9 ms", "250 ms", "1.50 s"]);
    }
}
