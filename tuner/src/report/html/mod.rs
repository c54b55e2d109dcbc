//! `report.html`: one page that holds everything and fetches nothing.

mod plot;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use self::plot::{Plot, escape, heat_map};
use super::figures::{Figures, cpu};
use super::model::{fullest, line};
use super::table::{closing, millis, percent, rate};
use super::{ResultFile, Window};
use crate::search::Purpose;
use crate::space::{Axis, Point};
use crate::stats::real_len;

/// Points of a fitted curve.
const SMOOTH: usize = 80;

/// The page.
pub(crate) fn html(result: &ResultFile, windows: &[Window]) -> String {
    let title = format!("{} on {}", result.workload, result.target);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{0}</title>\
         <style>{1}</style></head><body>\n<h1>{0}</h1>\n",
        escape(&title),
        include_str!("style.css")
    );
    page += &answer(result);
    if let Some(chosen) = result.chosen() {
        let through = fullest(windows, chosen.point);
        page += &curve(result, windows, through);
        page += &latency(result, windows, through);
        page += &heat(windows);
    }
    page += &section("Points", &points(windows));
    page += &section("Settings", &settings(result));
    page += &section("Environment", &environment(result));
    page + "</body></html>\n"
}

fn section(title: &str, body: &str) -> String {
    format!("<h2>{title}</h2>\n{body}\n")
}

fn answer(result: &ResultFile) -> String {
    let mut text = format!("<p class=\"about\">{}</p>\n<table class=\"plain\">", escape(&result.environment.finished));
    for (name, sentence) in closing(result) {
        let class = if matches!(name, "knee" | "best") { " class=\"answer\"" } else { "" };
        let _ = write!(text, "<tr><th>{name}</th><td{class}>{}</td></tr>", escape(&sentence));
    }
    text + "</table>\n"
}

/// The figures of every number of threads on the line through a point.
fn figures(windows: &[Window], through: Point) -> Vec<Figures> {
    let values = line(windows, through).into_keys();
    let at = |threads: u32| {
        let point = through.with(Axis::Threads, threads);
        let here: Vec<&Window> = windows.iter().filter(|it| it.trial.probe.point == point && counts(it)).collect();
        Figures::of(point, &here, None)
    };
    values.filter_map(at).collect()
}

fn counts(window: &Window) -> bool {
    window.trial.probe.purpose != Purpose::WarmUp
}

