//! `journal.jsonl`: a line for every window, on the disk before the next one begins.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::figures::{latency, percentile};
use super::{Window, hdr};
use crate::failure::{Failure, Result};
use crate::machine::{CpuShares, ServerUse};
use crate::objective::Objective;
use crate::search::{Probe, Trial};
use crate::stats::Estimate;
use crate::target::{Measurement, Schedule};
use crate::workload::operation_name;

/// Its name in the folder.
pub(crate) const FILE: &str = "journal.jsonl";

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// The number of the window, from 1.
    pub(crate) window_number: usize,
    /// Seconds from the start of the command to the end of the window.
    pub(crate) at_s: f64,
    #[serde(flatten)]
    pub(crate) probe: Probe,
    pub(crate) warm_up_s: f64,
    pub(crate) measured_s: f64,
    pub(crate) rows: u64,
    pub(crate) requests: u64,
    pub(crate) missing: u64,
    pub(crate) rows_per_s: f64,
    /// The standard error of that, from within the window, and the degrees of freedom behind it.
    #[serde(default)]
    pub(crate) std_err: f64,
    #[serde(default)]
    pub(crate) freedom: f64,
    pub(crate) ci95: Option<[f64; 2]>,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// Percentiles by operation; in open loop from the intended start.
    pub(crate) operations: BTreeMap<String, Percentiles>,
    /// In open loop, percentiles from when the request was sent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) service: BTreeMap<String, Percentiles>,
    /// In open loop, what was to be started and what wasn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schedule: Option<Schedule>,
    /// Requests in flight on average, by Little's law.
    #[serde(default)]
    pub(crate) in_flight: Option<f64>,
    /// Failures by class.
    pub(crate) errors: BTreeMap<String, u64>,
    /// One of the failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) example: Option<String>,
    pub(crate) cpu: Option<CpuShares>,
    /// What the server's process used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<ServerUse>,
    /// Cores spent on making requests.
    pub(crate) generator_cores: f64,
    /// Whether it was cut short.
    pub(crate) partial: bool,
}

/// Latencies of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Percentiles {
    pub(crate) count: u64,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) max_ms: Option<f64>,
    /// The whole histogram, in nanoseconds: V2 of `HdrHistogram`, deflated, in base 64.
    #[serde(default)]
    pub(crate) hdr: String,
}

impl Percentiles {
    fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| percentile(Some(histogram), quantile);
        let [p50_ms, p95_ms, p99_ms, max_ms] = [0.50, 0.95, 0.99, 1.0].map(at);
        Self { count: histogram.len(), p50_ms, p95_ms, p99_ms, max_ms, hdr: hdr::encode(histogram) }
    }
}

impl Line {
    /// The line of the window of this number.
    pub(crate) fn of(window_number: usize, window: &Window) -> Self {
        let Window { trial, measurement } = window;
        let all = latency(&[window]);
        Self {
            window_number,
            at_s: trial.spent.as_secs_f64(),
            probe: trial.probe,
            warm_up_s: measurement.warm_up.as_secs_f64(),
            measured_s: measurement.elapsed.as_secs_f64(),
            rows: measurement.rows,
            requests: measurement.requests,
            missing: measurement.missing,
            rows_per_s: trial.rate,
            std_err: trial.std_err,
            freedom: measurement.rate.map_or(0.0, |rate| rate.freedom),
            ci95: measurement.rate.filter(|rate| rate.std_err > 0.0).map(|rate| rate.interval()),
            p50_ms: percentile(all.as_ref(), 0.50),
            p95_ms: percentile(all.as_ref(), 0.95),
            p99_ms: percentile(all.as_ref(), 0.99),
            operations: by_name(&measurement.latencies),
            service: by_name(&measurement.service),
            schedule: measurement.schedule,
            in_flight: measurement.in_flight,
            errors: measurement.errors.clone(),
            example: measurement.example.clone(),
            cpu: measurement.cpu,
            server: measurement.server,
            generator_cores: measurement.generator,
            partial: measurement.partial,
        }
    }

    /// The window of a line.
    pub(crate) fn window(self, objectives: &[Objective]) -> Window {
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let measurement = Measurement {
            rows: self.rows,
            requests: self.requests,
            missing: self.missing,
            errors: self.errors,
            example: self.example,
            rate: Some(Estimate { mean: self.rows_per_s, std_err: self.std_err, freedom: self.freedom.max(1.0) }),
            latencies: histograms(&self.operations),
            service: histograms(&self.service),
            schedule: self.schedule,
            in_flight: self.in_flight,
            elapsed: seconds(self.measured_s),
            warm_up: seconds(self.warm_up_s),
            cpu: self.cpu,
            server: self.server,
            generator: self.generator_cores,
            partial: self.partial,
        };
        Window { trial: Trial::of(self.probe, &measurement, objectives, seconds(self.at_s)), measurement }
    }
}

fn by_name(latencies: &BTreeMap<&'static str, Histogram<u64>>) -> BTreeMap<String, Percentiles> {
    latencies.iter().map(|(name, histogram)| ((*name).to_owned(), Percentiles::of(histogram))).collect()
}

fn histograms(percentiles: &BTreeMap<String, Percentiles>) -> BTreeMap<&'static str, Histogram<u64>> {
    let read = percentiles.iter().filter_map(|(name, it)| Some((operation_name(name)?, hdr::decode(&it.hdr)?)));
    read.collect()
}

/// Reads the journal of a folder. A last line that isn't whole was cut off while it was written, and is passed over.
pub(crate) fn read(folder: &Path) -> Result<Vec<Line>> {
    let path = folder.join(FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Failure::input(format!("can't read {}: {error}; give the folder of a run or sweep", path.display()))
    })?;
    let whole = text.rfind('\n').map_or("", |end| text.get(..end).unwrap_or_default());
    let parse = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| {
            Failure::input(format!("{}:{}: not a line of a journal: {error}", path.display(), number + 1))
        })
    };
    whole.lines().enumerate().map(parse).collect()
}

/// The journal under way.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    lines: usize,
}

impl Journal {
    /// Starts a journal; there must be none yet.
    pub(crate) fn create(path: &Path) -> std::io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: File::create_new(path)?, lines: 0 })
    }

    /// Goes on with a journal behind these windows; what else it holds, half a line for instance, is left out.
    pub(crate) fn resume(path: &Path, windows: &[Window]) -> std::io::Result<Self> {
        let draft = path.with_extension("draft");
        let mut journal = Self { path: draft.clone(), file: File::create(&draft)?, lines: 0 };
        for window in windows {
            journal.add(window).map_err(|failure| std::io::Error::other(failure.to_string()))?;
        }
        std::fs::rename(&draft, path)?;
        Ok(Self { path: path.to_owned(), ..journal })
    }

    /// Adds a window, and waits until the disk has it.
    pub(crate) fn add(&mut self, window: &Window) -> Result<()> {
        self.lines += 1;
        let fail = |error: std::io::Error| Failure::write(&self.path, error);
        let mut line =
            serde_json::to_vec(&Line::of(self.lines, window)).map_err(|error| Failure::write(&self.path, error))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(fail)?;
        self.file.sync_data().map_err(fail)
    }
}
