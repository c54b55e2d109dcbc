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
/// Ticks of the vertical axis above zero, at the most, and the steps between them, times a power of ten.
const TICKS: f64 = 5.0;
const STEPS: [f64; 4] = [1.0, 2.0, 5.0, 10.0];
/// The room that a label of the horizontal axis needs, for each of its digits and beside them.
const DIGIT: f64 = 8.0;
const GAP: f64 = 8.0;

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

    /// Crosses with a text that shows when one is pointed at.
    pub(super) fn crosses(&mut self, class: &str, points: &[(f64, f64, String)]) {
        for (x, y, text) in points {
            let (x, y, text) = (self.x(*x), self.y(*y), escape(text));
            self.add(&format!(
                "<path class=\"{class}\" d=\"M{:.1} {:.1}l8 8m0 -8l-8 8\"><title>{text}</title></path>",
                x - 4.0,
                y - 4.0
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
        for value in ticks(self.top) {
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
        for (x, value) in spread(xs.iter().map(|value| (self.x(f64::from(*value)), *value))) {
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

/// Round values from 0 to the top.
fn ticks(top: f64) -> Vec<f64> {
    let power = 10.0_f64.powf((top / TICKS).log10().floor());
    let step = STEPS.into_iter().map(|step| step * power).find(|step| top / step <= TICKS).unwrap_or(top);
    std::iter::successors(Some(0.0), |value| Some(value + step)).take_while(|value| *value <= top).collect()
}

/// Of many labels at their places those that can stand beside each other.
fn spread(labels: impl Iterator<Item = (f64, u32)>) -> Vec<(f64, u32)> {
    let half = |value: u32| DIGIT * real_len(value.to_string().len()) / 2.0;
    let mut kept: Vec<(f64, u32)> = Vec::new();
    for (x, value) in labels {
        if kept.last().is_none_or(|(last, other)| x - last >= half(*other) + half(value) + GAP) {
            kept.push((x, value));
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
        let labels = [(0.0, 1), (20.0, 2), (30.0, 3), (60.0, 1024), (90.0, 1400), (100.0, 2048)];
        let kept: Vec<u32> = spread(labels.into_iter()).into_iter().map(|it| it.1).collect();
        assert_eq!(kept, [1, 2, 1024, 2048]);
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(919.0), [0.0, 200.0, 400.0, 600.0, 800.0]);
        assert_eq!(ticks(2.5), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
        assert_eq!(ticks(5.1), [0.0, 2.0, 4.0]);
    }

    #[test]
    fn a_heat_map_has_a_cell_for_every_pair() {
        let map =
            heat_map("pool / batch", &[1, 2], &[1, 8], |row, column| (row == 1).then(|| (0.5, column.to_string())));
        assert_eq!((map.matches("<td").count(), map.matches("class=\"none\"").count()), (4, 2));
    }
}
