//! What is known of one line, made smooth: a model explains as much of it as it can, and what it can't stays as measured.

use std::cell::RefCell;
use std::collections::HashMap;

use super::DELTA;
use super::line::Line;
use super::replay::{Replay, Tally};
use crate::space::Point;
use crate::stats::{Usl, real_len, whole};

/// Steps between two values of a line at which the curve is looked at, as a ratio.
const STEP: f64 = 1.04;
/// The share of the best from which on a point tells whether the model fits where it matters.
const MATTERS: f64 = 0.5;

/// Fits that were made before: every replay asks for the same ones again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fits(RefCell<HashMap<Vec<u64>, Option<Usl>>>);

impl Fits {
    fn fit(&self, windows: Vec<(f64, f64)>) -> Option<Usl> {
        let key = windows.iter().flat_map(|(value, rate)| [value.to_bits(), rate.to_bits()]).collect();
        *self.0.borrow_mut().entry(key).or_insert_with(|| Usl::fit(&windows))
    }
}

/// A value of the line with its rate.
#[derive(Debug, Clone, Copy)]
struct Known {
    value: f64,
    /// The estimate: between model and mean.
    rate: f64,
    /// The estimate over the model.
    ratio: f64,
    /// The relative standard error of the estimate.
    doubt: f64,
}

/// A value of the line as it was measured.
struct Mean {
    value: f64,
    rate: f64,
    /// Its relative standard error.
    error: f64,
}

impl Mean {
    fn of(value: f64, tally: &Tally, noise: f64) -> Self {
        Self { value, rate: tally.mean(), error: noise / real_len(tally.rates.len()).sqrt() }
    }

    /// The estimate between mean and model.
    fn drawn_to(&self, model: Option<&Usl>, misfit: f64, error_of_model: f64) -> Known {
        let expected = model.map_or(self.rate, |model| model.at(self.value));
        // The share of the mean in the estimate.
        let trust = misfit.powi(2) / (misfit.powi(2) + self.error.powi(2)).max(f64::MIN_POSITIVE);
        let trust = if misfit.is_finite() { trust } else { 1.0 };
        let rate = trust * self.rate + (1.0 - trust) * expected;
        let doubt = (trust * self.error).hypot((1.0 - trust) * error_of_model);
        Known { value: self.value, rate, ratio: rate / expected, doubt }
    }
}

/// A line's rates, between its lowest and its highest value that work.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    /// Ascending.
    known: Vec<Known>,
    model: Option<Usl>,
    /// How much the model is wrong where it matters, beyond noise; as a share.
    misfit: f64,
}

impl Curve {
    /// The curve of a line; `None` where nothing works. Each mean is drawn towards a fitted Universal Scalability Law, the more
    /// the less it is known by itself and the better the law fits the others (an empirical Bayes estimate): a law that doesn't
    /// fit changes nothing.
    pub(crate) fn of(line: &Line, run: &Replay<'_>) -> Option<Self> {
        let noise = run.noise();
        let cliff = line.cliff(run).map_or(u32::MAX, |(_, bad)| bad);
        let before_cliff = line.tallies(run).into_iter().filter(|(value, tally)| *value < cliff && tally.is_feasible());
        let tallies: Vec<(f64, &Tally)> = before_cliff.map(|(value, tally)| (f64::from(value), tally)).collect();
        // Each window is a point of its own: means of more windows count for more.
        let windows = tallies.iter().flat_map(|(value, tally)| tally.rates.iter().map(|rate| (*value, *rate)));
        let windows: Vec<(f64, f64)> = windows.collect();
        let of_model = noise * (3.0 / real_len(windows.len().max(3))).sqrt();
        let model = run.fits().fit(windows);
        let means: Vec<Mean> = tallies.iter().map(|(value, tally)| Mean::of(*value, tally, noise)).collect();
        let misfit = model.as_ref().map_or(f64::INFINITY, |model| misfit(model, &means));
        let known = means.iter().map(|mean| mean.drawn_to(model.as_ref(), misfit, of_model));
        let curve = Self { known: known.collect(), model, misfit };
        (!curve.known.is_empty()).then_some(curve)
    }

