//! The latencies of one operation, in each of the forms that YCSB knows.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;

use super::export::{Line, Number};
use super::measurement::{Measuring, Type};
use crate::stats::{real, real_len, whole};

/// One form.
#[derive(Debug)]
pub(super) enum Series {
    /// Microseconds to three digits.
    Hdr(Histogram<u64>),
    Buckets(Buckets),
    /// Every value: milliseconds since 1970, and microseconds.
    Raw(Vec<(u64, u64)>),
    Times(Times),
}

/// Counts by millisecond.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    counts: Vec<u64>,
    overflow: u64,
    summary: Summary,
    squares: f64,
}

/// Means by stretch of time.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// Sum and count by the start of the stretch in milliseconds.
    units: BTreeMap<u64, (u64, u64)>,
    summary: Summary,
}

#[derive(Debug, Default, Clone, Copy)]
struct Summary {
    operations: u64,
    total: u64,
    least: u64,
    most: u64,
}

impl Summary {
    fn add(&mut self, micros: u64) {
        self.least = if self.operations == 0 { micros } else { self.least.min(micros) };
        self.most = self.most.max(micros);
        self.operations += 1;
        self.total += micros;
    }

    fn merge(&mut self, other: Self) {
        if other.operations > 0 {
            self.least = if self.operations == 0 { other.least } else { self.least.min(other.least) };
        }
        self.most = self.most.max(other.most);
        self.operations += other.operations;
        self.total += other.total;
    }

    fn mean(&self) -> f64 {
        if self.operations == 0 { 0.0 } else { real(self.total) / real(self.operations) }
    }

    fn brief(&self, name: &str) -> String {
        match self.operations {
            0 => String::new(),
            _ => format!("[{name} AverageLatency(us)={}]", two_digits(self.mean())),
        }
    }
}

impl Series {
    /// The forms of a type, each with what YCSB puts before the operation's name.
    pub(super) fn new(ty: Type) -> Vec<(&'static str, Self)> {
        // The precision is one of those that there are.
        let hdr = || Histogram::new(3).ok().map(Self::Hdr);
        let buckets = || Some(Self::Buckets(Buckets::default()));
        let raw = || Some(Self::Raw(Vec::new()));
        let parts = match ty {
            Type::Hdr => [("", hdr()), ("", None)],
            Type::Buckets => [("", buckets()), ("", None)],
            Type::Raw => [("", raw()), ("", None)],
            Type::Times => [("", Some(Self::Times(Times::default()))), ("", None)],
            Type::HdrAndBuckets => [("Hdr", hdr()), ("Bucket", buckets())],
            Type::HdrAndRaw => [("Hdr", hdr()), ("Raw", raw())],
        };
        parts.into_iter().filter_map(|(prefix, part)| Some((prefix, part?))).collect()
    }

