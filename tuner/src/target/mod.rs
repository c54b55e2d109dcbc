//! What is measured: a live database behind a URI.

mod live;
mod session;
mod uri;

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

pub(crate) use self::live::LiveTarget;
pub(crate) use self::session::Session;
pub(crate) use self::uri::TargetUri;
use crate::load::Live;
use crate::machine::CpuShares;
use crate::search::Probe;
use crate::stats::Estimate;

/// Something that can be measured at a point.
pub(crate) trait Target {
    /// Measures one window, within the limit. What goes wrong is part of the measurement: it makes the point infeasible, and
    /// never ends the search.
    fn measure(&mut self, probe: &Probe, limit: Duration, watch: &dyn Fn(Live)) -> Measurement;
}

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
    /// Nanoseconds of successful requests, by operation.
    pub(crate) latencies: BTreeMap<&'static str, Histogram<u64>>,
    /// The measured part.
    pub(crate) elapsed: Duration,
    /// What was left out before it.
    pub(crate) warm_up: Duration,
    /// How busy the machine was.
    pub(crate) cpu: Option<CpuShares>,
    /// Cores spent on making requests.
    pub(crate) generator: f64,
    /// Whether it ended early, by Ctrl-C or because the time was over.
    pub(crate) partial: bool,
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
