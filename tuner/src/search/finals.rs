//! The end of a sweep: the best points in turns, the verdict, and a fresh run of what is reported.

use std::collections::BTreeMap;
use std::time::Duration;

use super::answer::{Answer, Choice, Verdict};
use super::climb::{BASELINES, cheaper, out_of_time, so_far};
use super::replay::{CONFIRMATIONS, Pause, Replay, Tally};
use super::{DELTA, End, Purpose, Trial};
use crate::space::{Axis, Point, Space};
use crate::stats::{Estimate, real_len};
use crate::workload::mix;

/// Windows of each finalist, and the most of them where they differ much among themselves.
const ROUNDS: u32 = 3;
const MOST_ROUNDS: u32 = 5;
/// Windows of one point that differ by more than this are noisy.
const NOISY: f64 = 0.015;
/// Windows of each point at the end of a range.
const EDGE_ROUNDS: u32 = 3;
/// Choices that are confirmed at the most, before the best so far must do.
const ATTEMPTS: u32 = 3;
/// A change of the sentinel that is drift if noise doesn't explain it.
const DRIFT: f64 = 0.06;

/// The half width of a confidence interval that is precise enough.
const WANTED: f64 = 0.05;
/// Windows of a confirmation at the most.
const MOST_CONFIRMATIONS: u32 = 12;
/// A confidence interval wider than this, on either side, tells no points apart.
const VAGUE: f64 = 0.15;

/// The last part of a search.
pub(crate) struct Finals<'s> {
    pub(crate) space: &'s Space,
    pub(crate) seed: u64,
    /// Whether everything was explored.
    pub(crate) complete: bool,
    pub(crate) budget: Duration,
}

/// The windows of one purpose by point.
type Samples = BTreeMap<Point, Tally>;

