//! The figures of one point, over all windows that speak for it.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::Window;
use crate::machine::CpuShares;
use crate::space::Point;
use crate::stats::{Estimate, real};

/// A point and its figures, as in `result.json`. Absent figures are null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    #[serde(flatten)]
    pub(crate) point: Point,
    pub(crate) rows_per_s: f64,
    /// The 95 % confidence interval.
    pub(crate) ci95: [f64; 2],
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) errors: u64,
}

impl Figures {
    /// The figures of these windows; `None` without any.
    pub(crate) fn of(point: Point, windows: &[&Window]) -> Option<Self> {
        let estimate = estimate(windows)?;
        let latency = latency(windows);
        Some(Self {
            point,
            rows_per_s: estimate.mean,
            ci95: estimate.interval(),
            p50_ms: percentile(latency.as_ref(), 0.50),
            p95_ms: percentile(latency.as_ref(), 0.95),
            p99_ms: percentile(latency.as_ref(), 0.99),
            errors: windows.iter().map(|window| window.measurement.failures()).sum(),
        })
    }
}

/// The rate over windows. Between three or more, their own differences are the error, which includes what no single window can
/// show; with fewer, the differences within them.
pub(super) fn estimate(windows: &[&Window]) -> Option<Estimate> {
    let rates: Vec<f64> = windows.iter().map(|window| window.trial.rate).collect();
    let between = Estimate::of_independent(&rates)?;
    if windows.len() >= 3 {
        return Some(between);
    }
    let within = windows.iter().filter_map(|window| window.measurement.rate);
    let widest = within.max_by(|a, b| a.half_width().total_cmp(&b.half_width()));
    Some(widest.map_or(between, |widest| Estimate { mean: between.mean, ..widest }))
}

/// Latencies of all operations and windows in one histogram.
pub(super) fn latency(windows: &[&Window]) -> Option<Histogram<u64>> {
    let mut all = windows.iter().flat_map(|window| window.measurement.latencies.values());
    let mut sum = all.next()?.clone();
    for histogram in all {
        // Histograms that grow take every value.
        let _ = sum.add(histogram);
    }
    Some(sum)
}

/// A percentile in milliseconds; `None` of nothing.
pub(super) fn percentile(histogram: Option<&Histogram<u64>>, quantile: f64) -> Option<f64> {
    let histogram = histogram.filter(|histogram| !histogram.is_empty())?;
    Some(real(histogram.value_at_quantile(quantile)) / 1e6)
}

/// The mean shares of processor time.
pub(super) fn cpu(windows: &[&Window]) -> Option<CpuShares> {
    let shares: Vec<CpuShares> = windows.iter().filter_map(|window| window.measurement.cpu).collect();
    CpuShares::mean(&shares)
}
