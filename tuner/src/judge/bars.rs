//! The bars of the judgement in one table: each with the worst figure of all servers.

use super::pairs::{FALSELY, Pairs};
use super::servers::Right;
use super::table::Row;

/// What a bar says of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    AtMost,
    AtLeast,
}

/// A bar for a figure of every row that has it.
struct Bar {
    name: &'static str,
    side: Side,
    limit: f64,
    /// In percent, but for windows.
    figure: fn(&Row) -> Option<f64>,
    /// What [`Row::missed`] calls it.
    missed: &'static str,
}

const BARS: [Bar; 13] = [
    at_most("loss p95, cv 1 and 2", 3.0, |row| row.loss().filter(|_| row.cv() < 3.0), "loss"),
    at_most("loss p95, cv 5", 5.0, |row| row.loss().filter(|_| row.cv() > 3.0), "loss"),
    at_most("bias of the figure", 0.3, Row::bias, "bias"),
    at_least("truth in its interval", 92.0, Row::covered, "coverage"),
    at_most("and not too often", 98.0, Row::covered, "coverage"),
    at_least("knee within 5 %", 99.0, Row::near, "within 5 %"),
    at_most("windows, one axis", 40.0, |row| row.windows(1..=1), "windows"),
    at_most("windows, two or three", 90.0, |row| row.windows(2..=3), "windows"),
    at_most("windows, four axes", 120.0, |row| row.windows(4..=4), "windows"),
    at_least("says no_peak_in_range", 95.0, |row| row.right(Right::NoPeak), "verdict"),
    at_least("says unstable", 95.0, |row| row.right(Right::Unstable), "verdict"),
    at_least("says knee_found", 95.0, |row| row.right(Right::Knee), "verdict"),
    at_least("fresh run without error", 99.5, |row| Some(row.clean()), "errors"),
];

const fn at_most(name: &'static str, limit: f64, figure: fn(&Row) -> Option<f64>, missed: &'static str) -> Bar {
    Bar { name, side: Side::AtMost, limit, figure, missed }
}

const fn at_least(name: &'static str, limit: f64, figure: fn(&Row) -> Option<f64>, missed: &'static str) -> Bar {
    Bar { side: Side::AtLeast, ..at_most(name, limit, figure, missed) }
}

/// The table as lines. Where the worst figure is beyond its bar by no more than chance explains with so many seeds, it says so.
pub(crate) fn bars(rows: &[Row], pairs: &[Pairs]) -> Vec<String> {
    let mut lines: Vec<String> = BARS.iter().filter_map(|bar| line(bar, rows)).collect();
    let worst = pairs.iter().max_by(|a, b| a.falsely().total_cmp(&b.falsely()));
    lines.extend(worst.map(|worst| {
        let figure = worst.falsely() * 100.0;
        let verdict = verdict(figure <= FALSELY * 100.0, worst.misses());
        text("equals called different", Side::AtMost, FALSELY * 100.0, figure, worst.name(), verdict)
    }));
    lines
}

fn line(bar: &Bar, rows: &[Row]) -> Option<String> {
    let figures = rows.iter().filter_map(|row| Some((row, (bar.figure)(row)?)));
    let (row, figure) = figures.reduce(|worst, it| {
        let is_worse = if bar.side == Side::AtMost { it.1 > worst.1 } else { it.1 < worst.1 };
        if is_worse { it } else { worst }
    })?;
    let met = if bar.side == Side::AtMost { figure <= bar.limit } else { figure >= bar.limit };
    let missed = rows.iter().any(|row| (bar.figure)(row).is_some() && row.missed().contains(&bar.missed));
    Some(text(bar.name, bar.side, bar.limit, figure, row.place(), verdict(met, missed)))
}

fn verdict(met: bool, missed: bool) -> &'static str {
    match (met, missed) {
        (true, _) => "met",
        (false, false) => "within chance",
        (false, true) => "MISSED",
    }
}

fn text(name: &str, side: Side, bar: f64, figure: f64, place: String, verdict: &str) -> String {
    let sign = if side == Side::AtMost { "≤" } else { "≥" };
    format!("{name:<24} {sign} {bar:>5} {figure:>7.2}  {place:<26} {verdict}")
}

/// The heads of the columns.
pub(crate) fn bars_header() -> String {
    format!("{:<24} {:>7} {:>7}  {:<26} verdict", "bar", "", "worst", "of")
}
