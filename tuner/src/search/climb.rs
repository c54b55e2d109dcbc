//! The search of a sweep: a geometric ascent of one axis after the other, then the cheap end of the plateau.

use std::time::Duration;

use super::answer::{Alternative, Answer, Choice, Verdict};
use super::curve::{Curve, Fits};
use super::finals::Finals;
use super::line::Line;
use super::replay::{Pause, Replay, Tally, Time};
use super::{DELTA, End, Purpose, Search, Step, Trial};
use crate::space::{Axis, Point, Space, Span};
use crate::stats::{Surface, whole};

/// The time of a sweep, where none is given.
pub(crate) const BUDGET: Duration = Duration::from_secs(150);
/// Baseline windows before anything else: they are compared with the sentinel's at the end.
pub(super) const BASELINES: usize = 2;
/// A round of warm-up that is faster by less than this share, or by less than so many standard errors of a window, gained nothing.
const WARMING: f64 = 0.05;
const WARM_DOUBT: f64 = 2.5;
/// Rounds of warm-up in a row that gain nothing before it is over.
const WARM_ROUNDS: u32 = 2;
/// The length of a window of the warm-up, in windows: one that is hardly longer than another shows no rise.
const WARM_UP_WINDOWS: u32 = 2;
/// The share of the budget for the warm-up at the most.
const WARM_UP_SHARE: u32 = 4;
/// How often threads and rows per request are searched in turns.
const TURNS: u32 = 3;
/// Threads of the warm-up, where the range allows it: enough to wake every part of a server.
const WARM_UP_THREADS: u32 = 32;
/// Rows per request in every other window of the warm-up: servers have other code for several rows than for one.
const WARM_UP_BATCH: u32 = 16;
/// Standard errors by which a cheaper setting may lack more than [`DELTA`].
const LENIENCE: f64 = 0.5;
/// Points that a surface over all axes may propose.
const POLISH: usize = 2;
/// Standard deviations of a window by which one of them must be better, beyond [`DELTA`].
const POLISH_DOUBT: f64 = 2.0;
/// The share of the best from which on a point tells of the top.
const MATTERS: f64 = 0.4;
/// Windows at the most by the number of axes that are searched.
const MOST_WINDOWS: [u32; 5] = [40, 40, 90, 90, 120];

/// Bracket, refine, compare, confirm. Pure and deterministic for a seed.
#[derive(Debug, Clone)]
pub(crate) struct Climb {
    pub(crate) space: Space,
    pub(crate) time: Time,
    pub(crate) seed: u64,
    fits: Fits,
}

impl Climb {
    /// A search that spends at most this time, windows and all; in open loop at so many requests per second.
    pub(crate) fn new(space: Space, budget: Duration, rate: Option<f64>, seed: u64) -> Self {
        let axes = Axis::ALL.into_iter().filter(|axis| !space.on(*axis).is_fixed()).count();
        let planned = planned(&space);
        let window = window_for(planned, budget);
        let warm_up = (window * WARM_UP_WINDOWS).min(budget / WARM_UP_SHARE / 4).max(window);
        let windows = MOST_WINDOWS.get(axes).copied().unwrap_or(u32::MAX);
        Self { space, time: Time { budget, window, warm_up, rate, windows, planned }, seed, fits: Fits::default() }
    }

    fn decide(&self, run: &mut Replay<'_>) -> Result<Answer, Pause> {
        self.warm_up(run)?;
        let Some(ground) = self.ground(run)? else { return Ok(self.nothing_works(run)) };
        let mut best = 0.0;
        let (here, complete) = match self.explore(run, ground, &mut best) {
            Ok(here) => (here, true),
            Err(Pause::Hurry) => (run.best().map_or(ground, |it| it.0), false),
            Err(pause) => return Err(pause),
        };
        Finals { space: &self.space, seed: self.seed, ground, here, best, complete }.decide(run)
    }

