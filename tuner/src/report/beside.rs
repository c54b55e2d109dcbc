//! The chosen point beside another one, measured in turns: what both share, a busy machine for instance, cancels out.

use serde::{Deserialize, Serialize};

use super::table::rate;
use super::{Figures, Window};
use crate::space::Point;
use crate::stats::{Comparison, paired};

/// Both, and what the chosen one gives more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Beside {
    /// The other point.
    pub(crate) other: Figures,
    /// The chosen one, at the same time.
    pub(crate) chosen: Figures,
    /// The chosen one's rows per second over the other's; `None` where one gives nothing.
    pub(crate) compared: Option<Comparison>,
}

impl Beside {
    /// From the windows of two points in turns; `None` without any of either.
    pub(crate) fn of(chosen: Point, other: Point, windows: &[Window]) -> Option<Self> {
        let at = |point| windows.iter().filter(move |window| window.trial.probe.point == point);
        let figures = |point| Figures::of(point, &at(point).collect::<Vec<_>>(), None);
        let rates = |point| at(point).map(|window| window.trial.rate).collect::<Vec<_>>();
        let (first, mut second) = (rates(other), rates(chosen));
        second.truncate(first.len());
        let compared = paired(first.get(..second.len())?, &second);
        Some(Self { other: figures(other)?, chosen: figures(chosen)?, compared })
    }

    /// In a sentence.
    pub(crate) fn text(&self) -> String {
        let of = |figures: &Figures| match figures.errors {
            0 => format!("{} rows/s", rate(figures.rows_per_s)),
            errors => format!("{} rows/s with {errors} errors", rate(figures.rows_per_s)),
        };
        let gain = self.compared.map_or_else(String::new, |compared| {
            let percent = |ratio: f64| (ratio - 1.0) * 100.0;
            let [lo, hi] = compared.ci95.map(percent);
            let chance = if compared.is_different() { "more than chance" } else { "not more than chance" };
            format!(": {:+.1} % ({lo:+.1} to {hi:+.1} %), {chance}", percent(compared.ratio))
        });
        format!("{}: {}; the chosen point beside it {}{gain}", self.other.point, of(&self.other), of(&self.chosen))
    }
}
