//! The end of a sweep: the best points in turns, the verdict, and a fresh run of what is reported.

use std::collections::BTreeMap;

use super::answer::{Answer, Ceiling, Choice, Verdict};
use super::climb::{BASELINES, cheaper, cut_short, so_far};
use super::curve::Curve;
use super::drift::{Change, drift, telling};
use super::late::Latencies;
use super::line::Line;
use super::replay::{CONFIRMATION, Pause, Replay, Tally};
use super::{COLLAPSE, DELTA, End, Purpose, Trial};
use crate::space::{Axis, Point, Space};
use crate::stats::{Estimate, welch};
use crate::workload::mix;

/// Rounds in which the finalists are measured in turns, and the most of them where that leaves doubt.
const ROUNDS: u32 = 3;
const MOST_ROUNDS: u32 = 6;
/// Windows of a round.
const PER_ROUND: u32 = 3;
/// The doubt about a rate that more rounds are for.
const DOUBT: f64 = 0.01;
/// Rounds in which the middle and the end of a range are compared, at the most.
const EDGE_ROUNDS: u32 = 5;
/// A gain from the middle of a range to its end that shows a rise.
const RISE: f64 = 0.75 * DELTA;
/// Choices that are confirmed at the most, before the best so far must do.
const ATTEMPTS: u32 = 3;
/// Windows of the fresh run: of the knee, and of the peak where that is another point.
const OF_KNEE: u32 = 5;
const OF_PEAK: u32 = 4;
/// Windows of the knee where they differ by more than this, and nothing else needs them.
const OF_NOISY_KNEE: u32 = 10;
const NOISY: f64 = 0.02;
/// Windows at the most by which a doubtful change of the target is made certain.
const LOOKS: u32 = 12;
/// What is left of throughput after a collapse, at the most.
const BROKEN: f64 = 0.5;
/// A confidence interval wider than this, on either side, tells no points apart.
const VAGUE: f64 = 0.15;

/// The last part of a search.
pub(crate) struct Finals<'s> {
    pub(crate) space: &'s Space,
    pub(crate) seed: u64,
    /// The cheapest point that works, the yardstick against drift.
    pub(crate) ground: Point,
    /// Where the search of the axes has led.
    pub(crate) here: Point,
    /// The peak over threads with all connections and io threads: what was saved on those counts towards what the knee may lack.
    pub(crate) best: f64,
    /// Whether everything was explored.
    pub(crate) complete: bool,
}

/// The windows of one purpose by point.
type Samples = BTreeMap<Point, Tally>;