fn curve(result: &ResultFile, windows: &[Window], through: Point) -> String {
    let figures = figures(windows, through);
    let threads: Vec<u32> = figures.iter().map(|it| it.point.threads).collect();
    let (Some(first), Some(last)) = (threads.first(), threads.last()) else { return String::new() };
    // What failed with other rows per request is no ceiling of these threads.
    let ceiling = result.ceiling.as_ref().filter(|it| it.point.batch == through.batch);
    let ceiling = ceiling.map(|it| it.point.threads).filter(|it| *it >= *first);
    let end = ceiling.map_or(*last, |ceiling| ceiling.max(*last));
    let top = figures.iter().map(|it| it.ci95[1].max(it.rows_per_s)).fold(0.0, f64::max);
    let mut plot = Plot::new(f64::from(*first), f64::from(end), top);
    let x = |it: &Figures| f64::from(it.point.threads);
    plot.band("band", &figures.iter().map(|it| (x(it), it.ci95[0], it.ci95[1])).collect::<Vec<_>>());
    if let Some(model) = &result.model {
        let step = (f64::from(end) / f64::from(*first)).powf(1.0 / real_len(SMOOTH));
        let values = std::iter::successors(Some(f64::from(*first)), |value| Some(value * step)).take(SMOOTH + 1);
        plot.line("fit", &values.map(|value| (value, model.at(value))).collect::<Vec<_>>());
    }
    plot.line("curve", &figures.iter().map(|it| (x(it), it.rows_per_s)).collect::<Vec<_>>());
    let text = |it: &Figures| format!("{}: {} rows/s", it.point, rate(it.rows_per_s));
    plot.dots("dot", &figures.iter().map(|it| (x(it), it.rows_per_s, text(it))).collect::<Vec<_>>());
    let marks = [("knee", &result.knee), ("peak", &result.peak)];
    for (place, (name, found)) in marks.into_iter().enumerate() {
        // A peak that is the knee needs no line of its own.
        let again = name == "peak" && result.knee.as_ref().map(|knee| knee.point) == found.as_ref().map(|it| it.point);
        if let Some(found) = found.as_ref().filter(|_| !again) {
            plot.mark(name, f64::from(found.point.threads), place, &format!("{name} {}", found.point.threads));
        }
    }
    if let (Some(at), Some(ceiling)) = (ceiling, &result.ceiling) {
        plot.mark("ceiling", f64::from(at), 2, &format!("ceiling {at}: {}", ceiling.cause));
    }
    let svg = plot.finish("rows per second over threads", &threads, "threads", rate);
    let Point { io_threads, pool, batch, .. } = through;
    let beside = format!("At {io_threads} io threads, pool {pool}, batch {batch}. {}", law(result));
    section("Throughput", &format!("<figure>{svg}<figcaption>{}</figcaption></figure>", escape(&beside)))
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

fn latency(result: &ResultFile, windows: &[Window], through: Point) -> String {
    let figures = figures(windows, through);
    let threads: Vec<u32> = figures.iter().map(|it| it.point.threads).collect();
    let (Some(first), Some(last)) = (threads.first(), threads.last()) else { return String::new() };
    let top = figures.iter().filter_map(|it| it.p99_ms).fold(0.0, f64::max);
    let mut plot = Plot::new(f64::from(*first), f64::from(*last), top);
    for (class, dot, name, pick) in [
        ("curve", "dot", "p50", (|it: &Figures| it.p50_ms) as fn(&Figures) -> Option<f64>),
        ("second", "dot2", "p99", |it: &Figures| it.p99_ms),
    ] {
        let points: Vec<(f64, f64)> =
            figures.iter().filter_map(|it| Some((f64::from(it.point.threads), pick(it)?))).collect();
        plot.line(class, &points);
        plot.dots(dot, &points.iter().map(|(x, y)| (*x, *y, format!("{name} {}", millis(*y)))).collect::<Vec<_>>());
    }
    let open = if result.settings.rates.is_empty() { "" } else { " Response times count from the intended start." };
    let svg = plot.finish("latency over threads", &threads, "threads", millis);
    section("Latency", &format!("<figure>{svg}<figcaption>Blue p50, orange p99.{open}</figcaption></figure>"))
}

/// The best rate for every pair of connections and rows per request; nothing where one of them never changed.
fn heat(windows: &[Window]) -> String {
    let mut best: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for window in windows.iter().filter(|window| counts(window) && window.trial.errors == 0) {
        let Point { pool, batch, .. } = window.trial.probe.point;
        let cell = best.entry((pool, batch)).or_default();
        *cell = cell.max(window.trial.rate);
    }
    let pools: Vec<u32> = best.keys().map(|it| it.0).collect::<BTreeSet<_>>().into_iter().collect();
    let batches: Vec<u32> = best.keys().map(|it| it.1).collect::<BTreeSet<_>>().into_iter().collect();
    if pools.len() < 2 && batches.len() < 2 {
        return String::new();
    }
    let top = best.values().copied().fold(0.0, f64::max);
    let cell = |pool, batch| best.get(&(pool, batch)).map(|found| (found / top, rate(*found)));
    let map = heat_map("pool \\ batch", &pools, &batches, cell);
    let caption = "The best window in rows/s of each pair, over all threads.";
    section("Pool and batch", &format!("<figure>{map}<figcaption>{caption}</figcaption></figure>"))
}

fn points(windows: &[Window]) -> String {
    let mut by_point: BTreeMap<(Point, Option<u64>), Vec<&Window>> = BTreeMap::new();
    for window in windows.iter().filter(|window| counts(window)) {
        by_point.entry((window.trial.probe.point, window.trial.probe.rate.map(f64::to_bits))).or_default().push(window);
    }
    let mut table = String::from(
        "<div class=\"wide\"><table><tr><th>threads</th><th>io</th><th>pool</th><th>batch</th><th>offered/s</th><th>windows</th>\
         <th>rows/s</th><th>±95 %</th><th>p50</th><th>p95</th><th>p99</th><th>errors</th><th>client CPU</th></tr>",
    );
    for ((point, _), windows) in &by_point {
        table += &row(*point, windows).unwrap_or_default();
    }
    table + "</table></div>"
}

fn row(point: Point, windows: &[&Window]) -> Option<String> {
    let figures = Figures::of(point, windows, None)?;
    let half = (figures.ci95[1] - figures.ci95[0]) / 2.0 / figures.rows_per_s;
    let time = |value: Option<f64>| value.map_or_else(|| "–".into(), millis);
    let errors: BTreeSet<String> =
        windows.iter().flat_map(|it| &it.measurement.errors).map(|(class, count)| format!("{count} {class}")).collect();
    let errors = if errors.is_empty() { "0".into() } else { errors.into_iter().collect::<Vec<_>>().join(", ") };
    let offered =
        windows.first().and_then(|it| it.trial.probe.rate).map_or_else(|| "–".into(), |rate| rate.to_string());
    let busy = cpu(windows).map_or_else(|| "–".into(), |cpu| percent(cpu.client));
    let cells = [
        point.threads.to_string(),
        point.io_threads.to_string(),
        point.pool.to_string(),
        point.batch.to_string(),
        offered,
        windows.len().to_string(),
        rate(figures.rows_per_s),
        if half.is_finite() { format!("{:.1} %", half * 100.0) } else { "–".into() },
        time(figures.p50_ms),
        time(figures.p95_ms),
        time(figures.p99_ms),
        errors,
        busy,
    ];
    let cells: Vec<String> = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
    Some(format!("<tr>{}</tr>", cells.concat()))
}

fn plain(rows: &[(&str, String)]) -> String {
    let rows: Vec<String> =
        rows.iter().map(|(name, value)| format!("<tr><th>{name}</th><td>{}</td></tr>", escape(value))).collect();
    format!("<table class=\"plain\">{}</table>", rows.concat())
}

fn settings(result: &ResultFile) -> String {
    let terms = &result.settings;
    let rates: Vec<String> = terms.rates.iter().map(ToString::to_string).collect();
    plain(&[
        ("target", terms.target.clone()),
        ("workload", terms.workload.clone()),
        ("threads", terms.threads.clone()),
        ("io threads", terms.io_threads.clone()),
        ("pool", terms.pool.clone()),
        ("batch", terms.batch.clone()),
        ("objectives", terms.objectives.join(", ")),
        ("offered requests/s", if rates.is_empty() { "closed loop".into() } else { rates.join(", ") }),
        ("seed", terms.seed.to_string()),
    ])
}

fn environment(result: &ResultFile) -> String {
    let environment = &result.environment;
    let place = match (environment.same_process, environment.same_machine) {
        (true, _) => "in the client's process",
        (false, true) => "on the client's machine",
        (false, false) => "on another machine",
    };
    plain(&[
        ("version", environment.version.clone()),
        ("client", format!("{} {}, {} cores", environment.os, environment.arch, environment.cores)),
        ("target", place.into()),
        ("time", format!("{:.0} s of {:.0} s", environment.spent_s, environment.budget_s)),
        ("windows", result.windows.to_string()),
    ])
}
