//! The plot of throughput over threads.

use std::collections::{BTreeMap, BTreeSet};

use super::plot::{Plot, escape};
use super::{counts, figures, section};
use crate::report::model::{Model, line, mean};
use crate::report::table::{percent, rate};
use crate::report::{Figures, ResultFile, Window};
use crate::space::{Axis, Point};
use crate::stats::real_len;

/// Points of a fitted curve.
const SMOOTH: usize = 80;
/// Numbers of threads that make a line of other settings worth drawing.
const TELLING: usize = 3;

/// Throughput over threads at the settings of a point, with the law, what was found, other connections and io threads, and where
/// requests failed.
pub(super) fn curve(result: &ResultFile, windows: &[Window], through: Point) -> String {
    let figures = figures(windows, through);
    let (others, failed) = (others(windows, through), failed(windows, through));
    let drawn = || others.iter().flat_map(|it| &it.1).copied();
    let measured: BTreeSet<u32> = figures.iter().map(|it| it.point.threads).collect();
    // What failed with other rows per request is no ceiling of these threads.
    let ceiling = result.ceiling.as_ref().filter(|it| it.point.batch == through.batch);
    let shown: BTreeSet<u32> = measured.into_iter().chain(failed.iter().map(|it| it.0)).collect();
    let all = shown.iter().copied().chain(ceiling.map(|it| it.point.threads)).map(f64::from);
    let all: Vec<f64> = all.chain(drawn().map(|it| it.0)).collect();
    let Some(first) = all.iter().copied().reduce(f64::min) else { return String::new() };
    let top = figures.iter().map(|it| it.ci95[1].max(it.rows_per_s)).chain(drawn().map(|it| it.1)).fold(0.0, f64::max);
    let mut plot = Plot::new(first, all.iter().copied().fold(first, f64::max), top);
    for (name, points) in &others {
        plot.line("other", points);
        let text = |rows_per_s: f64| format!("{name}: {} rows/s", rate(rows_per_s));
        plot.dots("dot3", &points.iter().map(|(x, y)| (*x, *y, text(*y))).collect::<Vec<_>>());
    }
    measured_line(&mut plot, &figures, result.model.as_ref());
    plot.crosses("cross", &failed.iter().map(|(x, y, text)| (f64::from(*x), *y, text.clone())).collect::<Vec<_>>());
    marks(&mut plot, result, ceiling.map(|it| (it.point.threads, it.cause.as_str())));
    let svg = plot.finish("rows per second over threads", &shown.into_iter().collect::<Vec<_>>(), "threads", rate);
    let caption = caption(result, through, !others.is_empty(), !failed.is_empty());
    section("Throughput", &format!("<figure>{svg}<figcaption>{}</figcaption></figure>", escape(&caption)))
}

/// The band, the law and the line itself.
fn measured_line(plot: &mut Plot, figures: &[Figures], model: Option<&Model>) {
    let x = |it: &Figures| f64::from(it.point.threads);
    plot.band("band", &figures.iter().map(|it| (x(it), it.ci95[0], it.ci95[1])).collect::<Vec<_>>());
    if let (Some(model), Some(first), Some(last)) = (model, figures.first(), figures.last()) {
        let step = (x(last) / x(first)).powf(1.0 / real_len(SMOOTH));
        let values = std::iter::successors(Some(x(first)), |value| Some(value * step)).take(SMOOTH + 1);
        plot.line("fit", &values.map(|value| (value, model.at(value))).collect::<Vec<_>>());
    }
    plot.line("curve", &figures.iter().map(|it| (x(it), it.rows_per_s)).collect::<Vec<_>>());
    let text = |it: &Figures| format!("{}: {} rows/s", it.point, rate(it.rows_per_s));
    plot.dots("dot", &figures.iter().map(|it| (x(it), it.rows_per_s, text(it))).collect::<Vec<_>>());
}

