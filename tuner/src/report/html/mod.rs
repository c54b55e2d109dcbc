//! `report.html`: one page that holds everything and fetches nothing.

mod curve;
mod plot;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use self::curve::curve;
use self::plot::{Plot, escape, heat_map};
use super::figures::{Figures, cpu};
use super::model::{fullest, line};
use super::table::{closing, millis, percent, rate};
use super::{ResultFile, Window};
use crate::search::Purpose;
use crate::space::{Axis, Point};

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

/// A column of the table of points: its head, whether it is there, and what it shows.
type Column<'c> = (&'c str, bool, fn(&Figures, &[&Window]) -> String);

fn points(windows: &[Window]) -> String {
    let mut by_point: BTreeMap<(Point, Option<u64>), Vec<&Window>> = BTreeMap::new();
    for window in windows.iter().filter(|window| counts(window)) {
        by_point.entry((window.trial.probe.point, window.trial.probe.rate.map(f64::to_bits))).or_default().push(window);
    }
    let open = windows.iter().any(|window| window.trial.probe.rate.is_some());
    let seen = windows.iter().any(|window| window.measurement.cpu.is_some());
    let columns = columns(open, seen);
    let shown = || columns.iter().filter(|(_, shown, _)| *shown);
    let heads: Vec<String> = shown().map(|(head, ..)| format!("<th>{head}</th>")).collect();
    let mut table = format!("<div class=\"wide\"><table><tr>{}</tr>", heads.concat());
    for ((point, _), windows) in &by_point {
        let Some(figures) = Figures::of(*point, windows, None) else { continue };
        let cells = shown().map(|(.., cell)| format!("<td>{}</td>", escape(&cell(&figures, windows))));
        let _ = write!(table, "<tr>{}</tr>", cells.collect::<Vec<_>>().concat());
    }
    table + "</table></div>"
}

fn columns(open: bool, seen: bool) -> [Column<'static>; 13] {
    [
        ("threads", true, |it, _| it.point.threads.to_string()),
        ("io", true, |it, _| it.point.io_threads.to_string()),
        ("pool", true, |it, _| it.point.pool.to_string()),
        ("batch", true, |it, _| it.point.batch.to_string()),
        ("offered/s", open, |_, windows| {
            or_dash(windows.first().and_then(|it| it.trial.probe.rate), |it| it.to_string())
        }),
        ("windows", true, |_, windows| windows.len().to_string()),
        ("rows/s", true, |it, _| rate(it.rows_per_s)),
        ("±95 %", true, |it, _| half_width(it)),
        ("p50", true, |it, _| or_dash(it.p50_ms, millis)),
        ("p95", true, |it, _| or_dash(it.p95_ms, millis)),
        ("p99", true, |it, _| or_dash(it.p99_ms, millis)),
        ("errors", true, |_, windows| errors(windows)),
        ("client CPU", seen, |_, windows| or_dash(cpu(windows).map(|cpu| cpu.client), percent)),
    ]
}

fn or_dash(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "–".into(), show)
}

fn half_width(figures: &Figures) -> String {
    let half = (figures.ci95[1] - figures.ci95[0]) / 2.0 / figures.rows_per_s;
    if half.is_finite() { format!("{:.1} %", half * 100.0) } else { "–".into() }
}

/// Failures of all windows by class.
fn errors(windows: &[&Window]) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (class, count) in windows.iter().flat_map(|it| &it.measurement.errors) {
        *counts.entry(class).or_default() += count;
    }
    let counts: Vec<String> = counts.into_iter().map(|(class, count)| format!("{count} {class}")).collect();
    if counts.is_empty() { "0".into() } else { counts.join(", ") }
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