impl Finals<'_> {
    pub(crate) fn decide(&self, run: &mut Replay<'_>) -> Result<Answer, Pause> {
        let finalists = finalists(run);
        let (finals, sentinel) = match self.compare(run, &finalists) {
            Ok(compared) => compared,
            Err(Pause::Hurry) => return Ok(self.too_late(run)),
            Err(pause) => return Err(pause),
        };
        let edge = match self.rising(run, &finals) {
            Ok(edge) => edge,
            Err(Pause::Hurry) => None,
            Err(pause) => return Err(pause),
        };
        let (knee, peak) = match Self::confirm(run, &finals, edge) {
            Ok(Some(chosen)) => chosen,
            Ok(None) | Err(Pause::Hurry) => return Ok(self.too_late(run)),
            Err(pause) => return Err(pause),
        };
        let drift = self.drift(run, &finals, &sentinel)?;
        Ok(self.answer(run, knee, peak, edge, drift))
    }

    /// Measures the finalists in turns, each round in another order, with the sentinel among them.
    fn compare(&self, run: &mut Replay<'_>, finalists: &[Point]) -> Result<(Samples, Vec<f64>), Pause> {
        let (mut finals, mut sentinel) = (Samples::new(), Vec::new());
        for round in 0..MOST_ROUNDS {
            if round >= ROUNDS && noise(&finals) < NOISY {
                break;
            }
            match self.round(run, finalists, round, &mut finals, &mut sentinel) {
                Ok(()) => {}
                // The rounds beyond the first ones are for precision alone.
                Err(Pause::Hurry) if round >= ROUNDS => break,
                Err(pause) => return Err(pause),
            }
        }
        Ok((finals, sentinel))
    }

    fn round(
        &self,
        run: &mut Replay<'_>,
        finalists: &[Point],
        round: u32,
        finals: &mut Samples,
        sentinel: &mut Vec<f64>,
    ) -> Result<(), Pause> {
        sentinel.push(run.measure(self.space.lowest(), Purpose::Sentinel)?.rate);
        let mut order = finalists.to_vec();
        order.sort_by_key(|point| self.place(*point, round));
        for point in order {
            let index = run.position();
            let trial = run.measure(point, Purpose::Finalist)?;
            add(finals, point, index, trial);
        }
        Ok(())
    }

    /// A random place in the order of a round.
    fn place(&self, point: Point, round: u32) -> u64 {
        let seed = mix(self.seed, u64::from(round));
        Axis::ALL.into_iter().fold(seed, |place, axis| mix(place, u64::from(point.on(axis))))
    }

    /// The axis on which the peak lies at the end of the range with throughput still rising towards it.
    fn rising(&self, run: &mut Replay<'_>, finals: &Samples) -> Result<Option<Axis>, Pause> {
        let Some((_, (peak, rate))) = choose(finals, &[]) else { return Ok(None) };
        for axis in Axis::ALL {
            let span = self.space.on(axis);
            let near_end = u64::from(peak.on(axis)) * 3 >= u64::from(span.hi()) * 2;
            if !self.space.is_open(axis) || !near_end {
                continue;
            }
            let half = peak.with(axis, (span.hi() / 2).max(span.lo()));
            let end = peak.with(axis, span.hi());
            let (mut below, mut above) = (Vec::new(), Vec::new());
            for _ in 0..EDGE_ROUNDS {
                below.push(run.measure(half, Purpose::Edge)?.rate);
                let trial = run.measure(end, Purpose::Edge)?;
                above.push(if trial.is_feasible() { trial.rate } else { 0.0 });
            }
            let (below, above) = (mean(&below), mean(&above));
            if above >= rate * (1.0 - DELTA) && above > below * (1.0 + DELTA) {
                return Ok(Some(axis));
            }
        }
        Ok(None)
    }

    /// Measures the chosen knee and peak afresh, in turns. A choice that fails, or falls behind the peak by more than it may,
    /// makes room for the next one; `None` after too many.
    fn confirm(run: &mut Replay<'_>, finals: &Samples, edge: Option<Axis>) -> Result<Option<(Choice, Choice)>, Pause> {
        let mut rejected = Vec::new();
        let mut fresh = Samples::new();
        for _ in 0..ATTEMPTS {
            let Some((knee, (peak, _))) = choose(finals, &rejected) else { return Ok(None) };
            let knee = if edge.is_some() { peak } else { knee };
            let both = if knee == peak { vec![knee] } else { vec![knee, peak] };
            let unmeasured: Vec<Point> = both.into_iter().filter(|point| !fresh.contains_key(point)).collect();
            Self::measure_fresh(run, &unmeasured, &mut fresh)?;
            let failed = [knee, peak].into_iter().find(|point| fresh.get(point).is_none_or(|it| !it.is_feasible()));
            if let Some(point) = failed {
                rejected.push(point);
            } else if falls_behind(&fresh, knee, peak) {
                rejected.push(knee);
            } else {
                return Ok(Some(pair(&fresh, knee, peak)));
            }
        }
        Ok(None)
    }

    /// The relative change of the sentinel since the beginning, to the later half of the finals or to the very end, where
    /// noise doesn't explain it.
    fn drift(&self, run: &mut Replay<'_>, finals: &Samples, sentinel: &[f64]) -> Result<Option<f64>, Pause> {
        let mut end = Vec::new();
        for _ in 0..BASELINES {
            match run.measure(self.space.lowest(), Purpose::Sentinel) {
                Ok(trial) => end.push(trial.rate),
                Err(Pause::Hurry) => break,
                Err(pause) => return Err(pause),
            }
        }
        let baseline = run.tallies().get(&self.space.lowest());
        let early = baseline.and_then(|tally| tally.rates.get(..BASELINES)).unwrap_or_default();
        let later = sentinel.get(sentinel.len() / 2..).unwrap_or_default();
        let noise = spread(finals.values().map(|tally| tally.rates.as_slice()).chain([sentinel]));
        Ok(change(early, later, noise).or_else(|| change(early, &end, noise)))
    }

    /// Measures points in turns, more often where their windows differ much and there is time.
    fn measure_fresh(run: &mut Replay<'_>, points: &[Point], fresh: &mut Samples) -> Result<(), Pause> {
        for round in 0..MOST_CONFIRMATIONS {
            let vague = |point: &Point| fresh.get(point).is_none_or(|tally| half_width(&tally.rates) > WANTED);
            if round >= CONFIRMATIONS && !points.iter().any(vague) {
                return Ok(());
            }
            for point in points {
                let index = run.position();
                match run.measure(*point, Purpose::Confirm) {
                    Ok(trial) => add(fresh, *point, index, trial),
                    Err(Pause::Hurry) if round >= CONFIRMATIONS => return Ok(()),
                    Err(pause) => return Err(pause),
                }
            }
        }
        Ok(())
    }

    fn answer(&self, run: &Replay<'_>, knee: Choice, peak: Choice, edge: Option<Axis>, drift: Option<f64>) -> Answer {
        let (verdict, stop_reason) = if let Some(change) = drift {
            (Verdict::Unstable, drifted(self.space.lowest(), change))
        } else if let Some(width) = too_vague(run, &knee) {
            (Verdict::Unstable, vague(width))
        } else if !self.complete {
            (Verdict::BudgetExhausted, out_of_time(run.position(), self.budget))
        } else if let Some(axis) = edge {
            let span = self.space.on(axis);
            (
                Verdict::NoPeakInRange,
                format!("rows/s still rise at the end of {} {span}; raise it to find the peak", axis.name()),
            )
        } else {
            (Verdict::KneeFound, "every range was searched, and the knee held in a fresh run".into())
        };
        let cheaper = cheaper(run, knee.point);
        let knee = (verdict != Verdict::NoPeakInRange).then_some(knee);
        Answer { verdict, stop_reason, knee, peak: Some(peak), ceiling: run.ceiling(), cheaper }
    }

    fn too_late(&self, run: &Replay<'_>) -> Answer {
        so_far(run, run.position(), self.budget, End::Budget)
    }
}

fn add(samples: &mut Samples, point: Point, index: usize, trial: &Trial) {
    samples.entry(point).or_default().add(index, trial);
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / real_len(rates.len().max(1))
}

