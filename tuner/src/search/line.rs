//! The search along one axis.

use super::curve::Curve;
use super::late::Latencies;
use super::replay::{Pause, Replay, Tally};
use super::{DELTA, Purpose};
use crate::space::{Axis, Point, Span};
use crate::stats::{between, real_len};

/// Doublings without a gain after which an ascent stops.
const FLAT: u32 = 3;
/// Doublings with a clear loss after which it stops.
const DROPS: u32 = 2;
/// Points that the curve may propose.
const PROPOSALS: u32 = 4;
/// Halvings of the distance to a value that fails, or where throughput breaks off.
const HALVINGS: u32 = 4;
/// What is left behind a cliff, at the most.
const CLIFF: f64 = 0.7;
/// A misfit of the model from which on the middle between measured values may hold more than it knows.
const MISFIT: f64 = 0.02;
/// Values closer than this share of themselves can't be told apart.
const NEAR: u32 = 12;
/// The same where latency is at its limit.
const CLOSE: u32 = 30;

/// Standard errors by which a value is better or worse for certain than what is enough.
const CERTAIN: f64 = 3.0;
/// Rounds of measuring again what chance may have decided, and the doubt that is left to it.
const SETTLING: usize = 5;
const DOUBT: f64 = 0.01;

/// The points that differ from one point on one axis alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    pub(crate) through: Point,
    pub(crate) axis: Axis,
    pub(crate) span: Span,
}

impl Line {
    pub(crate) fn at(&self, value: u32) -> Point {
        self.through.with(self.axis, value)
    }

