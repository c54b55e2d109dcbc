//! The search along one axis.

use super::DELTA;
use super::replay::{Pause, Replay};
use crate::space::{Axis, Point, Span};
use crate::stats::between;

/// Doublings without a gain after which an ascent stops.
const FLAT: u32 = 3;
/// Doublings with a clear loss after which it stops.
const DROPS: u32 = 2;
/// Midpoints that are tried around the best one.
const MIDPOINTS: u32 = 3;

/// The points that differ from one point on one axis alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    pub(crate) through: Point,
    pub(crate) axis: Axis,
    pub(crate) span: Span,
}

impl Line {
    fn at(&self, value: u32) -> Point {
        self.through.with(self.axis, value)
    }

    /// Measures up and down from the point by doubling and halving, then around the best.
    pub(crate) fn explore(&self, run: &mut Replay<'_>) -> Result<(), Pause> {
        let here = self.through.on(self.axis);
        run.explore(self.through)?;
        let above: Vec<u32> = self.span.ladder().into_iter().filter(|rung| *rung > here).collect();
        let below: Vec<u32> = self.span.ladder().into_iter().rev().filter(|rung| *rung < here).collect();
        self.walk(run, &above, FLAT)?;
        self.walk(run, &below, u32::MAX)?;
        self.refine(run)
    }

    /// Measures one value after the other until there is nothing to gain that way, or a failure.
    fn walk(&self, run: &mut Replay<'_>, values: &[u32], patience: u32) -> Result<(), Pause> {
        // On the way down the first clear loss is enough: what is sought there is only the cheap end of a plateau.
        let enough = if patience == u32::MAX { 1 } else { DROPS };
        let mut mark = self.best(run);
        let (mut flat, mut drops) = (0, 0);
        for value in values {
            let Some(rate) = run.explore(self.at(*value))? else { return Ok(()) };
            let (best, best_rate) = mark.unwrap_or((*value, 0.0));
            let doubt = self.doubt(run, best).hypot(self.doubt(run, *value));
            let lost = rate < best_rate * (1.0 - 2.0 * DELTA) && best_rate - rate > doubt;
            drops = if lost { drops + 1 } else { 0 };
            if rate > best_rate * (1.0 + DELTA) {
                (mark, flat) = (Some((*value, rate)), 0);
            } else {
                flat += 1;
            }
            if drops == enough || flat >= patience {
                return Ok(());
            }
        }
        Ok(())
    }

    fn doubt(&self, run: &Replay<'_>, value: u32) -> f64 {
        run.tallies().get(&self.at(value)).map_or(0.0, super::replay::Tally::doubt)
    }

    fn refine(&self, run: &mut Replay<'_>) -> Result<(), Pause> {
        for _ in 0..MIDPOINTS {
            let Some((best, _)) = self.best(run) else { return Ok(()) };
            let known = self.known(run);
            let above = known.iter().map(|known| known.0).find(|value| *value > best);
            let below = known.iter().map(|known| known.0).rev().find(|value| *value < best);
            let middles = [above.map(|above| between(best, above)), below.map(|below| between(below, best))];
            let fresh = |value: &u32| !run.tallies().contains_key(&self.at(*value));
            let Some(middle) = middles.into_iter().flatten().find(fresh) else { return Ok(()) };
            run.explore(self.at(middle))?;
        }
        Ok(())
    }

    /// The values that were measured on this line, ascending; `None` for those that failed.
    fn known(&self, run: &Replay<'_>) -> Vec<(u32, Option<f64>)> {
        let on_line = run.tallies().iter().filter(|(point, _)| point.with(self.axis, 1) == self.at(1));
        let mut known: Vec<_> =
            on_line.map(|(point, tally)| (point.on(self.axis), tally.is_feasible().then(|| tally.mean()))).collect();
        known.sort_by_key(|known| known.0);
        known
    }

    /// The value with the highest rate on this line.
    pub(crate) fn best(&self, run: &Replay<'_>) -> Option<(u32, f64)> {
        let feasible = self.known(run).into_iter().filter_map(|(value, rate)| Some((value, rate?)));
        feasible.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The lowest value that gives at least this rate.
    pub(crate) fn lowest(&self, run: &Replay<'_>, enough: f64) -> Option<u32> {
        self.known(run).into_iter().find(|(_, rate)| rate.is_some_and(|rate| rate >= enough)).map(|known| known.0)
    }

    /// The highest value that gives at least this rate.
    pub(crate) fn highest(&self, run: &Replay<'_>, enough: f64) -> Option<u32> {
        let mut falling = self.known(run).into_iter().rev();
        falling.find(|(_, rate)| rate.is_some_and(|rate| rate >= enough)).map(|known| known.0)
    }

    /// Narrows where the rate falls below `enough`, and returns the lowest value that gives it.
    pub(crate) fn cheapen(&self, run: &mut Replay<'_>, enough: f64) -> Result<u32, Pause> {
        let mut good = self.lowest(run, enough).unwrap_or_else(|| self.through.on(self.axis));
        loop {
            let below = self.known(run).into_iter().map(|known| known.0).rev().find(|value| *value < good);
            let bad = match below {
                Some(value) => value,
                None if good > self.span.lo() => (good / 2).max(self.span.lo()),
                None => return Ok(good),
            };
            let middle = if below.is_some() { between(bad, good) } else { bad };
            // A step of an eighth changes the rate by less than can be told apart.
            let narrow = below.is_some() && (good - bad) * 8 <= good;
            if narrow || run.tallies().contains_key(&self.at(middle)) {
                return Ok(good);
            }
            if run.explore(self.at(middle))?.is_some_and(|rate| rate >= enough) {
                good = middle;
            }
        }
    }
}
