//! The figures of one point, over all windows that speak for it.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::Window;
use crate::machine::{CpuShares, ServerUse};
use crate::space::Point;
use crate::stats::{Estimate, apdex, bootstrap, real};

/// A point and its figures, as in `result.json`. Absent figures are null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    #[serde(flatten)]
    pub(crate) point: Point,
    pub(crate) rows_per_s: f64,
    /// The 95 % confidence interval.
    pub(crate) ci95: [f64; 2],
    pub(crate) p50_ms: Option<f64>,
    #[serde(default)]
    pub(crate) p90_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// The 95 % confidence interval of the 99th percentile, by bootstrap over windows.
    #[serde(default)]
    pub(crate) p99_ci95_ms: Option<[f64; 2]>,
    /// In open loop, the 99th percentile from when the request was sent.
    #[serde(default)]
    pub(crate) service_p99_ms: Option<f64>,
    /// APDEX for the T that was given.
    #[serde(default)]
    pub(crate) apdex: Option<f64>,
    /// Requests in flight on average.
    #[serde(default)]
    pub(crate) in_flight: Option<f64>,
    pub(crate) errors: u64,
    /// What the server's process used.
    #[serde(default)]
    pub(crate) server: Option<ServerUse>,
    /// Rows per second for each percent of a core that the server's process used.
    #[serde(default)]
    pub(crate) rows_per_cpu_percent: Option<f64>,
}

impl Figures {
    /// The figures of these windows; `None` without any.
    pub(crate) fn of(point: Point, windows: &[&Window], apdex: Option<Duration>) -> Option<Self> {
        let estimate = estimate(windows)?;
        let latency = latency(windows);
        let [p50_ms, p90_ms, p95_ms, p99_ms] =
            [0.50, 0.90, 0.95, 0.99].map(|quantile| percentile(latency.as_ref(), quantile));
        let in_flight: Vec<f64> = windows.iter().filter_map(|window| window.measurement.in_flight).collect();
        let server = server(windows);
        let errors = windows.iter().map(|window| window.measurement.failures()).sum();
        Some(Self {
            point,
            rows_per_s: estimate.mean,
            ci95: estimate.interval(),
            p50_ms,
            p90_ms,
            p95_ms,
            p99_ms,
            p99_ci95_ms: interval(windows, 0.99),
            service_p99_ms: percentile(service(windows).as_ref(), 0.99),
            apdex: apdex.and_then(|t| apdex_of(latency.as_ref()?, t, errors)),
            in_flight: (!in_flight.is_empty()).then(|| super::model::mean(&in_flight)),
            errors,
            server,
            rows_per_cpu_percent: server
                .filter(|server| server.cores > 0.0)
                .map(|server| estimate.mean / (server.cores * 100.0)),
        })
    }
}

/// What the server's process used, over all windows.
pub(super) fn server(windows: &[&Window]) -> Option<ServerUse> {
    let uses: Vec<ServerUse> = windows.iter().filter_map(|window| window.measurement.server).collect();
    let mean = |part: fn(&ServerUse) -> f64| super::model::mean(&uses.iter().map(part).collect::<Vec<_>>());
    let memory = uses.iter().map(|it| it.memory).max()?;
    let (disk_read, disk_written) = (mean(|it| it.disk_read), mean(|it| it.disk_written));
    Some(ServerUse { cores: mean(|it| it.cores), memory, disk_read, disk_written })
}

/// The confidence interval of a percentile: whole windows are drawn again and again.
fn interval(windows: &[&Window], quantile: f64) -> Option<[f64; 2]> {
    bootstrap(windows.len(), 1, |places| {
        let drawn: Vec<&Window> = places.iter().filter_map(|place| windows.get(*place).copied()).collect();
        percentile(latency(&drawn).as_ref(), quantile)
    })
}

fn apdex_of(latency: &Histogram<u64>, t: Duration, errors: u64) -> Option<f64> {
    let nanos = |times: u32| u64::try_from((t * times).as_nanos()).unwrap_or(u64::MAX);
    let satisfied = latency.count_between(0, nanos(1));
    let tolerable = latency.count_between(0, nanos(4)).saturating_sub(satisfied);
    apdex(satisfied, tolerable, latency.len() + errors)
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
    sum(windows.iter().flat_map(|window| window.measurement.latencies.values()))
}

/// The same from when the requests were sent, in open loop.
fn service(windows: &[&Window]) -> Option<Histogram<u64>> {
    sum(windows.iter().flat_map(|window| window.measurement.service.values()))
}

fn sum<'h>(mut all: impl Iterator<Item = &'h Histogram<u64>>) -> Option<Histogram<u64>> {
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