    /// The cheapest point, or, where that fails, the one with as few threads but all connections and io threads: the least
    /// number of threads may be more than one connection bears.
    fn ground(&self, run: &mut Replay<'_>) -> Result<Option<Point>, Pause> {
        let mut grounds = vec![self.space.lowest(), self.rich()];
        grounds.dedup();
        for ground in grounds {
            for _ in 0..BASELINES {
                run.measure(ground, Purpose::Baseline)?;
            }
            if run.tallies().get(&ground).is_some_and(Tally::is_feasible) {
                return Ok(Some(ground));
            }
        }
        Ok(None)
    }

    /// The cheapest point but for its connections and io threads, of which it has all.
    fn rich(&self) -> Point {
        let lowest = self.space.lowest();
        lowest.with(Axis::IoThreads, self.space.io_threads.hi()).with(Axis::Pool, self.space.pool.hi())
    }

    /// Windows that count for nothing, until some in a row are no faster than the best before them: a server that has just
    /// started, or an engine with empty caches, gets faster for a while; one on a JVM for half a minute.
    fn warm_up(&self, run: &mut Replay<'_>) -> Result<(), Pause> {
        let lowest = self.space.lowest();
        let threads = lowest.with(Axis::Threads, self.space.threads.clamp(WARM_UP_THREADS));
        let mut points = vec![(threads, 0.0), (threads.with(Axis::Batch, self.space.batch.clamp(WARM_UP_BATCH)), 0.0)];
        points.dedup_by_key(|(point, _)| *point);
        let mut steady = 0;
        while steady < WARM_ROUNDS && run.spent() < self.time.budget / WARM_UP_SHARE {
            let mut gained = false;
            for (point, reference) in &mut points {
                let Trial { rate, std_err, .. } = run.measure(*point, Purpose::WarmUp)?;
                // What was reached at the last gain stays the measure: many small gains are one.
                if rate - *reference > (WARMING * rate).max(WARM_DOUBT * std_err) {
                    (*reference, gained) = (*rate, true);
                }
            }
            steady = if gained { 0 } else { steady + 1 };
        }
        Ok(())
    }

    /// Searches one axis after the other and returns where that leads. It begins with the most connections and io threads:
    /// too few of them hold threads back, too many seldom hurt, and what isn't needed goes at the end. `best` becomes the peak over
    /// threads as it was before something was saved on those.
    fn explore(&self, run: &mut Replay<'_>, ground: Point, best: &mut f64) -> Result<Point, Pause> {
        let rich = self.rich();
        let mut here = if run.explore(rich)?.is_some() { rich } else { ground };
        here = self.advance(run, here, Axis::Threads)?;
        if !self.space.batch.is_fixed() {
            here = self.advance(run, here, Axis::Batch)?;
            // More rows per request save threads, and fewer threads leave room for more rows per request.
            for _ in 0..TURNS {
                let before = here;
                here = self.advance(run, here, Axis::Threads)?;
                if here.threads * 4 > before.threads * 3 {
                    break;
                }
                here = self.advance(run, here, Axis::Batch)?;
            }
        }
        let peak = Curve::of(&self.line(here, Axis::Threads), run).and_then(|curve| curve.peak());
        for axis in [Axis::IoThreads, Axis::Pool] {
            here = self.advance(run, here, axis)?;
        }
        if (here.io_threads, here.pool) != (rich.io_threads, rich.pool) {
            *best = peak.map_or(0.0, |it| it.1);
        }
        here = self.polish(run, here)?;
        if !self.space.threads.is_fixed() {
            self.line(here, Axis::Threads).propose(run)?;
        }
        Ok(here)
    }

    /// Measures where a surface through all that was measured has its top: the axes were searched one after the other, and two
    /// together may give more. It only proposes; what is measured decides.
    fn polish(&self, run: &mut Replay<'_>, mut here: Point) -> Result<Point, Pause> {
        for _ in 0..POLISH {
            let Some(top) = self.top(run, here).filter(|top| !run.tallies().contains_key(top)) else { break };
            let Some(rate) = run.explore(top)? else { break };
            let before = run.tallies().get(&here).map_or(0.0, Tally::mean);
            if rate < before * (1.0 + DELTA + POLISH_DOUBT * run.noise()) {
                break;
            }
            here = top;
        }
        Ok(here)
    }