    /// The estimate at a value, between those that are known.
    fn at(&self, value: f64) -> f64 {
        let after = self.known.iter().position(|known| known.value >= value).unwrap_or(self.known.len());
        let right = self.known.get(after).or(self.known.last());
        let left = after.checked_sub(1).and_then(|before| self.known.get(before)).or(right);
        let (Some(left), Some(right)) = (left, right) else { return 0.0 };
        let span = (right.value / left.value).ln();
        let share = if span > 0.0 { ((value / left.value).ln() / span).clamp(0.0, 1.0) } else { 0.0 };
        match &self.model {
            Some(model) => model.at(value) * (left.ratio + share * (right.ratio - left.ratio)),
            None => (left.rate.ln() + share * (right.rate.ln() - left.rate.ln())).exp(),
        }
    }

    /// Values of the line at steps of a few percent, and those that are known.
    pub(crate) fn values(&self) -> Vec<u32> {
        let number = |value: f64| u32::try_from(whole(value)).unwrap_or(u32::MAX);
        let (Some(first), Some(last)) = (self.known.first(), self.known.last()) else { return Vec::new() };
        let steps = std::iter::successors(Some(first.value), |value| Some((value * STEP).max(value + 1.0)));
        let steps = steps.take_while(|value| *value < last.value).map(number);
        let mut values: Vec<u32> = steps.chain(self.known.iter().map(|known| number(known.value))).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// The value with the highest estimate.
    pub(crate) fn peak(&self) -> Option<(u32, f64)> {
        let estimates = self.values().into_iter().map(|value| (value, self.at(f64::from(value))));
        estimates.reduce(|best, it| if it.1 > best.1 { it } else { best })
    }

    /// The lowest value within [`DELTA`] of the peak, in doubt a higher one.
    pub(crate) fn knee(&self) -> Option<u32> {
        let (peak, rate) = self.peak()?;
        let enough = rate * (1.0 - DELTA + self.doubt(peak).min(DELTA));
        self.values().into_iter().find(|value| self.at(f64::from(*value)) >= enough)
    }

    /// The relative standard error of the estimate at the nearest known value.
    pub(crate) fn doubt(&self, value: u32) -> f64 {
        let distance = |known: &&Known| (known.value / f64::from(value)).ln().abs();
        self.known.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).map_or(0.0, |known| known.doubt)
    }

    /// How much the model is wrong where it matters; infinite without one.
    pub(crate) fn misfit(&self) -> f64 {
        self.misfit
    }

    /// The logarithm of what the model expects of a point of the line, where it matters, with what its coefficients change there.
    pub(crate) fn expected(&self, line: &Line, point: Point) -> Option<(f64, [f64; 2])> {
        let value = point.on(line.axis);
        let here = line.at(value) == point;
        let best = self.known.iter().map(|known| known.rate).fold(0.0, f64::max);
        let known = self
            .known
            .iter()
            .find(|known| here && (known.value - f64::from(value)).abs() < 0.5 && known.rate >= best * MATTERS)?;
        let model = self.model?;
        Some((model.at(known.value).ln(), model.slopes(known.value)))
    }

    /// The estimate at a value.
    pub(crate) fn rate(&self, value: u32) -> f64 {
        self.at(f64::from(value))
    }
}

/// How far the model is off where it matters, beyond what noise explains.
fn misfit(model: &Usl, means: &[Mean]) -> f64 {
    let best = means.iter().map(|mean| mean.rate).fold(0.0, f64::max);
    let matters: Vec<&Mean> = means.iter().filter(|mean| mean.rate >= best * MATTERS).collect();
    let count = real_len(matters.len());
    // Three parameters take up a part of the differences.
    let freedom = count * (1.0 - 3.0 / real_len(means.len())).max(0.1);
    let squares: f64 = matters.iter().map(|mean| (mean.rate / model.at(mean.value) - 1.0).powi(2)).sum();
    let noise: f64 = matters.iter().map(|mean| mean.error.powi(2)).sum::<f64>() / count;
    (squares / freedom - noise).max(0.0).sqrt()
}
