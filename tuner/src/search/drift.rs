//! Whether the target changed while it was measured.

use std::collections::BTreeMap;

use super::Purpose;
use super::replay::Replay;
use crate::space::Point;
use crate::stats::real_len;

/// A change below this share is none, however certain.
const LEAST: f64 = 0.04;
/// Standard deviations within which a window is left as it is.
const FAR: f64 = 3.0;
/// Standard errors of a change that chance doesn't reach, though it is looked for at every window.
const CERTAIN: f64 = 3.5;

/// The relative change of the target at the window where it is most certain, if it is certain enough. Points that were measured
/// both before and after are compared with themselves: the sentinel, the finalists, and whatever else was measured again.
pub(crate) fn drift(run: &Replay<'_>) -> Option<f64> {
    let noise = run.noise();
    let mut windows: BTreeMap<Point, Vec<(usize, f64)>> = BTreeMap::new();
    for index in 0..run.position() {
        let Some(trial) = run.trial(index) else { continue };
        if trial.probe.purpose != Purpose::WarmUp && trial.rate > 0.0 && trial.errors == 0 {
            windows.entry(trial.probe.point).or_default().push((index, trial.rate.ln()));
        }
    }
    windows.retain(|_, windows| windows.len() > 1);
    for windows in windows.values_mut() {
        tame(windows, noise);
    }
    let changes = (1..run.position()).filter_map(|split| change(&windows, split, noise));
    let (change, error) = changes.max_by(|a, b| (a.0.abs() / a.1).total_cmp(&(b.0.abs() / b.1)))?;
    (change.abs() > LEAST && change.abs() > CERTAIN * error).then(|| change.exp_m1())
}

/// Draws single windows that lie far from the others of their point towards them: a standstill is no drift.
fn tame(windows: &mut [(usize, f64)], noise: f64) {
    let mut sorted: Vec<f64> = windows.iter().map(|it| it.1).collect();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    let most = (FAR * noise).max(3.0 * LEAST);
    for window in windows {
        window.1 = window.1.clamp(median - most, median + most);
    }
}

/// The change at one window, as a difference of logarithms, with its standard error: the mean over the points, each weighed by
/// how well it is known.
fn change(windows: &BTreeMap<Point, Vec<(usize, f64)>>, split: usize, noise: f64) -> Option<(f64, f64)> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for windows in windows.values() {
        let (before, after): (Vec<_>, Vec<_>) = windows.iter().partition(|(index, _)| *index < split);
        if before.is_empty() || after.is_empty() {
            continue;
        }
        let mean = |part: &[(usize, f64)]| part.iter().map(|it| it.1).sum::<f64>() / real_len(part.len());
        let weight = 1.0 / (1.0 / real_len(before.len()) + 1.0 / real_len(after.len()));
        sum += weight * (mean(&after) - mean(&before));
        weights += weight;
    }
    (weights > 0.0).then(|| (sum / weights, noise.max(1e-4) / weights.sqrt()))
}
