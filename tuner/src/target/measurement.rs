//! What came of one window.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::machine::{CpuShares, ServerUse};
use crate::stats::Estimate;

/// What came of one window.
#[derive(Debug, Clone, Default)]
pub(crate) struct Measurement {
    /// Rows that succeeded.
    pub(crate) rows: u64,
    /// Requests that were answered.
    pub(crate) requests: u64,
    /// Rows asked for by key that weren't there.
    pub(crate) missing: u64,
    /// Failures by class.
    pub(crate) errors: BTreeMap<String, u64>,
    /// One of the failures, for people.
    pub(crate) example: Option<String>,
    /// Rows per second; `None` where nothing was measured.
    pub(crate) rate: Option<Estimate>,
    /// Nanoseconds of successful requests, by operation. In open loop they count from the intended start.
    pub(crate) latencies: BTreeMap<&'static str, Histogram<u64>>,
    /// The same from when the request was sent, in open loop; empty in closed loop.
    pub(crate) service: BTreeMap<&'static str, Histogram<u64>>,
    /// In open loop, what was to be started.
    pub(crate) schedule: Option<Schedule>,
    /// Requests in flight on average, by Little's law.
    pub(crate) in_flight: Option<f64>,
    /// The measured part.
    pub(crate) elapsed: Duration,
    /// What was left out before it.
    pub(crate) warm_up: Duration,
    /// How busy the machine was.
    pub(crate) cpu: Option<CpuShares>,
    /// What the server's process used, where it can be seen.
    pub(crate) server: Option<ServerUse>,
    /// Cores spent on making requests.
    pub(crate) generator: f64,
    /// Whether it ended early, by Ctrl-C or because the time was over.
    pub(crate) partial: bool,
}

/// The requests of a window in open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Schedule {
    /// Intended starts.
    pub(crate) intended: u64,
    /// Those of them that had not started when the window ended, since all clients were busy.
    pub(crate) dropped: u64,
}

impl Measurement {
    /// A window in which nothing worked.
    pub(crate) fn failed(class: &str, example: String) -> Self {
        Self { errors: BTreeMap::from([(class.to_owned(), 1)]), example: Some(example), ..Self::default() }
    }

    /// All failures.
    pub(crate) fn failures(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The commonest class of failure.
    pub(crate) fn cause(&self) -> Option<&str> {
        self.errors.iter().max_by_key(|(_, count)| **count).map(|(class, _)| class.as_str())
    }
}
