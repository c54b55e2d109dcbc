//! Latency objectives, such as `get:p99<10ms`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::stats::{real, whole};
use crate::target::Measurement;

/// What may be asked for, as a hint.
const FORM: &str = "give OPERATION:pNN<TIME, such as get:p99<10ms, or p99.9<50ms for all operations";

/// A limit for a percentile of an operation's latency.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Objective {
    /// `put`, `get` or `query`; all of them where absent.
    operation: Option<&'static str>,
    /// The share of requests that must be within the limit.
    quantile: f64,
    limit: Duration,
}

/// How many requests of a window were slower than an objective's limit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Late {
    /// The objective, in words.
    pub(crate) objective: String,
    pub(crate) slow: u64,
    pub(crate) all: u64,
    /// The share that may be slow.
    pub(crate) allowed: f64,
    /// The percentile over its limit; `None` where nothing was measured.
    pub(crate) ratio: Option<f64>,
}

impl Objective {
    /// The operation that it is about.
    pub(crate) fn operation(&self) -> Option<&'static str> {
        self.operation
    }

    /// Counts the slow requests of a window.
    pub(crate) fn late(&self, measurement: &Measurement) -> Late {
        let limit = whole(self.limit.as_secs_f64() * 1e9);
        let of_operation = |name: &&str| self.operation.is_none_or(|operation| operation == *name);
        let histograms = measurement.latencies.iter().filter(|(name, _)| of_operation(name)).map(|it| it.1);
        let all = histograms.clone().map(Histogram::len).sum();
        let within: u64 = histograms.clone().map(|it| it.count_between(0, limit).min(it.len())).sum();
        let percentile = (all > 0).then(|| self.percentile(histograms)).flatten();
        Late {
            objective: self.to_string(),
            slow: all - within,
            all,
            allowed: 1.0 - self.quantile,
            ratio: percentile.map(|nanos| real(nanos) / real(limit.max(1))),
        }
    }

    /// The percentile of several operations together.
    fn percentile<'h>(&self, mut histograms: impl Iterator<Item = &'h Histogram<u64>>) -> Option<u64> {
        let mut together = histograms.next()?.clone();
        for histogram in histograms {
            together.add(histogram).ok()?;
        }
        Some(together.value_at_quantile(self.quantile))
    }
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (what, limit) = text.split_once('<').ok_or(FORM)?;
        let (operation, quantile) = match what.split_once(':') {
            Some((name, quantile)) => (Some(operation(name.trim())?), quantile),
            None => (None, what),
        };
        let percent = quantile.trim().strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
        let percent = percent.filter(|percent| *percent > 0.0 && *percent < 100.0);
        let percent = percent.ok_or_else(|| format!("{quantile:?} is no percentile; {FORM}"))?;
        let limit = humantime::parse_duration(limit.trim_start_matches('=').trim())
            .map_err(|error| format!("{limit:?} is no time: {error}; {FORM}"))?;
        Ok(Self { operation, quantile: percent / 100.0, limit })
    }
}

fn operation(name: &str) -> Result<&'static str, String> {
    match name {
        "put" | "write" => Ok("put"),
        "get" | "read" => Ok("get"),
        "query" => Ok("query"),
        _ => Err(format!("there is no operation {name:?}; use put, get or query")),
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = self.operation {
            write!(f, "{operation}:")?;
        }
        // Two decimals are as fine as anyone asks; trailing zeros go.
        let percent = format!("{:.3}", self.quantile * 100.0);
        let percent = percent.trim_end_matches('0').trim_end_matches('.');
        write!(f, "p{percent}<{}", humantime::format_duration(self.limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read_and_shown_alike() {
        for (text, shown) in [
            ("get:p99<10ms", "get:p99<10ms"),
            ("read:p99.9 < 1s", "get:p99.9<1s"),
            ("p50<=250us", "p50<250us"),
            ("write:p95<2ms", "put:p95<2ms"),
        ] {
            assert_eq!(text.parse::<Objective>().unwrap().to_string(), shown);
        }
        for text in ["", "p99", "get:99<1ms", "scan:p99<1ms", "p100<1ms", "p99<fast"] {
            assert!(text.parse::<Objective>().is_err(), "{text}");
        }
    }

    #[test]
    fn slow_requests_are_counted_for_the_operation_alone() {
        let mut reads = Histogram::new(2).unwrap();
        reads.record_n(1_000_000, 95).unwrap();
        reads.record_n(50_000_000, 5).unwrap();
        let latencies = [("get", reads.clone()), ("put", reads)].into();
        let measurement = Measurement { latencies, ..Measurement::default() };
        let late = |text: &str| text.parse::<Objective>().unwrap().late(&measurement);
        let of_get = late("get:p99<10ms");
        assert_eq!((of_get.slow, of_get.all), (5, 100));
        assert!((of_get.allowed - 0.01).abs() < 1e-12);
        assert_eq!((late("p99<10ms").slow, late("p99<10ms").all, late("query:p99<10ms").all), (10, 200, 0));
        assert_eq!(late("p99<60ms").slow, 0);
        // The percentile is five times its limit.
        assert!((of_get.ratio.unwrap() / 5.0 - 1.0).abs() < 0.01 && late("p50<10ms").ratio.unwrap() < 0.11);
        assert_eq!(late("query:p99<10ms").ratio, None);
    }
}