    /// Adds a latency in microseconds, `at` so long after the start.
    pub(super) fn add(&mut self, micros: u64, at: Duration, measuring: &Measuring) {
        match self {
            // It grows with the longest latency.
            Self::Hdr(histogram) => drop(histogram.record(micros)),
            Self::Buckets(buckets) => {
                buckets.summary.add(micros);
                buckets.squares += real(micros) * real(micros);
                match usize::try_from(micros / 1_000).ok().filter(|bucket| *bucket < measuring.buckets) {
                    Some(bucket) => {
                        if buckets.counts.len() <= bucket {
                            buckets.counts.resize(bucket + 1, 0);
                        }
                        if let Some(count) = buckets.counts.get_mut(bucket) {
                            *count += 1;
                        }
                    }
                    None => buckets.overflow += 1,
                }
            }
            Self::Raw(points) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                points.push((u64::try_from(now.as_millis()).unwrap_or(u64::MAX), micros));
            }
            Self::Times(times) => {
                times.summary.add(micros);
                let millis = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
                let unit = times.units.entry(millis / measuring.granularity * measuring.granularity).or_default();
                unit.0 += micros;
                unit.1 += 1;
            }
        }
    }

    /// Adds those of another of the same form.
    pub(super) fn merge(&mut self, other: Self) {
        match (self, other) {
            // Both grow by themselves.
            (Self::Hdr(own), Self::Hdr(other)) => drop(own.add(other)),
            (Self::Buckets(own), Self::Buckets(other)) => {
                if own.counts.len() < other.counts.len() {
                    own.counts.resize(other.counts.len(), 0);
                }
                for (own, other) in own.counts.iter_mut().zip(other.counts) {
                    *own += other;
                }
                own.overflow += other.overflow;
                own.summary.merge(other.summary);
                own.squares += other.squares;
            }
            (Self::Raw(own), Self::Raw(mut other)) => own.append(&mut other),
            (Self::Times(own), Self::Times(other)) => {
                own.summary.merge(other.summary);
                for (unit, (sum, count)) in other.units {
                    let unit = own.units.entry(unit).or_default();
                    unit.0 += sum;
                    unit.1 += count;
                }
            }
            _ => {}
        }
    }

    /// What a status line says of it.
    pub(super) fn brief(&self, name: &str) -> String {
        match self {
            Self::Hdr(hdr) => {
                let at = |percentile| hdr.value_at_percentile(percentile);
                format!(
                    "[{name}: Count={}, Max={}, Min={}, Avg={}, 50={}, 90={}, 99={}, 99.9={}, 99.99={}]",
                    hdr.len(),
                    hdr.max(),
                    hdr.min(),
                    two_digits(hdr.mean()),
                    at(50.0),
                    at(90.0),
                    at(99.0),
                    at(99.9),
                    at(99.99)
                )
            }
            Self::Buckets(buckets) => buckets.summary.brief(name),
            Self::Times(times) => times.summary.brief(name),
            Self::Raw(points) if points.is_empty() => String::new(),
            Self::Raw(points) => {
                let mean = real(points.iter().map(|(_, micros)| micros).sum()) / real_len(points.len());
                format!("{name} count: {}, average latency(us): {mean:.2}", points.len())
            }
        }
    }

    /// The lines of the result: those before the return codes, and those behind.
    pub(super) fn lines(&self, name: &str, measuring: &Measuring) -> (Vec<Line>, Vec<Line>) {
        let line = |measurement: &str, number| Line::new(name, measurement, number);
        match self {
            Self::Hdr(hdr) => {
                let mut lines = vec![
                    line("Operations", Number::Whole(hdr.len())),
                    line("AverageLatency(us)", Number::Real(hdr.mean())),
                    line("MinLatency(us)", Number::Whole(hdr.min())),
                    line("MaxLatency(us)", Number::Whole(hdr.max())),
                ];
                lines.extend(measuring.percentiles.iter().map(|percentile| {
                    let value = Number::Whole(hdr.value_at_percentile(*percentile));
                    line(&format!("{}PercentileLatency(us)", ordinal(*percentile)), value)
                }));
                let counts = hdr.iter_recorded().filter(|_| measuring.verbose);
                let counts = counts.map(|it| {
                    line(&it.value_iterated_to().to_string(), Number::Real(real(it.count_since_last_iteration())))
                });
                (lines, counts.collect())
            }
            Self::Buckets(buckets) => (buckets.lines(name), buckets.counts(name, measuring)),
            Self::Raw(points) => (raw_lines(points, name, measuring), Vec::new()),
            Self::Times(times) => {
                let units = times.units.iter().map(|(unit, (sum, count))| {
                    line(&unit.to_string(), Number::Real(real(*sum) / real((*count).max(1))))
                });
                (summary_lines(&times.summary, name), units.collect())
            }
        }
    }
}

fn summary_lines(summary: &Summary, name: &str) -> Vec<Line> {
    vec![
        Line::new(name, "Operations", Number::Whole(summary.operations)),
        Line::new(name, "AverageLatency(us)", Number::Real(summary.mean())),
        Line::new(name, "MinLatency(us)", Number::Whole(summary.least)),
        Line::new(name, "MaxLatency(us)", Number::Whole(summary.most)),
    ]
}

impl Buckets {
    fn lines(&self, name: &str) -> Vec<Line> {
        let mut lines = summary_lines(&self.summary, name);
        let mean = self.summary.mean();
        let variance = self.squares / real(self.summary.operations.max(1)) - mean * mean;
        lines.insert(2, Line::new(name, "LatencyVariance(us)", Number::Real(variance)));
        for (percent, measurement) in [(0.95, "95thPercentileLatency(us)"), (0.99, "99thPercentileLatency(us)")] {
            lines.push(Line::new(name, measurement, Number::Whole(self.percentile(percent))));
        }
        lines
    }

    /// The upper edge of the bucket that holds it; the greatest latency where it lies behind the last bucket.
    fn percentile(&self, share: f64) -> u64 {
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if self.summary.operations > 0 && real(seen) / real(self.summary.operations) >= share {
                return (bucket as u64 + 1) * 1_000;
            }
        }
        self.summary.most
    }

    fn counts(&self, name: &str, measuring: &Measuring) -> Vec<Line> {
        if !measuring.verbose {
            return Vec::new();
        }
        let count = |bucket| self.counts.get(bucket).copied().unwrap_or_default();
        let lines =
            (0..measuring.buckets).map(|bucket| Line::new(name, &bucket.to_string(), Number::Whole(count(bucket))));
        let overflow = Line::new(name, &format!(">{}", measuring.buckets), Number::Whole(self.overflow));
        lines.chain([overflow]).collect()
    }
}