/// What was found, and the ceiling with its cause.
fn marks(plot: &mut Plot, result: &ResultFile, ceiling: Option<(u32, &str)>) {
    let point = |found: &Option<Figures>| found.as_ref().map(|it| it.point);
    for (place, (name, found)) in [("knee", point(&result.knee)), ("peak", point(&result.peak))].into_iter().enumerate()
    {
        // A peak that is the knee needs no line of its own.
        let again = name == "peak" && point(&result.knee) == found;
        if let Some(found) = found.filter(|_| !again) {
            plot.mark(name, f64::from(found.threads), place, &format!("{name} {}", found.threads));
        }
    }
    if let Some((at, cause)) = ceiling {
        plot.mark("ceiling", f64::from(at), 2, &format!("ceiling {at}: {cause}"));
    }
}

/// A line of other settings: what they are, and rows per second by threads.
type Other = (String, Vec<(f64, f64)>);

/// The lines of other connections and io threads, with the same rows per request.
fn others(windows: &[Window], through: Point) -> Vec<Other> {
    let points = windows.iter().map(|window| window.trial.probe.point.with(Axis::Threads, through.threads));
    let settings: BTreeSet<Point> = points.filter(|point| point.batch == through.batch && *point != through).collect();
    let of = |point: Point| {
        let line = line(windows, point);
        let rates = line.iter().map(|(threads, rates)| (f64::from(*threads), mean(rates)));
        (format!("{} io, {} pool", point.io_threads, point.pool), rates.collect::<Vec<_>>())
    };
    settings.into_iter().map(of).filter(|(_, points)| points.len() >= TELLING).collect()
}

/// Where requests failed: threads, rows per second of those that didn't, and what happened.
fn failed(windows: &[Window], through: Point) -> Vec<(u32, f64, String)> {
    let mut worst: BTreeMap<Point, &Window> = BTreeMap::new();
    let failed = windows.iter().filter(|it| counts(it) && it.measurement.failures() > 0);
    for window in failed.filter(|it| it.trial.probe.point.batch == through.batch) {
        worst.entry(window.trial.probe.point).or_insert(window);
    }
    let cross = |(point, window): (&Point, &&Window)| {
        let (failures, cause) = (window.measurement.failures(), window.measurement.cause().unwrap_or("errors"));
        (point.threads, window.trial.rate, format!("{point}: {failures} requests failed with {cause}"))
    };
    worst.iter().map(cross).collect()
}

fn caption(result: &ResultFile, through: Point, others: bool, failed: bool) -> String {
    let Point { io_threads, pool, batch, .. } = through;
    let mut text = format!("At {io_threads} io threads, pool {pool}, batch {batch}. {}", law(result));
    if others {
        text += " Grey, other connections and io threads.";
    }
    if failed {
        text += " A cross is a point at which requests failed.";
    }
    text
}

/// What the fitted law says, in words.
fn law(result: &ResultFile) -> String {
    let band = "The band is the 95 % confidence interval.";
    let Some(model) = &result.model else {
        return format!("{band} Fewer than four numbers of threads: no law can be fitted.");
    };
    let care = if model.is_weak() { ", on few points" } else { "" };
    let kappa = if model.kappa_at_bound { "κ 0 (at its bound)".into() } else { format!("κ {:.3e}", model.kappa) };
    let peak = match (model.peak_threads, model.limit_rows_per_s) {
        (Some(peak), _) if peak < 1.5 => "it falls from the first thread on".into(),
        (Some(peak), _) => format!("its peak would be at {peak:.0} threads"),
        (None, Some(limit)) => format!("it has no peak, and a limit of {} rows/s", rate(limit)),
        (None, None) => "it has neither peak nor limit".into(),
    };
    let kneedle = model.kneedle_threads.map_or_else(String::new, |knee| {
        format!(" Kneedle, which depends on where the range ends, would say {knee:.0} threads.")
    });
    format!(
        "{band} Dashed, the Universal Scalability Law{care}: λ {}, σ {:.4}, {kappa}; {peak}. It leaves {} unexplained.{kneedle}",
        rate(model.lambda),
        model.sigma,
        percent(model.residual)
    )
}