    /// What was measured on this line, ascending.
    pub(crate) fn tallies<'r>(&self, run: &'r Replay<'_>) -> Vec<(u32, &'r Tally)> {
        let on_line = run.tallies().iter().filter(|(point, _)| point.with(self.axis, 1) == self.at(1));
        let mut on_line: Vec<_> = on_line.map(|(point, tally)| (point.on(self.axis), tally)).collect();
        on_line.sort_by_key(|it| it.0);
        on_line
    }

    /// Measures up and down from the point by doubling and halving, then where throughput breaks off, and where the curve of all
    /// that says that more may be found.
    pub(crate) fn explore(&self, run: &mut Replay<'_>) -> Result<(), Pause> {
        let here = self.through.on(self.axis);
        run.explore(self.through)?;
        let above: Vec<u32> = self.span.ladder().into_iter().filter(|rung| *rung > here).collect();
        let below: Vec<u32> = self.span.ladder().into_iter().rev().filter(|rung| *rung < here).collect();
        self.walk(run, &above, FLAT, DROPS)?;
        // On the way down the first clear loss is enough: what is sought there is only the cheap end of a plateau.
        self.walk(run, &below, u32::MAX, 1)?;
        self.approach(run)?;
        self.propose(run)
    }

    /// Measures one value after the other until there is nothing to gain that way, or a failure.
    fn walk(&self, run: &mut Replay<'_>, values: &[u32], patience: u32, enough: u32) -> Result<(), Pause> {
        let mut best = self.best(run).map_or(0.0, |it| it.1);
        let (mut flat, mut drops) = (0, 0);
        for value in values {
            let Some(rate) = run.explore(self.at(*value))? else { return Ok(()) };
            let doubt = 3.0 * run.noise();
            drops = if rate < best * (1.0 - doubt.max(2.0 * DELTA)) { drops + 1 } else { 0 };
            if rate > best * (1.0 + DELTA) {
                (best, flat) = (rate, 0);
            } else {
                flat += 1;
            }
            if drops == enough || flat >= patience {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Where throughput breaks off: the last value that works with a rate near the best, and the next one, which fails or gives
    /// much less. What lies behind it is another country.
    pub(crate) fn cliff(&self, run: &Replay<'_>) -> Option<(u32, u32)> {
        let (best, rate) = self.best(run)?;
        let tallies = self.tallies(run);
        let good = |tally: &Tally| tally.is_feasible() && tally.mean() >= rate * CLIFF;
        let bad = tallies.iter().find(|(value, tally)| *value > best && !good(tally))?.0;
        let last = tallies.iter().rev().find(|(value, tally)| *value < bad && good(tally))?.0;
        Some((last, bad))
    }

    /// Halves the distance between the two sides of a cliff.
    pub(crate) fn approach(&self, run: &mut Replay<'_>) -> Result<(), Pause> {
        for _ in 0..HALVINGS {
            let Some((good, bad)) = self.cliff(run) else { return Ok(()) };
            let middle = between(good, bad);
            if (bad - good) * NEAR <= good.max(NEAR)
                || !self.is_steep(run, good, bad)
                || middle == good
                || middle == bad
            {
                return Ok(());
            }
            run.explore(self.at(middle))?;
        }
        Ok(())
    }

    /// Whether a cliff matters: it fails, or breaks off at once, and does not just fall with every step.
    fn is_steep(&self, run: &Replay<'_>, good: u32, bad: u32) -> bool {
        let tally = |value: u32| run.tallies().get(&self.at(value));
        let (Some(good_tally), Some(bad_tally)) = (tally(good), tally(bad)) else { return false };
        !bad_tally.is_feasible() || bad_tally.mean() < good_tally.mean() * CLIFF && bad <= good * 2
    }

    /// Measures the cheapest value that gives enough, the next cheaper one and the best again, until chance no longer decides among
    /// them, or for some rounds.
    pub(crate) fn settle(&self, run: &mut Replay<'_>) -> Result<(), Pause> {
        for round in 1..=SETTLING {
            let Some(curve) = Curve::of(self, run) else { return Ok(()) };
            let values = unsettled(&curve, &self.working(run));
            let noise = run.noise();
            for value in values {
                let windows = run.tallies().get(&self.at(value)).map_or(0, |tally| tally.rates.len());
                if noise > DOUBT * real_len(windows.max(1)).sqrt() && windows <= round {
                    run.measure(self.at(value), Purpose::Explore)?;
                }
            }
        }
        Ok(())
    }

    /// Measures where the curve has its knee and its peak, but for what noise would hide.
    pub(crate) fn propose(&self, run: &mut Replay<'_>) -> Result<(), Pause> {
        for _ in 0..PROPOSALS {
            let Some(curve) = Curve::of(self, run) else { return Ok(()) };
            let peak = curve.peak().map(|it| it.0);
            let middles = if curve.misfit() > MISFIT { self.middles(run) } else { Vec::new() };
            self.approach_limit(run, u32::MAX)?;
            let proposals = [curve.knee(), peak].into_iter().flatten().chain(middles);
            let Some(value) = proposals.into_iter().find(|value| self.is_new(run, *value)) else { return Ok(()) };
            run.explore(self.at(value))?;
        }
        Ok(())
    }

    /// Measures the highest value, below another one, that likely meets the latency objectives.
    pub(crate) fn approach_limit(&self, run: &mut Replay<'_>, below: u32) -> Result<(), Pause> {
        if self.tallies(run).iter().all(|(_, tally)| tally.over.is_empty()) {
            return Ok(());
        }
        let Some(curve) = Curve::of(self, run) else { return Ok(()) };
        let limit = Latencies::of(self, run, &curve).and_then(|latencies| latencies.limit(below));
        let is_new = |limit: &u32| self.tallies(run).iter().all(|it| it.0.abs_diff(*limit) * CLOSE > *limit);
        match limit.filter(is_new) {
            Some(value) => run.explore(self.at(value)).map(|_| ()),
            None => Ok(()),
        }
    }

    /// The middles between the best value and its neighbours.
    fn middles(&self, run: &Replay<'_>) -> Vec<u32> {
        let Some((best, _)) = self.best(run) else { return Vec::new() };
        let known = self.tallies(run);
        let above = known.iter().map(|it| it.0).find(|value| *value > best);
        let below = known.iter().map(|it| it.0).rev().find(|value| *value < best);
        [above.map(|above| between(best, above)), below.map(|below| between(below, best))]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Whether nothing was measured at or near a value.
    fn is_new(&self, run: &Replay<'_>, value: u32) -> bool {
        let near = run.noise().max(1.0 / f64::from(NEAR));
        self.tallies(run).iter().all(|(known, _)| f64::from(known.abs_diff(value)) > near * f64::from(value))
    }

    /// The value with the highest mean on this line.
    pub(crate) fn best(&self, run: &Replay<'_>) -> Option<(u32, f64)> {
        let feasible = self.tallies(run).into_iter().filter(|it| it.1.is_feasible());
        feasible.map(|(value, tally)| (value, tally.mean())).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The measured values that work, up to where throughput breaks off.
    pub(crate) fn working(&self, run: &Replay<'_>) -> Vec<u32> {
        let end = self.cliff(run).map_or(u32::MAX, |(_, bad)| bad);
        self.tallies(run).into_iter().filter(|it| it.1.is_feasible() && it.0 < end).map(|it| it.0).collect()
    }
}

/// Of the values of a curve that work those between which chance may have decided: the cheapest one that gives enough, and the next
/// cheaper one, each with the best one that it is compared with.
fn unsettled(curve: &Curve, working: &[u32]) -> Vec<u32> {
    let rates = working.iter().map(|value| (*value, curve.rate(*value)));
    let Some((peak, rate)) = rates.max_by(|a, b| a.1.total_cmp(&b.1)) else { return Vec::new() };
    let limit = rate * (1.0 - DELTA);
    let enough = working.iter().position(|value| curve.rate(*value) >= limit).unwrap_or_default();
    let around = working.iter().skip(enough.saturating_sub(1)).take(2).copied();
    let in_doubt = |value: &u32| {
        let doubt = rate * curve.doubt(*value).hypot(curve.doubt(peak));
        *value != peak && (curve.rate(*value) - limit).abs() < CERTAIN * doubt
    };
    let mut values: Vec<u32> = around.filter(in_doubt).collect();
    if !values.is_empty() {
        values.push(peak);
    }
    values
}