    /// The top of the surface over all axes that are searched; `None` with fewer than two.
    fn top(&self, run: &Replay<'_>, here: Point) -> Option<Point> {
        let axes: Vec<Axis> = Axis::ALL.into_iter().filter(|axis| !self.space.on(*axis).is_fixed()).collect();
        let place = |point: Point| axes.iter().map(|axis| f64::from(point.on(*axis))).collect::<Vec<f64>>();
        let best = run.best()?.1;
        let good = run.tallies().iter().filter(|(_, tally)| tally.is_feasible() && tally.mean() > best * MATTERS);
        let points: Vec<(Vec<f64>, f64)> = good.map(|(point, tally)| (place(*point), tally.mean())).collect();
        let top = Surface::fit(&points).filter(|_| axes.len() > 1)?.peak(&place(here))?;
        Some(axes.iter().zip(top).fold(here, |point, (axis, value)| {
            let value = u32::try_from(whole(value)).unwrap_or(u32::MAX);
            point.with(*axis, self.space.on(*axis).clamp(value))
        }))
    }

    /// Explores the line through a point and goes to its cheapest good value; for rows per request to the dearest one, because
    /// they save threads, which come first in the order of cost. What is too much of them goes at the end.
    fn advance(&self, run: &mut Replay<'_>, here: Point, axis: Axis) -> Result<Point, Pause> {
        let line = self.line(here, axis);
        if line.span.is_fixed() {
            return Ok(here);
        }
        line.explore(run)?;
        if matches!(axis, Axis::IoThreads | Axis::Pool) {
            match line.settle(run) {
                // It is for precision alone.
                Ok(()) | Err(Pause::Hurry) => {}
                Err(pause) => return Err(pause),
            }
        }
        let Some(curve) = Curve::of(&line, run) else { return Ok(here) };
        let Some((_, rate)) = curve.peak() else { return Ok(here) };
        let working = line.working(run);
        // In doubt the cheaper one: threads are looked at again, these are not.
        let doubt = |value: u32| if axis == Axis::Threads { 0.0 } else { LENIENCE * curve.doubt(value) };
        let enough = |value: &u32| curve.rate(*value) >= rate * (1.0 - DELTA - doubt(*value));
        let value =
            if axis == Axis::Batch { working.into_iter().rev().find(enough) } else { working.into_iter().find(enough) };
        Ok(value.map_or(here, |value| here.with(axis, value)))
    }

    fn line(&self, through: Point, axis: Axis) -> Line {
        Line { through, axis, span: self.space.on(axis) }
    }

    fn nothing_works(&self, run: &Replay<'_>) -> Answer {
        let ceiling = run.ceiling(None);
        let how = ceiling.as_ref().map_or_else(
            || "did nothing at all".to_owned(),
            |ceiling| match ceiling.errors {
                0 => format!("misses {}", ceiling.cause),
                errors => format!("failed with {errors} errors of class {}", ceiling.cause),
            },
        );
        Answer {
            verdict: Verdict::NoFeasiblePoint,
            stop_reason: format!("the cheapest point ({}) {how}", self.space.lowest()),
            knee: None,
            peak: None,
            ceiling,
            cheaper: Vec::new(),
        }
    }
}

impl Search for Climb {
    fn most(&self) -> u32 {
        self.time.windows
    }

    fn next(&self, history: &[Trial]) -> Step {
        match self.decide(&mut Replay::new(history, self.time, &self.fits)) {
            Ok(answer) => Step::Done(Box::new(answer)),
            Err(Pause::Measure(probe)) => Step::Measure(probe),
            Err(Pause::Hurry) => Step::Done(Box::new(self.conclude(history, End::Budget))),
        }
    }

