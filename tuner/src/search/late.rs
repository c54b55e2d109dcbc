//! Where on a line the latency objectives are met.

use super::curve::Curve;
use super::line::Line;
use super::replay::{Replay, Tally};
use crate::stats::real_len;

/// Standard errors that a point must stay away from the limits, so that a fresh run meets them too.
const MARGIN: f64 = 1.4;
/// Windows of that run.
const FRESH: usize = 5;

/// The latencies of a line over their limits, by its curve: what a window was faster than that by chance, its latency is too short
/// by (Little's law), so both are known about as well.
#[derive(Debug)]
pub(crate) struct Latencies<'c> {
    curve: &'c Curve,
    noise: f64,
    /// By value, ascending: the logarithm of latency over limit, less what value and rate explain.
    known: Vec<(f64, f64)>,
}

impl<'c> Latencies<'c> {
    /// `None` without objectives.
    pub(crate) fn of(line: &Line, run: &Replay<'_>, curve: &'c Curve) -> Option<Self> {
        let rest = |(value, tally): (u32, &Tally)| {
            let value = f64::from(value);
            Some((value, tally.over()? + tally.mean().ln() - value.ln()))
        };
        let works = line.tallies(run).into_iter().filter(|it| it.1.mean() > 0.0 && it.1.errors == 0);
        let known: Vec<(f64, f64)> = works.filter_map(rest).collect();
        (!known.is_empty()).then(|| Self { curve, noise: run.noise(), known })
    }

    /// Whether a fresh run at a value will likely meet the objectives.
    pub(crate) fn are_met(&self, value: u32) -> bool {
        let doubt = (self.noise / real_len(FRESH).sqrt()).hypot(self.curve.doubt(value));
        self.at(value) <= -MARGIN * doubt
    }

    /// The highest value of the curve, below another one, that will likely meet them.
    pub(crate) fn limit(&self, below: u32) -> Option<u32> {
        self.curve.values().into_iter().rev().find(|value| *value < below && self.are_met(*value))
    }

    /// The logarithm of latency over limit at a value, between those that are known.
    pub(crate) fn at(&self, value: u32) -> f64 {
        let at = f64::from(value);
        let after = self.known.iter().position(|known| known.0 >= at);
        let right = after.and_then(|after| self.known.get(after)).or(self.known.last()).copied().unwrap_or_default();
        let left = after.and_then(|after| self.known.get(after.checked_sub(1)?)).copied().unwrap_or(right);
        let span = (right.0 / left.0).ln();
        let share = if span > 0.0 { ((at / left.0).ln() / span).clamp(0.0, 1.0) } else { 0.0 };
        left.1 + share * (right.1 - left.1) + at.ln() - self.curve.rate(value).ln()
    }
}
