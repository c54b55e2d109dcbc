//! Latency objectives, such as `get:p99<10ms`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::stats::whole;
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
}

impl Objective {
    /// The operation that it is about.
    pub(crate) fn operation(&self) -> Option<&'static str> {
        self.operation
    }

    /// Counts the slow requests of a window.
    pub(crate) fn late(&self, measurement: &Measurement) -> Late {
        let limit = whole(self.limit.as_secs_f64() * 1e9);
        let (mut slow, mut all) = (0, 0);
        for (name, histogram) in &measurement.latencies {
            if self.operation.is_none_or(|operation| operation == *name) {
                all += histogram.len();
                slow += histogram.len() - histogram.count_between(0, limit).min(histogram.len());
            }
        }
        Late { objective: self.to_string(), slow, all, allowed: 1.0 - self.quantile }
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
    use hdrhistogram::Histogram;

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
    }
}
