//! A stepwise ramp: one load after the other, until one is too much.

use std::time::Duration;

use super::answer::{Answer, Ceiling, Choice, Verdict};
use super::{COLLAPSE, End, Probe, Purpose, Search, Step, Trial, missed};
use crate::space::Point;
use crate::stats::real_len;

/// The cause of a step at which the offered rate was not reached.
pub(crate) const NOT_REACHED: &str = "offered_rate_not_reached";
/// What is left of throughput after a collapse, at the most.
const BROKEN: f64 = 0.8;

/// A load: a point, with the requests per second of an open loop.
pub(crate) type Load = (Point, Option<f64>);

/// Loads in ascending order, each held for some windows.
#[derive(Debug, Clone)]
pub(crate) struct Ramp {
    steps: Vec<Load>,
    per_step: usize,
    window: Duration,
}

impl Ramp {
    /// Steps of this length.
    pub(crate) fn new(steps: Vec<Load>, length: Duration) -> Self {
        // At least four windows, so that a step has an interval, and a late collapse shows.
        let window = (length * 4 / 5 / 4).clamp(Duration::from_millis(250), Duration::from_secs(10));
        let windows = whole_windows(length, window).max(4);
        Self { steps, per_step: windows, window }
    }

    /// The windows of each finished step.
    fn finished<'h>(&self, history: &'h [Trial]) -> Vec<&'h [Trial]> {
        history.chunks_exact(self.per_step).collect()
    }

    /// What a step fails by.
    fn fault(steps: &[&[Trial]], step: &[Trial]) -> Option<(String, u64)> {
        let errors = step.iter().map(|trial| trial.errors).sum();
        if let Some(cause) = step.iter().find_map(|trial| trial.cause.clone()) {
            return Some((cause, errors));
        }
        if let Some(late) = step.iter().find_map(|trial| missed(&trial.late)) {
            return Some((late.objective.clone(), 0));
        }
        let best = steps.iter().map(|step| mean(step)).fold(0.0, f64::max);
        let (early, late) = step.split_at(step.len() / 2);
        if mean(step) < best * BROKEN || mean(late) < mean(early) * BROKEN {
            return Some((COLLAPSE.into(), 0));
        }
        let reached = step.iter().filter(|trial| trial.reaches_offer()).count() * 2 >= step.len();
        (!reached).then(|| (NOT_REACHED.into(), 0))
    }

    fn answer(&self, history: &[Trial], end: Option<End>) -> Answer {
        let steps = self.finished(history);
        let fault = steps.iter().enumerate().find_map(|(place, step)| {
            let before = steps.get(..place).unwrap_or_default();
            Some((place, Self::fault(before, step)?))
        });
        let good = fault.as_ref().map_or(steps.len(), |it| it.0);
        let choice = good.checked_sub(1).and_then(|last| {
            let trials = (last * self.per_step..(last + 1) * self.per_step).collect();
            Some(Choice { point: self.steps.get(last)?.0, trials, confirmed: true })
        });
        let ceiling = fault.as_ref().and_then(|(place, (cause, errors))| {
            Some(Ceiling { point: self.steps.get(*place)?.0, cause: cause.clone(), errors: *errors })
        });
        let (verdict, stop_reason) = self.verdict(good, fault.as_ref().map(|it| it.1.0.as_str()), end);
        let found = verdict == Verdict::KneeFound;
        Answer {
            verdict,
            stop_reason,
            knee: choice.clone().filter(|_| found),
            peak: choice,
            ceiling,
            cheaper: Vec::new(),
        }
    }

    fn verdict(&self, good: usize, cause: Option<&str>, end: Option<End>) -> (Verdict, String) {
        let step = |place: usize| {
            self.steps.get(place).map_or_else(String::new, |(point, rate)| match rate {
                Some(rate) => format!("{rate} requests/s"),
                None => format!("{} threads", point.threads),
            })
        };
        match (end, cause) {
            (Some(End::Interrupted), _) => (Verdict::Interrupted, format!("interrupted after {good} good steps")),
            (_, Some(cause)) if good == 0 => {
                (Verdict::NoFeasiblePoint, format!("the first step ({}) fails: {cause}", step(0)))
            }
            (_, Some(cause)) => {
                (Verdict::KneeFound, format!("{} hold, {} are too much: {cause}", step(good - 1), step(good)))
            }
            (Some(End::Budget), None) => {
                (Verdict::BudgetExhausted, format!("the budget ended after {good} good steps; raise --budget"))
            }
            (None, None) => (Verdict::NoPeakInRange, "every step held; offer more to find the limit".into()),
        }
    }
}

impl Search for Ramp {
    fn most(&self) -> u32 {
        u32::try_from(self.steps.len() * self.per_step).unwrap_or(u32::MAX)
    }

    fn next(&self, history: &[Trial]) -> Step {
        let steps = self.finished(history);
        let failed = steps.split_last().is_some_and(|(last, before)| Self::fault(before, last).is_some());
        match self.steps.get(history.len() / self.per_step).filter(|_| !failed) {
            Some((point, rate)) => {
                Step::Measure(Probe { point: *point, purpose: Purpose::Confirm, window: self.window, rate: *rate })
            }
            None => Step::Done(Box::new(self.answer(history, None))),
        }
    }