fn raw_lines(points: &[(u64, u64)], name: &str, measuring: &Measuring) -> Vec<Line> {
    let mut lines = vec![Line::new(name, "Total Operations", Number::Whole(points.len() as u64))];
    if points.is_empty() || measuring.raw_without_summary {
        return lines;
    }
    let mut sorted: Vec<u64> = points.iter().map(|(_, micros)| *micros).collect();
    sorted.sort_unstable();
    let at = |share: f64| {
        let place = usize::try_from(whole((real_len(sorted.len()) * share).floor())).unwrap_or(usize::MAX);
        Number::Whole(sorted.get(place.min(sorted.len() - 1)).copied().unwrap_or_default())
    };
    lines.push(Line::new(name, "Below is a summary of latency in microseconds:", Number::None));
    let mean = real(sorted.iter().sum()) / real_len(sorted.len());
    lines.push(Line::new(name, "Average", Number::Real(mean)));
    for (measurement, share) in [
        ("Min", 0.0),
        ("Max", 1.0),
        ("p1", 0.01),
        ("p5", 0.05),
        ("p50", 0.5),
        ("p90", 0.9),
        ("p95", 0.95),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("p99.99", 0.9999),
    ] {
        lines.push(Line::new(name, measurement, at(share)));
    }
    lines
}

/// At most two digits behind the point, as Java's `#.##`.
pub(super) fn two_digits(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// 95 as `95th`, 99.9 as `99.9`.
fn ordinal(percentile: f64) -> String {
    if percentile.fract() != 0.0 {
        return percentile.to_string();
    }
    let whole = whole(percentile);
    let suffix = match (whole % 100, whole % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{whole}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ty: Type, latencies: &[u64]) -> Vec<String> {
        let measuring = Measuring::of(ty);
        let mut parts = Series::new(ty);
        for micros in latencies {
            for (_, part) in &mut parts {
                part.add(*micros, Duration::from_millis(*micros), &measuring);
            }
        }
        let lines = parts.iter().flat_map(|(prefix, part)| part.lines(&format!("{prefix}READ"), &measuring).0);
        lines.map(|line| line.text()).collect()
    }

    #[test]
    fn an_hdr_histogram_has_the_lines_of_ycsb() {
        assert_eq!(
            texts(Type::Hdr, &[100, 200, 300]),
            [
                "[READ], Operations, 3",
                "[READ], AverageLatency(us), 200.0",
                "[READ], MinLatency(us), 100",
                "[READ], MaxLatency(us), 300",
                "[READ], 95thPercentileLatency(us), 300",
                "[READ], 99thPercentileLatency(us), 300",
            ]
        );
    }

    #[test]
    fn long_latencies_are_kept_as_they_are() {
        assert!(texts(Type::Hdr, &[1, 5_000_000])[3].ends_with("MaxLatency(us), 5001215"));
    }

    #[test]
    fn percentiles_are_there_however_slow_the_operations_are() {
        let lines = texts(Type::Buckets, &[100, 1_500_000]);
        assert!(lines.contains(&"[READ], 95thPercentileLatency(us), 1500000".to_owned()), "{lines:?}");
        assert!(texts(Type::Buckets, &[100])[5..].iter().all(|line| line.ends_with(", 1000")));
        assert!(texts(Type::Buckets, &[]).contains(&"[READ], AverageLatency(us), 0.0".to_owned()));
    }

    #[test]
    fn both_forms_of_a_pair_are_named_apart() {
        let lines = texts(Type::HdrAndRaw, &[5]);
        assert!(lines.contains(&"[HdrREAD], Operations, 1".to_owned()));
        assert!(lines.contains(&"[RawREAD], p99.99, 5".to_owned()), "{lines:?}");
        assert!(lines.contains(&"[RawREAD], Below is a summary of latency in microseconds:, -1".to_owned()));
    }

    #[test]
    fn times_are_means_by_stretch() {
        let measuring = Measuring::of(Type::Times);
        let mut times = Series::new(Type::Times).remove(0).1;
        for (micros, at) in [(10, 0), (20, 999), (40, 1_000)] {
            times.add(micros, Duration::from_millis(at), &measuring);
        }
        let lines: Vec<String> = times.lines("READ", &measuring).1.iter().map(Line::text).collect();
        assert_eq!(lines, ["[READ], 0, 15.0", "[READ], 1000, 40.0"]);
    }

    #[test]
    fn ordinals_and_means_read_as_in_java() {
        assert_eq!([50.0, 1.0, 11.0, 99.9, 22.0].map(ordinal), ["50th", "1st", "11th", "99.9", "22nd"]);
        assert_eq!([0.25, 2.0, 1234.567].map(two_digits), ["0.25", "2", "1234.57"]);
    }
}