/// The points worth another look: the two best, the cheapest that comes near, and its neighbours in cost.
fn finalists(run: &Replay<'_>) -> Vec<Point> {
    let Some((peak, rate)) = run.best() else { return Vec::new() };
    let near =
        run.tallies().iter().filter(|(_, tally)| tally.is_feasible() && tally.mean() >= rate * (1.0 - 3.0 * DELTA));
    let near: Vec<(Point, f64)> = near.map(|(point, tally)| (*point, tally.mean())).collect();
    let knee = near.iter().position(|(_, mean)| *mean >= rate * (1.0 - DELTA)).unwrap_or_default();
    let neighbours = near.iter().skip(knee.saturating_sub(1)).take(if knee > 0 { 3 } else { 2 }).map(|it| it.0);
    let second = near.iter().filter(|it| it.0 != peak).max_by(|a, b| a.1.total_cmp(&b.1)).map(|it| it.0);
    let mut chosen: Vec<Point> = neighbours.chain(second).chain([peak]).collect();
    chosen.sort();
    chosen.dedup();
    chosen
}

/// The cheapest point within reach of the peak, and the peak with its rate.
fn choose(finals: &Samples, rejected: &[Point]) -> Option<(Point, (Point, f64))> {
    let feasible = finals.iter().filter(|(point, tally)| tally.is_feasible() && !rejected.contains(point));
    let means: Vec<(Point, f64)> = feasible.map(|(point, tally)| (*point, tally.mean())).collect();
    let peak = means.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    // In doubt the dearer point: within DELTA by at least the standard error of a comparison.
    let rounds = finals.get(&peak.0).map_or(1, |tally| tally.rates.len());
    let doubt = noise(finals) * (2.0 / real_len(rounds)).sqrt();
    let knee = means.iter().find(|(_, mean)| *mean >= peak.1 * (1.0 - DELTA + doubt.min(DELTA)))?.0;
    Some((knee, peak))
}

/// Whether the fresh run denies what the finals said, that the knee is within [`DELTA`] of the peak.
fn falls_behind(fresh: &Samples, knee: Point, peak: Point) -> bool {
    let rate = |point| fresh.get(point).map_or(0.0, Tally::mean);
    rate(&knee) < rate(&peak) * (1.0 - DELTA)
}

/// Knee and peak with their windows. Where the knee does as well as the peak, it is the peak.
fn pair(fresh: &Samples, knee: Point, peak: Point) -> (Choice, Choice) {
    let get = |point: Point| fresh.get(&point).cloned().unwrap_or_default();
    let peak = if get(knee).mean() >= get(peak).mean() { knee } else { peak };
    let choice = |point| Choice { point, trials: get(point).trials, confirmed: true };
    (choice(knee), choice(peak))
}

/// How much the mean of `late` differs from that of `early`, if by more than noise and [`DRIFT`].
fn change(early: &[f64], late: &[f64], noise: f64) -> Option<f64> {
    let change = (mean(late) / mean(early)).ln();
    let doubt = 3.0 * noise * (1.0 / real_len(early.len()) + 1.0 / real_len(late.len())).sqrt();
    (change.is_finite() && change.abs() > doubt.max(DRIFT)).then(|| change.exp_m1())
}

fn noise(finals: &Samples) -> f64 {
    spread(finals.values().map(|tally| tally.rates.as_slice()))
}

/// The pooled standard deviation of windows of the same point, relative to their mean; from the differences of successive
/// windows (von Neumann 1941), which a step or trend hardly touches.
fn spread<'r>(groups: impl Iterator<Item = &'r [f64]>) -> f64 {
    let (mut squares, mut pairs) = (0.0, 0.0);
    for rates in groups.filter(|rates| rates.iter().all(|rate| *rate > 0.0)) {
        let differences = rates.iter().zip(rates.iter().skip(1)).map(|(a, b)| ((b - a) / mean(rates)).powi(2) / 2.0);
        squares += differences.sum::<f64>();
        pairs += real_len(rates.len().saturating_sub(1));
    }
    if pairs > 0.0 { (squares / pairs).sqrt() } else { 0.0 }
}

/// The half width of the knee's confidence interval, where it is too wide to say anything.
fn too_vague(run: &Replay<'_>, knee: &Choice) -> Option<f64> {
    let rates: Vec<f64> = knee.trials.iter().filter_map(|index| Some(run.trial(*index)?.rate)).collect();
    Some(half_width(&rates)).filter(|width| *width > VAGUE)
}

/// Half the width of the confidence interval of these windows' mean, relative to it.
fn half_width(rates: &[f64]) -> f64 {
    Estimate::of_independent(rates).and_then(|estimate| estimate.relative_error()).unwrap_or_default()
}

fn vague(width: f64) -> String {
    format!(
        "windows of the same point differ so much that its rate is known to {:.0} % only; \
         is something else using the machine?",
        width * 100.0
    )
}

fn drifted(point: Point, change: f64) -> String {
    format!(
        "the sentinel ({point}) changed by {:+.1} % during the search, so points can't be compared; \
         is something else using the machine?",
        change * 100.0
    )
}