    fn conclude(&self, history: &[Trial], end: End) -> Answer {
        self.answer(history, Some(end))
    }
}

/// What went wrong while a point was held: an error, a missed objective, or a later half that gives much less than the first.
pub(crate) fn late_collapse(held: &[Trial]) -> Option<String> {
    let (early, late) = held.split_at(held.len() / 2);
    if let Some(cause) = held.iter().find_map(|trial| trial.cause.as_ref()) {
        return Some(format!("the chosen point failed with {cause} while it was held"));
    }
    if let Some(late) = held.iter().find_map(|trial| missed(&trial.late)) {
        return Some(format!("the chosen point missed {} while it was held", late.objective));
    }
    let left = mean(late) / mean(early);
    (left < BROKEN)
        .then(|| format!("late collapse: {:.0} % of the throughput was left while the point was held", left * 100.0))
}

fn whole_windows(length: Duration, window: Duration) -> usize {
    let windows = length.as_secs_f64() * 4.0 / 5.0 / window.as_secs_f64();
    usize::try_from(crate::stats::whole(windows)).unwrap_or(usize::MAX)
}

fn mean(trials: &[Trial]) -> f64 {
    trials.iter().map(|trial| trial.rate).sum::<f64>() / real_len(trials.len().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Case, sweep};
    use crate::space::{Space, Span};
    use crate::target::sim::Server;

    fn ramp(parameters: &str, rates: &[f64], threads: u32) -> Answer {
        let one = Span::fixed(1);
        let space = Space { threads: Span::fixed(threads), io_threads: one, pool: one, batch: one, cores: 4 };
        let case = Case::knee(Server::parse(&format!("sim://usl?{parameters}"), 1).unwrap(), space);
        let steps = rates.iter().map(|rate| (space.lowest(), Some(*rate))).collect();
        sweep(&case, &case.server, &Ramp::new(steps, Duration::from_secs(20))).unwrap().0
    }

    #[test]
    fn the_last_rate_that_is_reached_is_the_answer() {
        let answer = ramp("cv=0.01", &[2000.0, 6000.0, 9000.0, 12_000.0, 20_000.0], 44);
        assert_eq!(answer.verdict, Verdict::KneeFound);
        assert_eq!(answer.stop_reason, "9000 requests/s hold, 12000 requests/s are too much: offered_rate_not_reached");
        assert_eq!(answer.knee.unwrap().trials, (8..12).collect::<Vec<_>>());
        assert_eq!(ramp("cv=0.01", &[2000.0, 6000.0], 44).verdict, Verdict::NoPeakInRange);
        assert_eq!(ramp("cv=0.01", &[20_000.0], 44).verdict, Verdict::NoFeasiblePoint);
    }

    #[test]
    fn a_collapse_in_closed_loop_is_named_and_ends_the_ramp() {
        let one = Span::fixed(1);
        let space = Space { threads: "1..100".parse().unwrap(), io_threads: one, pool: one, batch: one, cores: 4 };
        let case = Case::knee(Server::parse("sim://usl?collapse_above=50&cv=0.01", 1).unwrap(), space);
        let point = |threads| Point { threads, ..space.lowest() };
        let steps = [20, 40, 60, 80].map(|threads| (point(threads), None)).to_vec();
        let (answer, history) = sweep(&case, &case.server, &Ramp::new(steps, Duration::from_secs(20))).unwrap();
        assert_eq!((answer.verdict, answer.knee.unwrap().point.threads), (Verdict::KneeFound, 40));
        let ceiling = answer.ceiling.unwrap();
        assert_eq!((ceiling.point.threads, ceiling.cause.as_str(), history.len()), (60, COLLAPSE, 12));
    }

    #[test]
    fn what_goes_wrong_while_a_point_is_held_is_said() {
        let probe = Probe {
            point: Point { threads: 1, io_threads: 1, pool: 1, batch: 1 },
            purpose: Purpose::Hold,
            window: Duration::from_secs(1),
            rate: None,
        };
        let of = |rate, errors| Trial {
            rate,
            errors,
            cause: (errors > 0).then(|| "overloaded".into()),
            ..Trial::of(probe, &crate::target::Measurement::default(), &[], Duration::ZERO)
        };
        assert_eq!(late_collapse(&[of(100.0, 0), of(99.0, 0), of(101.0, 0), of(97.0, 0)]), None);
        let fallen = late_collapse(&[of(100.0, 0), of(99.0, 0), of(40.0, 0), of(41.0, 0)]).unwrap();
        assert!(fallen.contains("41 %"), "{fallen}");
        assert!(late_collapse(&[of(100.0, 0), of(99.0, 3)]).unwrap().contains("overloaded"));
        assert_eq!(late_collapse(&[]), None);
    }

    #[test]
    fn a_late_collapse_shows_within_a_step() {
        let answer = ramp("drift=0.9&drift_at=15&cv=0.01", &[1000.0, 1000.0], 1);
        assert_eq!(answer.ceiling.unwrap().cause, COLLAPSE);
    }
}
