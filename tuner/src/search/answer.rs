//! What a search found.

use serde::{Deserialize, Serialize};

use crate::failure::Exit;
use crate::space::Point;

/// How the search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    KneeFound,
    NoPeakInRange,
    Unstable,
    NoFeasiblePoint,
    BudgetExhausted,
    Interrupted,
}

impl Verdict {
    /// The exit code that says it.
    pub(crate) fn exit(self) -> Exit {
        match self {
            Self::KneeFound | Self::NoPeakInRange => Exit::Done,
            Self::Unstable => Exit::Unstable,
            Self::NoFeasiblePoint => Exit::NoFeasiblePoint,
            Self::BudgetExhausted => Exit::BudgetExhausted,
            Self::Interrupted => Exit::Interrupted,
        }
    }
}

/// The end of a search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) verdict: Verdict,
    /// Why it stopped, as a sentence.
    pub(crate) stop_reason: String,
    /// The cheapest point within [`DELTA`](super::DELTA) of the peak.
    pub(crate) knee: Option<Choice>,
    /// The point with the most rows per second and no error.
    pub(crate) peak: Option<Choice>,
    /// The cheapest point that failed, and how.
    pub(crate) ceiling: Option<Ceiling>,
    /// Cheaper points than the knee, and what they cost; the least loss first.
    pub(crate) cheaper: Vec<Alternative>,
}

/// A chosen point and the windows that speak for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) point: Point,
    /// Indexes into the history.
    pub(crate) trials: Vec<usize>,
    /// Whether these windows are fresh, measured after the choice was made.
    pub(crate) confirmed: bool,
}

/// A point that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ceiling {
    #[serde(flatten)]
    pub(crate) point: Point,
    /// The commonest class of failure.
    pub(crate) cause: String,
    /// How many requests failed there.
    pub(crate) errors: u64,
}

/// A point that costs less and gives less.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Alternative {
    #[serde(flatten)]
    pub(crate) point: Point,
    /// The share of the knee's rows per second that it lacks.
    pub(crate) loss: f64,
}
