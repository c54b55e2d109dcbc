//! The history, read again as if it happened now.
//!
//! A search is written as a plain procedure that asks for one window after the other. Each call of
//! [`Replay::measure`] is answered from the history; the first that isn't there ends the procedure with
//! [`Pause::Measure`], and that is the next window.

use std::collections::BTreeMap;
use std::time::Duration;

use super::curve::Fits;
use super::{Ceiling, Probe, Purpose, Trial, missed};
use crate::objective::Late;
use crate::space::{Axis, Point};
use crate::stats::{real_len, whole};

/// Why the procedure can't go on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pause {
    /// This must be measured first.
    Measure(Probe),
    /// There is no time for it.
    Hurry,
}

/// Everything known of one point.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Rows per second of each window.
    pub(crate) rates: Vec<f64>,
    /// The largest standard error of a window.
    pub(crate) std_err: f64,
    /// Which windows.
    pub(crate) trials: Vec<usize>,
    /// Failed requests in all windows.
    pub(crate) errors: u64,
    /// The commonest class of the last failed window.
    pub(crate) cause: Option<String>,
    /// Slow requests of all windows, by objective.
    pub(crate) late: Vec<Late>,
    /// By how much each window misses its objectives, see [`Trial::over`].
    pub(crate) over: Vec<f64>,
}

impl Tally {
    pub(crate) fn add(&mut self, index: usize, trial: &Trial) {
        self.rates.push(trial.rate);
        self.std_err = self.std_err.max(trial.std_err);
        self.trials.push(index);
        self.over.extend(trial.over());
        self.errors += trial.errors;
        if trial.cause.is_some() {
            self.cause.clone_from(&trial.cause);
        }
        for (place, late) in trial.late.iter().enumerate() {
            match self.late.get_mut(place) {
                Some(sum) => (sum.slow, sum.all) = (sum.slow + late.slow, sum.all + late.all),
                None => self.late.push(late.clone()),
            }
        }
    }

    /// Whether no window had an error, something was done, and no latency objective is clearly missed: by more than windows of the
    /// same point differ.
    pub(crate) fn is_feasible(&self) -> bool {
        let chance = CLEARLY * self.noise();
        self.works() && !(missed(&self.late).is_some() && self.over().is_none_or(|over| over > chance))
    }

    /// The relative standard error of its mean, from the differences within windows.
    fn noise(&self) -> f64 {
        BETWEEN * self.std_err / self.mean().max(f64::MIN_POSITIVE) / real_len(self.rates.len().max(1)).sqrt()
    }

    /// Whether no window had an error, something was done, and what was seen of latencies doesn't refute an objective.
    pub(crate) fn meets_all(&self) -> bool {
        self.works() && missed(&self.late).is_none()
    }

    fn works(&self) -> bool {
        self.errors == 0 && self.rates.iter().any(|rate| *rate > 0.0)
    }

    /// By how much the objectives are missed on average, as a logarithm; `None` where there are none.
    pub(crate) fn over(&self) -> Option<f64> {
        (!self.over.is_empty()).then(|| self.over.iter().sum::<f64>() / real_len(self.over.len()))
    }

    /// The mean over the windows.
    pub(crate) fn mean(&self) -> f64 {
        self.rates.iter().sum::<f64>() / real_len(self.rates.len().max(1))
    }
}

/// The time that a search has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    /// From the start of the command to its end.
    pub(crate) budget: Duration,
    /// One window, warm-up not counted.
    pub(crate) window: Duration,
    /// One window of the warm-up.
    pub(crate) warm_up: Duration,
    /// Requests per second in open loop.
    pub(crate) rate: Option<f64>,
    /// Windows at the most.
    pub(crate) windows: u32,
    /// Windows that the search counts on, behind the warm-up: where they cost more than it was thought, they become shorter.
    pub(crate) planned: u32,
}

/// The windows to keep time for, so that what was found can be compared and confirmed.
pub(crate) const RESERVE: u32 = 18;
/// The windows to keep for the fresh run.
pub(crate) const CONFIRMATION: u32 = 9;
/// What the noise is taken to be worth in pairs of windows before there are any.
const PRIOR_PAIRS: f64 = 3.0;
/// How much windows differ beyond what the differences within one show.
const BETWEEN: f64 = 1.4;
/// How often a window in which the target stood still is measured again.
const AGAIN: u32 = 2;
/// How many times as much as usual such a window varies within itself, and what is usual at the least.
const STOOD_STILL: f64 = 3.0;
const LEAST_USUAL: f64 = 0.02;
/// Windows of the warm-up that count towards the most windows; a server that takes longer to warm up is not searched less for that.
const FREE_WARM_UPS: usize = 7;
/// What a window costs over its length, before there is experience: a third more, for its warm-up, connecting, and the last
/// answers.
const USUAL_COST: f64 = 4.0 / 3.0;
/// The share of its planned length that a window keeps at the least, however much it costs besides.
const SHORTEST: f64 = 0.4;
/// No window is made shorter than this.
const LEAST: Duration = Duration::from_millis(250);
/// Failed requests of one window that are more than chance.
const CERTAIN: u64 = 5;
/// Standard errors by which a latency objective is clearly missed, at 5 %.
const CLEARLY: f64 = 1.645;

