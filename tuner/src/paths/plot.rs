//! Bars: in the terminal, and as SVG.

use std::fmt::Write as _;

use super::PathFigures;
use crate::report::rate;
use crate::stats::whole;

/// Characters of the longest bar.
const COLUMNS: f64 = 40.0;

/// A bar for each path, as long as its rows per second.
pub(crate) fn bars(figures: &[PathFigures]) -> Vec<String> {
    let top = top(figures);
    let bar = |it: &PathFigures| {
        let length = usize::try_from(whole(it.rows_per_s / top * COLUMNS)).unwrap_or_default();
        format!("{:>9}  {}", it.path.name(), "█".repeat(length.max(1)))
    };
    figures.iter().map(bar).collect()
}

/// The same as a picture, with confidence intervals.
pub(crate) fn svg(figures: &[PathFigures], title: &str) -> String {
    let width = |value: f64| 480.0 * (value / top(figures)).clamp(0.0, 1.0);
    let mut body = String::new();
    for (place, it) in (0_u32..).zip(figures) {
        let y = 40 + 44 * place;
        let (low, high) = (110.0 + width(it.interval[0]), 110.0 + width(it.interval[1]));
        let label =
            format!("{} rows/s, {:.1} × put, {:.1} µs/row", rate(it.rows_per_s), it.times_put, it.cpu_us_per_row);
        // Writing to a string can't fail.
        let _ = write!(
            body,
            "<text x=\"100\" y=\"{}\" text-anchor=\"end\">{}</text>\
             <rect x=\"110\" y=\"{y}\" width=\"{:.1}\" height=\"18\" fill=\"#4477aa\"/>\
             <line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{mid}\" y2=\"{mid}\" stroke=\"#222\" stroke-width=\"2\"/>\
             <text x=\"110\" y=\"{}\" font-size=\"11\">{label}</text>",
            y + 14,
            it.path.name(),
            width(it.rows_per_s),
            y + 32,
            mid = y + 9,
        );
    }
    let height = 60 + 44 * figures.len();
    let title = title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"620\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"13\"><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\
         <text x=\"10\" y=\"22\" font-weight=\"bold\">{title}</text>{body}</svg>\n"
    )
}

/// The highest end of an interval, so that all fit.
fn top(figures: &[PathFigures]) -> f64 {
    figures.iter().map(|it| it.interval[1].max(it.rows_per_s)).fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::super::WritePath;
    use super::*;

    fn figures() -> [PathFigures; 2] {
        [(WritePath::Put, 100.0), (WritePath::Streamer, 400.0)].map(|(path, rows_per_s)| PathFigures {
            path,
            rows_per_s,
            interval: [rows_per_s * 0.9, rows_per_s],
            times_put: rows_per_s / 100.0,
            cpu_us_per_row: 1.0,
            failed: 0,
            example: None,
        })
    }

    #[test]
    fn bars_are_as_long_as_rates() {
        let length = |bar: &String| bar.chars().filter(|sign| *sign == '█').count();
        assert_eq!(bars(&figures()).iter().map(length).collect::<Vec<_>>(), [10, 40]);
    }

    #[test]
    fn the_picture_has_every_path_and_no_markup_of_others() {
        let picture = svg(&figures(), "a <b> & c");
        assert!(picture.contains("streamer") && picture.contains("a &lt;b&gt; &amp; c"), "{picture}");
        assert!(picture.contains("width=\"480.0\"") && picture.contains("width=\"120.0\""), "{picture}");
    }
}
