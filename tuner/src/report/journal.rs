//! `journal.jsonl`: a line for every window, on the disk before the next one begins.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Window;
use super::figures::{latency, percentile};
use crate::failure::{Failure, Result};
use crate::machine::CpuShares;
use crate::search::Probe;

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
    pub(crate) ci95: Option<[f64; 2]>,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// Percentiles by operation.
    pub(crate) operations: BTreeMap<String, Percentiles>,
    /// Failures by class.
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) cpu: Option<CpuShares>,
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
}

impl Line {
    /// The line of the window of this number.
    pub(crate) fn of(window_number: usize, window: &Window) -> Self {
        let Window { trial, measurement } = window;
        let all = latency(&[window]);
        let operations = measurement.latencies.iter().map(|(name, histogram)| {
            let count = histogram.len();
            let percentiles = Percentiles {
                count,
                p50_ms: percentile(Some(histogram), 0.50),
                p95_ms: percentile(Some(histogram), 0.95),
                p99_ms: percentile(Some(histogram), 0.99),
                max_ms: percentile(Some(histogram), 1.0),
            };
            ((*name).to_owned(), percentiles)
        });
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
            ci95: measurement.rate.filter(|rate| rate.std_err > 0.0).map(|rate| rate.interval()),
            p50_ms: percentile(all.as_ref(), 0.50),
            p95_ms: percentile(all.as_ref(), 0.95),
            p99_ms: percentile(all.as_ref(), 0.99),
            operations: operations.collect(),
            errors: measurement.errors.clone(),
            cpu: measurement.cpu,
            generator_cores: measurement.generator,
            partial: measurement.partial,
        }
    }
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