    fn conclude(&self, history: &[Trial], end: End) -> Answer {
        let mut run = Replay::new(history, self.time, &self.fits);
        // The outcome is known: there is no more. What counts is what the replay has gathered.
        let _ = self.decide(&mut run);
        so_far(&run, history.len(), end)
    }
}

/// The best of what was measured, unconfirmed.
pub(super) fn so_far(run: &Replay<'_>, windows: usize, end: End) -> Answer {
    let (verdict, stop_reason) = match end {
        End::Interrupted => (Verdict::Interrupted, format!("interrupted after {windows} windows")),
        End::Budget => (Verdict::BudgetExhausted, cut_short(run, windows)),
    };
    let choice = |point: Point| {
        let trials = run.tallies().get(&point).map(|tally| tally.trials.clone()).unwrap_or_default();
        Choice { point, trials, confirmed: false }
    };
    let peak = run.best();
    let knee = peak.and_then(|(_, rate)| {
        let enough = |tally: &Tally| tally.is_feasible() && tally.mean() >= rate * (1.0 - DELTA);
        run.tallies().iter().find(|(_, tally)| enough(tally)).map(|(point, _)| *point)
    });
    Answer {
        verdict,
        stop_reason,
        knee: knee.map(choice),
        peak: peak.map(|(point, _)| choice(point)),
        ceiling: run.ceiling(knee),
        cheaper: knee.map(|knee| cheaper(run, knee)).unwrap_or_default(),
    }
}

/// Why a search ended before it was done.
pub(super) fn cut_short(run: &Replay<'_>, windows: usize) -> String {
    if run.has_no_windows() {
        return format!(
            "after {windows} windows, the most for these ranges, no choice had held in a fresh run; narrow them"
        );
    }
    let budget = humantime::format_duration(run.budget());
    format!(
        "the budget of {budget} ended after {windows} windows, before the search did; raise --budget or narrow the ranges"
    )
}

/// What it costs to save on each setting: the next lower value that was measured, with all else as at the knee.
pub(super) fn cheaper(run: &Replay<'_>, knee: Point) -> Vec<Alternative> {
    let Some(reference) = run.tallies().get(&knee).map(Tally::mean) else { return Vec::new() };
    let below = |axis: Axis| {
        let line = Line { through: knee, axis, span: Span::up_to(knee.on(axis)) };
        let (value, tally) =
            line.tallies(run).into_iter().rev().find(|(value, tally)| *value < knee.on(axis) && tally.is_feasible())?;
        Some(Alternative { point: line.at(value), loss: 1.0 - tally.mean() / reference })
    };
    let mut cheaper: Vec<Alternative> = Axis::ALL.into_iter().filter_map(below).collect();
    cheaper.retain(|alternative| alternative.loss.is_finite() && alternative.loss > 0.0);
    cheaper.sort_by(|a, b| a.loss.total_cmp(&b.loss));
    cheaper
}

/// The windows that a whole search of this space takes behind its warm-up, or a few less.
fn planned(space: &Space) -> u32 {
    let rungs = |axis: Axis| if space.on(axis).is_fixed() { 0 } else { space.on(axis).ladder().len() + 2 };
    let exploring = Axis::ALL.into_iter().map(rungs).sum::<usize>() + rungs(Axis::Threads) / 2 + rungs(Axis::Batch) / 2;
    let settled = [Axis::IoThreads, Axis::Pool].into_iter().filter(|axis| !space.on(*axis).is_fixed());
    let settling = 12 * settled.count();
    u32::try_from(exploring + settling + 47).unwrap_or(u32::MAX)
}

/// So long that so many windows fit the budget; at least a quarter of a second, at most ten.
fn window_for(windows: u32, budget: Duration) -> Duration {
    // A third on top of each window for its warm-up, connecting, and waiting for the last answers.
    (budget * 3 / 4 / windows).clamp(Duration::from_millis(250), Duration::from_secs(10))
}
