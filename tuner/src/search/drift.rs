//! Whether the target changed while it was measured.

use super::curve::Curve;
use super::line::Line;
use super::replay::{Replay, Tally};
use super::step::{Group, Step, most_certain};
use crate::space::Point;
use crate::stats::real_len;

/// A change below this share is none, however certain.
const LEAST: f64 = 0.04;
/// Standard deviations within which a window is left as it is.
const FAR: f64 = 3.0;
/// Standard errors of a change beyond what the largest of so many looks shows by chance: where all lies on a curve, for each point
/// that doesn't, and at the most.
const CERTAIN: f64 = 0.1;
const ALONE: f64 = 0.12;
const MOST_CERTAIN: f64 = 0.8;
/// A misfit below which the model is believed.
const FITS: f64 = 0.025;
/// Standard errors around those that are certain within which more windows are worth their time.
const DOUBTFUL: f64 = 1.5;

/// A step in what the target gives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    /// The window from which on it is there.
    split: usize,
    /// As a difference of logarithms.
    step: f64,
    /// The step in standard errors.
    errors: f64,
    /// How many of them are more than chance.
    certain: f64,
}

impl Change {
    /// The relative change, if it is large enough and more than chance.
    pub(crate) fn found(&self) -> Option<f64> {
        (self.step.abs() > LEAST && self.errors > self.certain).then(|| self.step.exp_m1())
    }

    /// Whether a few windows more may show that there is one, or that there is none.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.step.abs() > LEAST / 2.0 && (self.errors - self.certain).abs() < DOUBTFUL
    }
}

/// The change of the target at the window where it is most certain. Points that were measured both before and after are compared
/// with themselves, and those on the curve with each other too, where curve and change together explain what was measured.
pub(crate) fn drift(run: &Replay<'_>, line: &Line) -> Option<Change> {
    let noise = run.noise().max(1e-4);
    let mut groups = groups(run, line);
    for group in &mut groups {
        tame(&mut group.windows, noise);
    }
    let step = most_certain(&groups, run.position(), noise)?;
    let step = if step.misfit < FITS {
        step
    } else {
        // Where the curve doesn't fit, neighbours are off alike, and those that were measured early look like a time of their own.
        for group in &mut groups {
            group.slopes = None;
        }
        most_certain(&groups, run.position(), noise)?
    };
    // The largest of n normal numbers is about the square root of 2 ln n.
    let certain = (2.0 * real_len(run.position()).ln()).sqrt() + margin(&groups);
    let Step { split, size, error, .. } = step;
    Some(Change { split, step: size, errors: size.abs() / error, certain })
}

/// The point that tells most of a change when it is measured once more: one that was measured before, and seldom after.
pub(crate) fn telling(run: &Replay<'_>, change: &Change) -> Option<Point> {
    let worth = |tally: &Tally| {
        let before = real_len(tally.trials.iter().filter(|index| **index < change.split).count());
        let after = real_len(tally.trials.len()) - before;
        let known = |after: f64| before * after / (before + after).max(1.0);
        known(after + 1.0) - known(after)
    };
    let good = run.tallies().iter().filter(|(_, tally)| tally.errors == 0 && tally.mean() > 0.0);
    let worth = good.map(|(point, tally)| (*point, worth(tally))).filter(|it| it.1 > 0.0);
    worth.max_by(|a, b| a.1.total_cmp(&b.1)).map(|it| it.0)
}

/// Standard errors beyond what the largest of so many looks shows by chance: more where points are known by themselves alone, for
/// each of them is a chance of its own.
fn margin(groups: &[Group]) -> f64 {
    let alone = groups.iter().filter(|group| group.slopes.is_none() && group.windows.len() > 1).count();
    (CERTAIN + ALONE * real_len(alone)).min(MOST_CERTAIN)
}

fn groups(run: &Replay<'_>, line: &Line) -> Vec<Group> {
    let curve = Curve::of(line, run);
    let windows = |tally: &Tally| -> Vec<(usize, f64)> {
        let rate = |index: &usize| run.trial(*index).map_or(0.0, |trial| trial.rate);
        let counted = tally.trials.iter().map(|index| (*index, rate(index))).filter(|it| it.1 > 0.0);
        counted.map(|(index, rate)| (index, rate.ln())).collect()
    };
    let group = |(point, tally): (&Point, &Tally)| {
        let mut windows = windows(tally);
        let expected = curve.as_ref().and_then(|curve| curve.expected(line, *point));
        let (level, slopes) = expected.map_or((0.0, None), |(level, slopes)| (level, Some(slopes)));
        for window in &mut windows {
            window.1 -= level;
        }
        Group { windows, slopes }
    };
    let works = run.tallies().iter().filter(|(_, tally)| tally.errors == 0);
    works.map(group).filter(|group| !group.windows.is_empty()).collect()
}

/// Draws single windows that lie far from the others of their point towards them: a standstill is no drift.
fn tame(windows: &mut [(usize, f64)], noise: f64) {
    // Of two nobody knows which one is the odd one.
    if windows.len() < 3 {
        return;
    }
    let mut sorted: Vec<f64> = windows.iter().map(|it| it.1).collect();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    let most = (FAR * noise).max(3.0 * LEAST);
    for window in windows {
        window.1 = window.1.clamp(median - most, median + most);
    }
}