impl Finals<'_> {
    pub(crate) fn decide(&self, run: &mut Replay<'_>) -> Result<Answer, Pause> {
        run.keep(CONFIRMATION);
        let edge = match self.rising(run) {
            Ok(edge) => edge,
            Err(Pause::Hurry) => None,
            Err(pause) => return Err(pause),
        };
        if edge.is_none() {
            match self.compare(run) {
                Ok(()) | Err(Pause::Hurry) => {}
                Err(pause) => return Err(pause),
            }
        }
        let (knee, peak) = match self.confirm(run, edge) {
            Ok(Some(chosen)) => chosen,
            Ok(None) | Err(Pause::Hurry) => return Ok(so_far(run, run.position(), End::Budget)),
            Err(pause) => return Err(pause),
        };
        run.keep(0);
        match self.look_back(run).and_then(|()| self.save(run, knee.point)) {
            Ok(()) | Err(Pause::Hurry) => {}
            Err(pause) => return Err(pause),
        }
        let edge = edge.or_else(|| self.ends_at(knee.point));
        Ok(self.answer(run, knee, peak, edge))
    }

    /// Measures the knee and the peak in turns, each round in another order, with the sentinel among them. What they are may
    /// change with every round.
    fn compare(&self, run: &mut Replay<'_>) -> Result<(), Pause> {
        for round in 0..MOST_ROUNDS {
            // Where a finalist has failed, the cliff lies nearer than it seemed.
            self.line(Axis::Threads).approach(run)?;
            self.line(Axis::Threads).approach_limit(run, u32::MAX)?;
            let Some((knee, peak)) = self.choose(run, &[]) else { return Ok(()) };
            let other = if knee == peak { self.rival(run, knee, MOST_ROUNDS - round) } else { Some(peak) };
            let curve = Curve::of(&self.line(Axis::Threads), run);
            let doubt = curve.map_or(0.0, |curve| curve.doubt(knee.threads).hypot(curve.doubt(peak.threads)));
            if round >= ROUNDS && doubt < DOUBT {
                return Ok(());
            }
            let points: Vec<Point> = std::iter::once(knee).chain(other).collect();
            run.measure(self.ground, Purpose::Sentinel)?;
            let mut order = points;
            order.sort_by_key(|point| self.place(*point, round));
            for point in order {
                run.measure(point, Purpose::Finalist)?;
            }
        }
        Ok(())
    }

    /// The best of the others for a choice that has none: what looks best may have been lucky. `None` where so many rounds with it
    /// would leave too few windows.
    fn rival(&self, run: &Replay<'_>, chosen: Point, rounds: u32) -> Option<Point> {
        let line = self.line(Axis::Threads);
        let curve = Curve::of(&line, run).filter(|_| run.left() > PER_ROUND * rounds + CONFIRMATION + LOOKS)?;
        let others = line.working(run).into_iter().filter(|value| *value != chosen.threads);
        others.max_by(|a, b| curve.rate(*a).total_cmp(&curve.rate(*b))).map(|value| line.at(value))
    }

    /// Measures once what fewer connections and io threads than those of the choice do there, where nobody knows: it is what more
    /// of them are for.
    fn save(&self, run: &mut Replay<'_>, chosen: Point) -> Result<(), Pause> {
        for axis in [Axis::IoThreads, Axis::Pool] {
            let line = Line { through: chosen, axis, span: self.space.on(axis) };
            let fewer = (chosen.on(axis) / 2).max(line.span.lo());
            if line.tallies(run).iter().all(|it| it.0 >= chosen.on(axis)) && fewer < chosen.on(axis) {
                run.measure(line.at(fewer), Purpose::Explore)?;
            }
        }
        Ok(())
    }

    /// Measures again what was measured before, until it is certain that the target has changed, or that it hasn't.
    fn look_back(&self, run: &mut Replay<'_>) -> Result<(), Pause> {
        for _ in 0..BASELINES {
            run.measure(self.ground, Purpose::Sentinel)?;
        }
        for _ in 0..LOOKS {
            let doubt = drift(run, &self.line(Axis::Threads)).filter(Change::is_doubtful);
            let Some(point) = doubt.and_then(|change| telling(run, &change)) else { return Ok(()) };
            run.measure(point, Purpose::Sentinel)?;
        }
        Ok(())
    }

    /// A random place in the order of a round.
    fn place(&self, point: Point, round: u32) -> u64 {
        let seed = mix(self.seed, u64::from(round));
        Axis::ALL.into_iter().fold(seed, |place, axis| mix(place, u64::from(point.on(axis))))
    }

    fn line(&self, axis: Axis) -> Line {
        Line { through: self.here, axis, span: self.space.on(axis) }
    }

    /// The knee and the peak of the line of threads that the search has led to, among what was measured and not rejected.
    fn choose(&self, run: &Replay<'_>, rejected: &[Point]) -> Option<(Point, Point)> {
        let line = self.line(Axis::Threads);
        let curve = Curve::of(&line, run)?;
        let allowed = |value: &u32| !rejected.contains(&line.at(*value));
        let mut working: Vec<u32> = line.working(run).into_iter().filter(allowed).collect();
        if let Some(latencies) = Latencies::of(&line, run, &curve) {
            let calmest = working.iter().copied().min_by(|a, b| latencies.at(*a).total_cmp(&latencies.at(*b)));
            working.retain(|value| latencies.are_met(*value) || Some(*value) == calmest);
        }
        let peak = working.iter().copied().max_by(|a, b| curve.rate(*a).total_cmp(&curve.rate(*b)))?;
        let enough = self.best.max(curve.rate(peak)) * (1.0 - DELTA + curve.doubt(peak).min(DELTA));
        let enough = enough.min(curve.rate(peak));
        let knee = working.iter().copied().find(|value| curve.rate(*value) >= enough)?;
        Some((line.at(knee), line.at(peak)))
    }

    /// The axis on which the knee lies at the end of the range with throughput still rising towards it.
    fn rising(&self, run: &mut Replay<'_>) -> Result<Option<Axis>, Pause> {
        let Some((knee, _)) = self.choose(run, &[]) else { return Ok(None) };
        for axis in Axis::ALL {
            let span = self.space.on(axis);
            // Threads rise slowly; of the rest the search has taken the cheapest value that gives as much as the last one.
            let near_end = match axis {
                Axis::Threads => u64::from(knee.threads) * 2 >= u64::from(span.hi()),
                _ => knee.on(axis) == span.hi(),
            };
            if !self.space.is_open(axis) || !near_end {
                continue;
            }
            let line = Line { through: knee, axis, span };
            let half = (span.hi() / 2).max(span.lo());
            if rises(run, &line, half)? {
                return Ok(Some(axis));
            }
        }
        Ok(None)
    }

    /// The axis of threads, where the knee is its last value: everything below gives less.
    fn ends_at(&self, knee: Point) -> Option<Axis> {
        let ends = self.space.is_open(Axis::Threads) && knee.threads == self.space.threads.hi();
        ends.then_some(Axis::Threads)
    }

    /// Measures the chosen knee and peak afresh, in turns. A choice that fails, or falls behind the peak by more than it may,
    /// makes room for the next one; `None` after too many.
    fn confirm(&self, run: &mut Replay<'_>, edge: Option<Axis>) -> Result<Option<(Choice, Choice)>, Pause> {
        run.keep(OF_KNEE);
        let mut rejected = Vec::new();
        let mut fresh = Samples::new();
        for _ in 0..ATTEMPTS {
            let below = rejected.iter().map(|point: &Point| point.threads).min().unwrap_or(u32::MAX);
            match self.line(Axis::Threads).approach_limit(run, below) {
                Ok(()) | Err(Pause::Hurry) => {}
                Err(pause) => return Err(pause),
            }
            let Some((knee, peak)) = self.choose(run, &rejected) else { return Ok(None) };
            let knee = if edge.is_some() { peak } else { knee };
            let rounds = rounds(run);
            measure_fresh(run, [(knee, rounds), (peak, OF_PEAK)], &mut fresh)?;
            let failed = [knee, peak].into_iter().find(|point| fresh.get(point).is_none_or(|it| !it.meets_all()));
            if let Some(point) = failed {
                rejected.push(point);
                match self.line(Axis::Threads).approach(run) {
                    Ok(()) | Err(Pause::Hurry) => {}
                    Err(pause) => return Err(pause),
                }
            } else if falls_behind(&fresh, knee, peak) {
                rejected.push(knee);
            } else {
                return Ok(Some(pair(&fresh, knee, peak)));
            }
        }
        Ok(None)
    }

    /// Where throughput breaks down without an error, on the line of threads.
    fn collapse(&self, run: &Replay<'_>) -> Option<Ceiling> {
        let line = self.line(Axis::Threads);
        let (good, bad) = line.cliff(run)?;
        let rate = |value: u32| run.tallies().get(&line.at(value)).map_or(0.0, Tally::mean);
        let breaks = bad <= good.saturating_mul(2) && rate(bad) < rate(good) * BROKEN;
        breaks.then(|| Ceiling { point: line.at(bad), cause: COLLAPSE.into(), errors: 0 })
    }

    fn answer(&self, run: &Replay<'_>, knee: Choice, peak: Choice, edge: Option<Axis>) -> Answer {
        let (verdict, stop_reason) =
            if let Some(change) = drift(run, &self.line(Axis::Threads)).and_then(|it| it.found()) {
                (Verdict::Unstable, drifted(change))
            } else if let Some(width) = too_vague(run, &knee) {
                (Verdict::Unstable, vague(width))
            } else if !self.complete {
                (Verdict::BudgetExhausted, cut_short(run, run.position()))
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
        let ceiling = run.ceiling(Some(knee.point)).or_else(|| self.collapse(run));
        let knee = (verdict != Verdict::NoPeakInRange).then_some(knee);
        Answer { verdict, stop_reason, knee, peak: Some(peak), ceiling, cheaper }
    }
}

