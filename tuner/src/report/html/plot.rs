//! Plots as inline SVG: nothing is fetched, and nothing runs.

use std::fmt::Write as _;

use crate::stats::{real_len, whole};

/// The size of a plot, and the room for its labels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 16.0;
const RIGHT: f64 = 24.0;
/// Ticks of the vertical axis.
const TICKS: usize = 4;

/// Text that is no markup.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A plot over a logarithmic horizontal axis, from zero upwards.
#[derive(Debug)]
pub(super) struct Plot {
    /// The logarithms of the ends of the horizontal axis.
    from: f64,
    to: f64,
    top: f64,
    body: String,
}

impl Plot {
    /// A plot of these ranges.
    pub(super) fn new(lowest: f64, highest: f64, top: f64) -> Self {
        let (from, to) = (lowest.ln(), highest.max(lowest * 1.01).ln());
        Self { from, to, top: if top > 0.0 { top * 1.08 } else { 1.0 }, body: String::new() }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + (value.ln() - self.from) / (self.to - self.from) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (value / self.top).clamp(0.0, 1.0) * (HEIGHT - BOTTOM - TOP)
    }

    fn path(&self, points: impl Iterator<Item = (f64, f64)>) -> String {
        points.map(|(x, y)| format!("{:.1},{:.1}", self.x(x), self.y(y))).collect::<Vec<_>>().join(" ")
    }

    fn add(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    /// A line through points.
    pub(super) fn line(&mut self, class: &str, points: &[(f64, f64)]) {
        let path = self.path(points.iter().copied());
        self.add(&format!("<polyline class=\"{class}\" points=\"{path}\"/>"));
    }

    /// The area between a lower and an upper line: (x, low, high).
    pub(super) fn band(&mut self, class: &str, points: &[(f64, f64, f64)]) {
        let upper = self.path(points.iter().map(|it| (it.0, it.2)));
        let lower = self.path(points.iter().rev().map(|it| (it.0, it.1)));
        self.add(&format!("<polygon class=\"{class}\" points=\"{upper} {lower}\"/>"));
    }

    /// Points with a text that shows when one is pointed at.
    pub(super) fn dots(&mut self, class: &str, points: &[(f64, f64, String)]) {
        for (x, y, text) in points {
            let (x, y, text) = (self.x(*x), self.y(*y), escape(text));
            self.add(&format!(
                "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{text}</title></circle>"
            ));
        }
    }

    /// A vertical line with a label; `place` keeps the labels of several apart.
    pub(super) fn mark(&mut self, class: &str, at: f64, place: usize, label: &str) {
        // Low down, where a curve that has risen isn't.
        let (x, y) = (self.x(at), HEIGHT - BOTTOM - 42.0 + 15.0 * real_len(place));
        let (anchor, beside) = if x > WIDTH * 0.7 { ("end", x - 5.0) } else { ("start", x + 5.0) };
        let label = escape(label);
        self.add(&format!(
            "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{:.1}\"/>\
             <text x=\"{beside:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{label}</text>",
            HEIGHT - BOTTOM
        ));
    }

    /// The whole plot with its axes: labels of the horizontal axis at these values, and how the vertical one shows a number.
    pub(super) fn finish(self, title: &str, xs: &[u32], name: &str, show: impl Fn(f64) -> String) -> String {
        let mut axes = String::new();
        for tick in 0..=TICKS {
            let value = self.top * real_len(tick) / real_len(TICKS);
            let y = self.y(value);
            // Writing to a string doesn't fail.
            let _ = write!(
                axes,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                y + 4.0,
                escape(&show(value))
            );
        }
        for value in spread(xs) {
            let x = self.x(f64::from(value));
            let _ = write!(
                axes,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value}</text>",
                HEIGHT - BOTTOM + 18.0
            );
        }
        let (title, name) = (escape(title), escape(name));
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">{axes}\n{}\
             <text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text></svg>",
            self.body,
            HEIGHT - 4.0
        )
    }
}

/// Of many values those that can stand beside each other: each at least a third more than the one before.
fn spread(values: &[u32]) -> Vec<u32> {
    let mut kept: Vec<u32> = Vec::new();
    for value in values {
        if kept.last().is_none_or(|last| u64::from(*value) * 3 >= u64::from(*last) * 4) {
            kept.push(*value);
        }
    }
    kept
}

/// Cells by row and column, darker the higher their share of the best: rows and columns have names.
pub(super) fn heat_map(
    name: &str,
    rows: &[u32],
    columns: &[u32],
    cell: impl Fn(u32, u32) -> Option<(f64, String)>,
) -> String {
    let mut table = format!("<table class=\"heat\"><tr><th>{}</th>", escape(name));
    for column in columns {
        let _ = write!(table, "<th>{column}</th>");
    }
    for row in rows {
        let _ = write!(table, "</tr><tr><th>{row}</th>");
        for column in columns {
            let _ = match cell(*row, *column) {
                Some((share, text)) => {
                    let tint = whole(share.clamp(0.0, 1.0) * 70.0);
                    write!(table, "<td style=\"--tint:{tint}%\">{}</td>", escape(&text))
                }
                None => write!(table, "<td class=\"none\">–</td>"),
            };
        }
    }
    table + "</tr></table>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_holds_what_was_drawn_within_its_frame() {
        let mut plot = Plot::new(1.0, 64.0, 100.0);
        plot.line("fit", &[(1.0, 0.0), (64.0, 100.0)]);
        plot.dots("dot", &[(8.0, 50.0, "8 < 9".into())]);
        plot.mark("knee", 8.0, 0, "knee");
        let svg = plot.finish("rows/s", &[1, 2, 4, 8, 16, 32, 64], "threads", |value| format!("{value:.0}"));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>") && svg.contains("8 &lt; 9") && svg.contains(">64<"));
        let numbers = svg.split("cx=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert!((LEFT..WIDTH).contains(&numbers.parse::<f64>().unwrap()));
    }

    #[test]
    fn labels_keep_their_distance() {
        assert_eq!(spread(&[1, 2, 4, 8, 9, 10, 12, 16]), [1, 2, 4, 8, 12, 16]);
    }

    #[test]
    fn a_heat_map_has_a_cell_for_every_pair() {
        let map =
            heat_map("pool / batch", &[1, 2], &[1, 8], |row, column| (row == 1).then(|| (0.5, column.to_string())));
        assert_eq!((map.matches("<td").count(), map.matches("class=\"none\"").count()), (4, 2));
    }
}
