//! The search of a single run: one point, measured again and again.

use std::time::Duration;

use super::answer::{Answer, Ceiling, Choice, Verdict};
use super::climb::so_far;
use super::curve::Fits;
use super::replay::{Pause, Replay, Time};
use super::{End, Purpose, Search, Step, Trial, missed};
use crate::space::Point;

/// Windows of a run.
const WINDOWS: u32 = 8;

/// Measures one point in several windows, so that the interval knows how much they differ.
#[derive(Debug, Clone)]
pub(crate) struct Fixed {
    point: Point,
    time: Time,
}

impl Fixed {
    /// A run that takes about this time.
    pub(crate) fn new(point: Point, budget: Duration, rate: Option<f64>) -> Self {
        let window = (budget * 3 / 4 / (WINDOWS + 1)).max(Duration::from_millis(100));
        let time = Time { budget, window, warm_up: window, rate, windows: u32::MAX, planned: WINDOWS };
        Self { point, time }
    }

    fn measure(&self, run: &mut Replay<'_>) -> Result<(), Pause> {
        run.measure(self.point, Purpose::WarmUp)?;
        for _ in 0..WINDOWS {
            run.measure(self.point, Purpose::Confirm)?;
        }
        Ok(())
    }

    /// What the windows say; `None` without any.
    fn answer(&self, run: &Replay<'_>) -> Option<Answer> {
        let tally = run.tallies().get(&self.point)?;
        let late = || missed(&tally.late).map(|late| late.objective.clone());
        let ceiling = run.ceiling(None).or_else(|| Some(Ceiling { point: self.point, cause: late()?, errors: 0 }));
        let works = tally.meets_all();
        let stop_reason = match &ceiling {
            None if works => "one point was asked for, and it was measured".into(),
            None => format!("{} did nothing at all", self.point),
            Some(Ceiling { cause, errors: 0, .. }) => format!("{} misses {cause}", self.point),
            Some(ceiling) => format!("{} failed with {} errors of class {}", self.point, ceiling.errors, ceiling.cause),
        };
        Some(Answer {
            verdict: if works { Verdict::NoPeakInRange } else { Verdict::NoFeasiblePoint },
            stop_reason,
            knee: None,
            peak: works.then(|| Choice { point: self.point, trials: tally.trials.clone(), confirmed: true }),
            ceiling,
            cheaper: Vec::new(),
        })
    }
}

impl Search for Fixed {
    fn most(&self) -> u32 {
        WINDOWS + 1
    }

    fn next(&self, history: &[Trial]) -> Step {
        match self.measure(&mut Replay::new(history, self.time, &Fits::default())) {
            Err(Pause::Measure(probe)) => Step::Measure(probe),
            Ok(()) | Err(Pause::Hurry) => Step::Done(Box::new(self.conclude(history, End::Budget))),
        }
    }

    /// The budget of a run is its length, so its end is no failure.
    fn conclude(&self, history: &[Trial], end: End) -> Answer {
        let fits = Fits::default();
        let mut run = Replay::new(history, self.time, &fits);
        // Only what the replay has gathered counts.
        let _ = self.measure(&mut run);
        let measured = self.answer(&run).filter(|_| end == End::Budget);
        measured.unwrap_or_else(|| Answer { knee: None, ..so_far(&run, history.len(), end) })
    }
}