/// Whether the end of a line gives more than its middle: both are measured in turns until that is certain, or for some rounds.
fn rises(run: &mut Replay<'_>, line: &Line, half: u32) -> Result<bool, Pause> {
    let end = line.span.hi();
    for round in 0..EDGE_ROUNDS {
        if run.tallies().get(&line.at(end)).is_some_and(|tally| !tally.is_feasible()) {
            return Ok(false);
        }
        if round > 0 {
            let (gain, doubt) = gain(run, line, half);
            if (gain - RISE).abs() > certain(line.axis) * doubt {
                return Ok(gain > RISE);
            }
        }
        for value in [half, end] {
            match run.measure(line.at(value), Purpose::Edge) {
                Ok(_) => {}
                Err(Pause::Hurry) => return Ok(is_likely(gain(run, line, half), line.axis)),
                Err(pause) => return Err(pause),
            }
        }
    }
    Ok(is_likely(gain(run, line, half), line.axis))
}

/// What the end of a line gives more than its middle, as a share, with the standard error of that.
fn gain(run: &Replay<'_>, line: &Line, half: u32) -> (f64, f64) {
    let Some(curve) = Curve::of(line, run) else { return (0.0, 0.0) };
    let end = line.span.hi();
    (curve.rate(end) / curve.rate(half) - 1.0, curve.doubt(half).hypot(curve.doubt(end)))
}

