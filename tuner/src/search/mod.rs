//! Which point to measure next, and when to stop: pure functions of what was measured.
//!
//! A search never touches a target and holds no state: it is asked again with a longer history. So it can be judged on a
//! simulated server in no time, and an interrupted one leaves everything in its history.

mod answer;
mod climb;
mod curve;
mod drift;
mod finals;
mod fixed;
mod late;
mod line;
mod ramp;
mod replay;
mod step;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use self::answer::{Alternative, Answer, Ceiling, Choice, Verdict};
pub(crate) use self::climb::{BUDGET, Climb};
pub(crate) use self::fixed::Fixed;
pub(crate) use self::ramp::{Load, NOT_REACHED, Ramp, late_collapse};
use crate::objective::{Late, Objective};
use crate::space::Point;
use crate::stats::{Met, judge, real};
use crate::target::Measurement;

/// The share of the peak that the knee may lack.
pub(crate) const DELTA: f64 = 0.02;

/// The cause of a ceiling where throughput breaks down without an error.
pub(crate) const COLLAPSE: &str = "collapse";
/// The share of an offered rate that counts as reached.
const REACHED: f64 = 0.99;

/// A search strategy.
pub(crate) trait Search {
    /// The next window to measure, or the answer.
    fn next(&self, history: &[Trial]) -> Step;

    /// How many windows it measures at the most.
    fn most(&self) -> u32;

    /// The best answer so far, when something from outside ends the search.
    fn conclude(&self, history: &[Trial], end: End) -> Answer;
}

/// What a search wants.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// To see this measured.
    Measure(Probe),
    /// Nothing more.
    Done(Box<Answer>),
}

/// What ends a search from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The time is over.
    Budget,
    /// Ctrl-C.
    Interrupted,
}

/// One window to measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Probe {
    /// Where.
    #[serde(flatten)]
    pub(crate) point: Point,
    /// Why.
    pub(crate) purpose: Purpose,
    /// For how long, warm-up not counted.
    #[serde(with = "seconds")]
    pub(crate) window: Duration,
    /// Requests per second in open loop; in closed loop every client asks again at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<f64>,
}

impl Probe {
    /// Whether it asks for the same, though perhaps for another length of time.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.point == other.point && self.purpose == other.purpose && self.rate == other.rate
    }
}

/// Why a window is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purpose {
    /// To warm the target up; the result decides nothing.
    WarmUp,
    /// The cheapest point: whether anything works, and the yardstick against drift.
    Baseline,
    /// To find the region of the best point.
    Explore,
    /// To compare the best points in turns.
    Finalist,
    /// The baseline again.
    Sentinel,
    /// To see whether throughput still rises at the end of a range.
    Edge,
    /// To report a fresh figure.
    Confirm,
    /// To see whether that lasts.
    Hold,
    /// To see what other settings give at the same time.
    Beside,
}

impl Purpose {
    /// Whether its windows count as they come: a choice is never made by leaving out what speaks against it.
    pub(crate) fn is_fresh(self) -> bool {
        matches!(self, Self::WarmUp | Self::Confirm | Self::Hold | Self::Beside)
    }

    /// Its name in the journal.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warm_up",
            Self::Baseline => "baseline",
            Self::Explore => "explore",
            Self::Finalist => "finalist",
            Self::Sentinel => "sentinel",
            Self::Edge => "edge",
            Self::Confirm => "confirm",
            Self::Hold => "hold",
            Self::Beside => "beside",
        }
    }
}

/// A measured window, as the search sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trial {
    pub(crate) probe: Probe,
    /// Rows per second that succeeded.
    pub(crate) rate: f64,
    /// The standard error of that, from within the window.
    pub(crate) std_err: f64,
    /// Requests that failed.
    pub(crate) errors: u64,
    /// The commonest class of failure.
    pub(crate) cause: Option<String>,
    /// Requests slower than the latency objectives allow.
    pub(crate) late: Vec<Late>,
    /// The share of the offered requests that were answered, in open loop.
    pub(crate) answered: Option<f64>,
    /// From the start of the command to the end of this window.
    pub(crate) spent: Duration,
}

impl Trial {
    /// A window as a search sees it.
    pub(crate) fn of(probe: Probe, measurement: &Measurement, objectives: &[Objective], spent: Duration) -> Self {
        Self {
            probe,
            rate: measurement.rate.map_or(0.0, |rate| rate.mean),
            std_err: measurement.rate.map_or(0.0, |rate| rate.std_err),
            errors: measurement.failures(),
            cause: measurement.cause().map(str::to_owned),
            answered: measurement.schedule.map(|it| real(measurement.requests) / real(it.intended.max(1))),
            late: objectives.iter().map(|objective| objective.late(measurement)).collect(),
            spent,
        }
    }

    /// The latency that misses its objective most, over its limit, as a logarithm: above 0 it misses.
    pub(crate) fn over(&self) -> Option<f64> {
        let ratios = self.late.iter().filter_map(|late| late.ratio);
        ratios.filter(|ratio| *ratio > 0.0).map(f64::ln).max_by(f64::total_cmp)
    }

    /// Whether the offered rate was reached; in closed loop there is none.
    pub(crate) fn reaches_offer(&self) -> bool {
        self.answered.is_none_or(|share| share >= REACHED)
    }

    /// Whether the point worked without an error, and no latency objective was clearly missed.
    pub(crate) fn is_feasible(&self) -> bool {
        self.errors == 0 && self.rate > 0.0 && missed(&self.late).is_none()
    }
}

/// The first objective that was clearly missed.
fn missed(late: &[Late]) -> Option<&Late> {
    late.iter().find(|late| judge(late.slow, late.all, late.allowed) == Met::No)
}

mod seconds {
    //! Durations as seconds in JSON.

    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