/// A history under replay.
#[derive(Debug)]
pub(crate) struct Replay<'h> {
    history: &'h [Trial],
    next: usize,
    fits: &'h Fits,
    /// Windows that exploring must leave.
    reserve: u32,
    time: Time,
    tallies: BTreeMap<Point, Tally>,
}

impl<'h> Replay<'h> {
    pub(crate) fn new(history: &'h [Trial], time: Time, fits: &'h Fits) -> Self {
        Self { history, next: 0, fits, reserve: RESERVE, time, tallies: BTreeMap::new() }
    }

    /// The result of this window, if it is in the history and there was time for it. One in which the target stood still for a
    /// while says nothing of its point, so it is measured again, unless that is how the point is.
    pub(crate) fn measure(&mut self, point: Point, purpose: Purpose) -> Result<&'h Trial, Pause> {
        for _ in 0..AGAIN {
            let trial = self.take(point, purpose)?;
            if purpose.is_fresh() || !self.stood_still(trial) {
                return Ok(self.count(trial));
            }
        }
        let trial = self.take(point, purpose)?;
        Ok(self.count(trial))
    }

    /// The next window of the history.
    fn take(&mut self, point: Point, purpose: Purpose) -> Result<&'h Trial, Pause> {
        match self.history.get(self.next).filter(|trial| trial.probe.point == point && trial.probe.purpose == purpose) {
            Some(trial) => {
                self.next += 1;
                Ok(trial)
            }
            None if self.has_time_for(purpose) => {
                let window = if purpose == Purpose::WarmUp { self.time.warm_up } else { self.window() };
                Err(Pause::Measure(Probe { point, purpose, window, rate: self.time.rate }))
            }
            None => Err(Pause::Hurry),
        }
    }

    /// Adds the window that was taken last to what is known.
    fn count(&mut self, trial: &'h Trial) -> &'h Trial {
        if trial.probe.purpose != Purpose::WarmUp {
            self.tallies.entry(trial.probe.point).or_default().add(self.next - 1, trial);
        }
        trial
    }

    /// Whether a window varies far more within itself than the others do, though nothing failed.
    fn stood_still(&self, trial: &Trial) -> bool {
        let usual = self.within().max(LEAST_USUAL);
        trial.errors == 0 && trial.std_err >= STOOD_STILL * usual * trial.rate
    }

    /// The rate of a point when it is explored; `None` where it fails. One error may be chance, so a failure is tried twice;
    /// a point that failed once stays out of the choice, but the search goes on beyond it.
    pub(crate) fn explore(&mut self, point: Point) -> Result<Option<f64>, Pause> {
        if let Some(tally) = self.tallies.get(&point) {
            return Ok(tally.is_feasible().then(|| tally.mean()));
        }
        let first = self.measure(point, Purpose::Explore)?;
        if first.is_feasible() {
            return Ok(Some(first.rate));
        }
        let is_late = |run: &Self| first.errors == 0 && run.tallies.get(&point).is_some_and(|it| !it.is_feasible());
        if first.errors > CERTAIN || first.rate > 0.0 && is_late(self) {
            return Ok(None);
        }
        let again = self.measure(point, Purpose::Explore)?;
        Ok((again.errors == 0 && again.rate > 0.0 && !is_late(self)).then_some(again.rate))
    }

    /// From now on so many windows must be left, by all but those of the fresh run.
    pub(crate) fn keep(&mut self, windows: u32) {
        self.reserve = windows;
    }

    /// The fits of all replays.
    pub(crate) fn fits(&self) -> &'h Fits {
        self.fits
    }

    /// What is known by point.
    pub(crate) fn tallies(&self) -> &BTreeMap<Point, Tally> {
        &self.tallies
    }

    /// A window that was measured.
    pub(crate) fn trial(&self, index: usize) -> Option<&'h Trial> {
        self.history.get(index)
    }

    /// The index of the next window.
    pub(crate) fn position(&self) -> usize {
        self.next
    }

    /// The point with the highest mean, among those without errors.
    pub(crate) fn best(&self) -> Option<(Point, f64)> {
        let feasible = self.tallies.iter().filter(|(_, tally)| tally.is_feasible());
        // One that likely meets the objectives comes before one that only may.
        let likely = |tally: &Tally| tally.over().is_none_or(|over| over <= -tally.noise());
        let order = |tally: &Tally| (likely(tally), tally.mean());
        let by_order = |a: &(bool, f64), b: &(bool, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
        let best = feasible.max_by(|a, b| by_order(&order(a.1), &order(b.1)));
        best.map(|(point, tally)| (*point, tally.mean()))
    }

    /// The cheapest point that failed, or missed a latency objective: with more threads than a chosen one and all else alike, if
    /// there is one.
    pub(crate) fn ceiling(&self, chosen: Option<Point>) -> Option<Ceiling> {
        let infeasible = |tally: &Tally| tally.errors > 0 || missed(&tally.late).is_some() && !tally.is_feasible();
        let failed = || self.tallies.iter().filter(|(_, tally)| infeasible(tally));
        let above = |chosen: Point, point: Point| point > chosen && point == chosen.with(Axis::Threads, point.threads);
        let next = chosen.and_then(|chosen| failed().find(|(point, _)| above(chosen, **point)));
        let (point, tally) = next.or_else(|| failed().next())?;
        let objective = missed(&tally.late).map(|late| late.objective.clone());
        let cause = tally.cause.clone().or(objective).unwrap_or_else(|| "unknown".into());
        Some(Ceiling { point: *point, cause, errors: tally.errors })
    }

    /// From the start of the command to the end of the last window.
    pub(crate) fn spent(&self) -> Duration {
        let done = self.next.checked_sub(1).and_then(|last| self.history.get(last));
        done.map_or(Duration::ZERO, |trial| trial.spent)
    }

    /// The time that there is.
    pub(crate) fn budget(&self) -> Duration {
        self.time.budget
    }

    /// Whether the windows that it may take came to an end, rather than the time.
    pub(crate) fn has_no_windows(&self) -> bool {
        !self.has_windows(CONFIRMATION)
    }

    /// Whether so many windows more may be measured.
    fn has_windows(&self, windows: u32) -> bool {
        self.done().saturating_add(windows) <= self.time.windows
    }

    /// The windows that count towards the most.
    fn done(&self) -> u32 {
        let beyond = self.warm_ups().saturating_sub(FREE_WARM_UPS);
        u32::try_from(self.next.saturating_sub(beyond)).unwrap_or(u32::MAX)
    }

    /// How many windows more there are, and time for.
    pub(crate) fn left(&self) -> u32 {
        let time = self.time.budget.saturating_sub(self.spent()).div_duration_f64(self.cost());
        let by_time = u32::try_from(whole(time.floor())).unwrap_or(u32::MAX);
        by_time.min(self.time.windows.saturating_sub(self.done()))
    }

    /// Windows of the warm-up.
    fn warm_ups(&self) -> usize {
        self.history.iter().take_while(|trial| trial.probe.purpose == Purpose::WarmUp).count()
    }

    fn has_time_for(&self, purpose: Purpose) -> bool {
        let keep = match purpose {
            Purpose::WarmUp | Purpose::Baseline | Purpose::Confirm | Purpose::Hold | Purpose::Beside => 0,
            Purpose::Explore => self.reserve,
            Purpose::Finalist | Purpose::Sentinel | Purpose::Edge => self.reserve.min(CONFIRMATION),
        };
        self.has_windows(keep + 1) && self.spent() + self.cost() * (keep + 1) <= self.time.budget
    }

    /// The relative standard deviation of windows of the same point: from the differences of successive ones (von Neumann 1941),
    /// which a step or trend hardly touches, and while those are few from the differences within windows.
    pub(crate) fn noise(&self) -> f64 {
        let (mut squares, mut pairs) = (0.0, 0.0);
        for tally in self.tallies.values().filter(|tally| tally.is_feasible()) {
            let mean = tally.mean();
            let differences = tally.rates.iter().zip(tally.rates.iter().skip(1));
            squares += differences.map(|(a, b)| ((b - a) / mean).powi(2) / 2.0).sum::<f64>();
            pairs += real_len(tally.rates.len().saturating_sub(1));
        }
        let within = BETWEEN * self.within();
        ((squares + PRIOR_PAIRS * within * within) / (pairs + PRIOR_PAIRS)).sqrt()
    }

    /// The relative standard error that windows have from within, typically.
    fn within(&self) -> f64 {
        let feasible = self.tallies.values().filter(|tally| tally.is_feasible());
        let mut within: Vec<f64> = feasible.map(|tally| tally.std_err / tally.mean()).collect();
        within.sort_by(f64::total_cmp);
        within.get(within.len() / 2).copied().unwrap_or_default()
    }

    /// The length of the next window: as planned, or so short that what is left of the search fits into what is left of the time.
    fn window(&self) -> Duration {
        let done = u32::try_from(self.next.saturating_sub(self.warm_ups())).unwrap_or(u32::MAX);
        let left = self.time.planned.saturating_sub(done).max(1);
        let share = self.time.budget.saturating_sub(self.spent()) / left;
        let window = self.time.window;
        let shortest = window.mul_f64(SHORTEST).max(LEAST).min(window);
        share.div_f64(self.cost_of_length()).clamp(shortest, window)
    }

    /// What a window costs with all that belongs to it.
    fn cost(&self) -> Duration {
        self.window().mul_f64(self.cost_of_length())
    }

    /// What a window costs over its length: by experience, or by a guess before there is any.
    fn cost_of_length(&self) -> f64 {
        let seen = self.history.get(..self.next).unwrap_or_default();
        let (Some((first, rest)), Some(last)) = (seen.split_first(), seen.last()) else { return USUAL_COST };
        let lengths: Duration = rest.iter().map(|trial| trial.probe.window).sum();
        let spent = last.spent.saturating_sub(first.spent);
        if lengths.is_zero() { USUAL_COST } else { spent.div_duration_f64(lengths).max(1.0) }
    }
}
