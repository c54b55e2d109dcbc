//! Latency histograms as text, and as a log that the tools of HdrHistogram read.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};

use super::Window;

/// The log's unit for the largest value of an interval is milliseconds; histograms hold nanoseconds.
const NANOS_PER_MILLI: f64 = 1e6;

/// A histogram as text: V2, deflated, in base 64, as every HdrHistogram reads it.
pub(super) fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    // Writing to memory doesn't fail.
    let _ = V2DeflateSerializer::new().serialize(histogram, &mut bytes);
    STANDARD.encode(bytes)
}

/// The histogram of a text; `None` where it is none.
pub(super) fn decode(text: &str) -> Option<Histogram<u64>> {
    let bytes = STANDARD.decode(text).ok()?;
    let mut histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).ok()?;
    histogram.auto(true);
    Some(histogram)
}

/// The interval log of all windows: an interval for each window and operation, tagged with the operation and `rt` for response
/// times from the intended start, or `st` for service times from when the request was sent. In closed loop both are the same.
pub(crate) fn log(windows: &[Window], finished: SystemTime) -> String {
    let mut text = Vec::new();
    let spent = windows.last().map_or(Duration::ZERO, |window| window.trial.spent);
    let start = finished.checked_sub(spent).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("latencies in nanoseconds, by window and operation");
    builder.with_start_time(start).with_base_time(start).with_max_value_divisor(NANOS_PER_MILLI);
    if let Ok(mut log) = builder.begin_log_with(&mut text, &mut serializer) {
        for window in windows {
            let measurement = &window.measurement;
            let from = window.trial.spent.saturating_sub(measurement.elapsed);
            let kind = if measurement.schedule.is_some() { "rt" } else { "st" };
            let tagged = measurement.latencies.iter().map(|(name, histogram)| (format!("{name}-{kind}"), histogram));
            let service = measurement.service.iter().map(|(name, histogram)| (format!("{name}-st"), histogram));
            for (tag, histogram) in tagged.chain(service) {
                // Writing to memory doesn't fail.
                let _ = log.write_histogram(histogram, from, measurement.elapsed, Tag::new(&tag));
            }
        }
    }
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::search::{Probe, Purpose, Trial};
    use crate::space::Point;
    use crate::target::Measurement;

    fn histogram(values: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new(2).unwrap();
        for value in values {
            histogram.record(*value).unwrap();
        }
        histogram
    }

    #[test]
    fn a_histogram_as_text_reads_back_and_still_grows() {
        let written = histogram(&[1, 1_000_000, 7_200_000_000_000]);
        let mut read = decode(&encode(&written)).unwrap();
        assert_eq!(read, written);
        read.record(9_000_000_000_000_000).unwrap();
        assert!(decode("nonsense").is_none() && decode("").is_none());
    }

    #[test]
    fn the_log_reads_back_with_the_counts_of_every_window() {
        let point = Point { threads: 1, io_threads: 1, pool: 1, batch: 1 };
        let window = |seconds: u64, values: &[u64]| {
            let measurement = Measurement {
                latencies: [("get", histogram(values)), ("put", histogram(&[5]))].into(),
                elapsed: Duration::from_secs(2),
                ..Measurement::default()
            };
            let probe = Probe { point, purpose: Purpose::Explore, window: Duration::from_secs(2), rate: None };
            Window { trial: Trial::of(probe, &measurement, &[], Duration::from_secs(seconds)), measurement }
        };
        let windows = [window(3, &[1_000_000; 7]), window(6, &[2_000_000; 9])];
        let text = log(&windows, SystemTime::now());
        let entries: Vec<_> = IntervalLogIterator::new(text.as_bytes()).map(Result::unwrap).collect();
        let intervals =
            entries.iter().filter_map(|entry| if let LogEntry::Interval(it) = entry { Some(it) } else { None });
        let read: Vec<(String, u64, u64)> = intervals
            .map(|it| {
                let tag = it.tag().unwrap().as_str().to_owned();
                (tag, it.start_timestamp().as_secs(), decode(it.encoded_histogram()).unwrap().len())
            })
            .collect();
        let expected = [("get-st", 1, 7), ("put-st", 1, 1), ("get-st", 4, 9), ("put-st", 4, 1)];
        assert_eq!(read, expected.map(|(tag, at, count)| (tag.to_owned(), at, count)));
        assert!(entries.iter().any(|entry| matches!(entry, LogEntry::StartTime(_))));
    }
}
