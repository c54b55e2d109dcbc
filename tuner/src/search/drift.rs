//! Whether the target changed while it was measured.

use std::collections::BTreeMap;

use super::Purpose;
use super::curve::Curve;
use super::line::Line;
use super::replay::Replay;
use crate::space::Point;
use crate::stats::real_len;

/// A change below this share is none, however certain.
const LEAST: f64 = 0.04;
/// Standard deviations within which a window is left as it is.
const FAR: f64 = 3.0;
/// Standard errors of a change beyond what the largest of so many looks shows by chance: where all lies on a curve, for each point
/// that doesn't, and at the most.
const CERTAIN: f64 = 0.1;
const ALONE: f64 = 0.15;
const MOST_CERTAIN: f64 = 0.8;
/// A sum of weights below which nothing was measured.
const NOTHING: f64 = 1e-9;
/// A misfit below which the model is believed.
const FITS: f64 = 0.025;
/// How far the curve may be off at a point, at the least.
const OFF: f64 = 0.01;

/// The windows of one point: each with its number, and the logarithm of its rate, less what the curve says if it says anything.
struct Group {
    windows: Vec<(usize, f64)>,
    /// How far that may be off for all of them together; infinite where nothing is known but the windows themselves.
    off: f64,
}

/// The relative change of the target at the window where it is most certain, if it is certain enough. Points that were measured
/// both before and after are compared with themselves, and those on the curve with each other too.
pub(crate) fn drift(run: &Replay<'_>, line: &Line) -> Option<f64> {
    let noise = run.noise().max(1e-4);
    let mut groups = groups(run, line);
    for group in &mut groups {
        tame(&mut group.windows, noise);
    }
    let changes = (1..run.position()).filter_map(|split| change(&groups, split, noise));
    let (change, error) = changes.max_by(|a, b| (a.0.abs() / a.1).total_cmp(&(b.0.abs() / b.1)))?;
    // The largest of n normal numbers is about the square root of 2 ln n.
    let certain = (2.0 * real_len(run.position()).ln()).sqrt() + margin(&groups);
    (change.abs() > LEAST && change.abs() > certain * error).then(|| change.exp_m1())
}

/// Standard errors beyond what the largest of so many looks shows by chance: more where points are known by themselves alone, for
/// each of them is a chance of its own.
fn margin(groups: &[Group]) -> f64 {
    let alone = groups.iter().filter(|group| group.off.is_infinite() && group.windows.len() > 1).count();
    (CERTAIN + ALONE * real_len(alone)).min(MOST_CERTAIN)
}

fn groups(run: &Replay<'_>, line: &Line) -> Vec<Group> {
    // Where the model doesn't fit, neighbours are off alike, and those that were measured early look like a time of their own.
    let curve = Curve::of(line, run).filter(|curve| curve.misfit() < FITS);
    let mut windows: BTreeMap<Point, Vec<(usize, f64)>> = BTreeMap::new();
    for index in 0..run.position() {
        let Some(trial) = run.trial(index) else { continue };
        if trial.probe.purpose != Purpose::WarmUp && trial.rate > 0.0 && trial.errors == 0 {
            windows.entry(trial.probe.point).or_default().push((index, trial.rate.ln()));
        }
    }
    let group = |(point, mut windows): (Point, Vec<(usize, f64)>)| {
        let expected = curve.as_ref().and_then(|curve| curve.expected(line, point));
        for window in &mut windows {
            window.1 -= expected.unwrap_or_default();
        }
        let off = curve
            .as_ref()
            .filter(|_| expected.is_some())
            .map_or(f64::INFINITY, |curve| (2.0 * curve.misfit()).max(OFF));
        Group { windows, off }
    };
    windows.into_iter().map(group).collect()
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

/// The change at one window, as a difference of logarithms, with its standard error: least squares with a level and a step,
/// where the windows of a point share how far the curve is off there.
fn change(groups: &[Group], split: usize, noise: f64) -> Option<(f64, f64)> {
    // The normal equations of both unknowns, by generalised least squares.
    let (mut level, mut both, mut step, mut of_level, mut of_step) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for Group { windows, off } in groups {
        let after: Vec<f64> = windows.iter().filter(|it| it.0 >= split).map(|it| it.1).collect();
        let (n, m) = (real_len(windows.len()), real_len(after.len()));
        let (sum, sum_after) = (windows.iter().map(|it| it.1).sum::<f64>(), after.iter().sum::<f64>());
        let shared = if off.is_finite() { off * off / (noise * noise + n * off * off) } else { 1.0 / n };
        level += n - shared * n * n;
        both += m - shared * n * m;
        step += m - shared * m * m;
        of_level += sum - shared * n * sum;
        of_step += sum_after - shared * m * sum;
    }
    // Without a curve there is no common level, only the step within each point.
    if level < NOTHING {
        return (step > NOTHING).then(|| (of_step / step, noise / step.sqrt()));
    }
    let determinant = level * step - both * both;
    (determinant > NOTHING)
        .then(|| ((level * of_step - both * of_level) / determinant, noise * (level / determinant).sqrt()))
}
