//! The search of a single run: one point, measured again and again.

use std::time::Duration;

use super::answer::{Answer, Choice, Verdict};
use super::climb::so_far;
use super::replay::{Pause, Replay, Time};
use super::{End, Purpose, Search, Step, Trial};
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
    pub(crate) fn new(point: Point, budget: Duration) -> Self {
        let window = (budget * 3 / 4 / (WINDOWS + 1)).max(Duration::from_millis(100));
        Self { point, time: Time { budget, window } }
    }

    fn decide(&self, run: &mut Replay<'_>) -> Result<Answer, Pause> {
        run.measure(self.point, Purpose::WarmUp)?;
        let first = run.position();
        for _ in 0..WINDOWS {
            match run.measure(self.point, Purpose::Confirm) {
                Ok(_) => {}
                // Fewer windows are as good, if there is one.
                Err(Pause::Hurry) if run.position() > first => break,
                Err(pause) => return Err(pause),
            }
        }
        let ceiling = run.ceiling();
        let works = run.best().is_some();
        let choice = Choice { point: self.point, trials: (first..run.position()).collect(), confirmed: true };
        Ok(Answer {
            verdict: if works { Verdict::NoPeakInRange } else { Verdict::NoFeasiblePoint },
            stop_reason: match (&ceiling, works) {
                (_, true) => "one point was asked for, and it was measured".into(),
                (Some(ceiling), false) => {
                    format!("{} failed with {} errors of class {}", self.point, ceiling.errors, ceiling.cause)
                }
                (None, false) => format!("{} did nothing at all", self.point),
            },
            knee: None,
            peak: works.then_some(choice),
            ceiling,
            cheaper: Vec::new(),
        })
    }
}

impl Search for Fixed {
    fn next(&self, history: &[Trial]) -> Step {
        match self.decide(&mut Replay::new(history, self.time)) {
            Ok(answer) => Step::Done(Box::new(answer)),
            Err(Pause::Measure(probe)) => Step::Measure(probe),
            Err(Pause::Hurry) => Step::Done(Box::new(self.conclude(history, End::Budget))),
        }
    }

    fn conclude(&self, history: &[Trial], end: End) -> Answer {
        let mut run = Replay::new(history, self.time);
        // Only what the replay has gathered counts.
        let _ = self.decide(&mut run);
        Answer { knee: None, ..so_far(&run, history.len(), self.time.budget, end) }
    }
}