/// Standard errors by which a comparison is certain. Only of threads it is likely from the start that more of them give more.
fn certain(axis: Axis) -> f64 {
    if axis == Axis::Threads { 1.5 } else { 2.5 }
}

/// Whether a gain is a rise, where that is not certain.
fn is_likely((gain, doubt): (f64, f64), axis: Axis) -> bool {
    gain > RISE.max((certain(axis) - 0.5) * doubt)
}

/// Windows of the knee's fresh run: more where they differ much, as far as what comes after them leaves any.
fn rounds(run: &Replay<'_>) -> u32 {
    let spare = run.left().saturating_sub(OF_KNEE + OF_PEAK + LOOKS);
    if run.noise() > NOISY { OF_NOISY_KNEE.min(OF_KNEE + spare) } else { OF_KNEE }
}

/// Measures points in turns, each in so many windows.
fn measure_fresh(run: &mut Replay<'_>, points: [(Point, u32); 2], fresh: &mut Samples) -> Result<(), Pause> {
    let rounds = points.iter().map(|it| it.1).max().unwrap_or_default();
    for round in 0..rounds {
        for (point, most) in points {
            let done = fresh.get(&point).map_or(0, |tally| tally.rates.len());
            if round >= most || done >= usize::try_from(round + 1).unwrap_or(usize::MAX) {
                continue;
            }
            let index = run.position();
            let trial = run.measure(point, Purpose::Confirm)?;
            add(fresh, point, index, trial);
            // It has failed; more windows would not mend that.
            if trial.errors > 0 {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn add(samples: &mut Samples, point: Point, index: usize, trial: &Trial) {
    samples.entry(point).or_default().add(index, trial);
}

/// Whether the fresh run denies what the finals said, that the knee is within [`DELTA`] of the peak.
fn falls_behind(fresh: &Samples, knee: Point, peak: Point) -> bool {
    let rates = |point| fresh.get(point).map(|tally| tally.rates.as_slice()).unwrap_or_default();
    let comparison = welch(rates(&peak), rates(&knee));
    comparison.is_some_and(|it| it.ci95[1] < 1.0 - DELTA)
}

/// Knee and peak with their windows. Where the knee does as well as the peak, it is the peak.
fn pair(fresh: &Samples, knee: Point, peak: Point) -> (Choice, Choice) {
    let get = |point: Point| fresh.get(&point).cloned().unwrap_or_default();
    let peak = if get(knee).mean() >= get(peak).mean() { knee } else { peak };
    let choice = |point| Choice { point, trials: get(point).trials, confirmed: true };
    (choice(knee), choice(peak))
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

fn drifted(change: f64) -> String {
    format!(
        "the target changed by {:+.1} % during the search, so points can't be compared; \
         is something else using the machine?",
        change * 100.0
    )
}
