//! What one worker did; merged with the others' when the window is over.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use peristyle::{Response, Result};

use super::worker::nanos;
use crate::stats::real;

/// The class under which requests count that were not answered long after the window.
pub(crate) const UNANSWERED: &str = "unanswered";

/// The class of a failure in results.
pub(crate) fn class_of(error: &peristyle::Error) -> &'static str {
    error.kind().name()
}

/// What happened within one stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Bucket {
    /// Rows of requests that ended in it.
    pub(crate) rows: u64,
    /// Requests that ended in it.
    pub(crate) requests: u64,
    /// Rows spread evenly over the time that their requests took. By Little's law it has the same mean as `rows`, but doesn't
    /// jump where a server answers many requests together: an engine that commits a group of writes at once does.
    pub(crate) flow: f64,
}

/// Counts and latencies.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    bucket: Duration,
    /// By time.
    pub(crate) buckets: Vec<Bucket>,
    /// By operation, in the order of the workload; nanoseconds of successful requests.
    pub(crate) latencies: Vec<Histogram<u64>>,
    /// In open loop, the same from when the request was sent; `latencies` then count from the intended start.
    pub(crate) service: Vec<Histogram<u64>>,
    /// In open loop, requests that were started of those intended within the window.
    pub(crate) started: u64,
    /// Failures by class.
    pub(crate) errors: BTreeMap<&'static str, u64>,
    /// One of the failures, for people.
    pub(crate) example: Option<String>,
    /// Rows asked for by key that weren't there.
    pub(crate) missing: u64,
    /// Nanoseconds spent on making a request, in a sample of them.
    pub(crate) generating: Option<Histogram<u64>>,
}

/// Rows that succeeded, rows that weren't there, and failures.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) rows: u64,
    pub(crate) missing: u64,
    pub(crate) failed: Vec<(&'static str, String)>,
}

impl Tally {
    /// What an answer amounts to.
    pub(crate) fn of(answer: &Result<Response>) -> Self {
        let mut tally = Self::default();
        match answer {
            Ok(Response::Row(row)) => tally.found(row.is_some()),
            Ok(Response::Rows(rows)) => rows.iter().for_each(|row| tally.found(row.is_some())),
            Ok(Response::Page(page)) => tally.rows += page.rows.len() as u64,
            Ok(Response::Outcomes(outcomes)) => {
                for outcome in outcomes {
                    match outcome {
                        Ok(()) => tally.rows += 1,
                        Err(error) => tally.failed.push((class_of(error), error.to_string())),
                    }
                }
            }
            Ok(_) => tally.rows += 1,
            Err(error) => tally.failed.push((class_of(error), error.to_string())),
        }
        tally
    }

    fn found(&mut self, there: bool) {
        if there {
            self.rows += 1;
        } else {
            self.missing += 1;
        }
    }
}

impl Recorder {
    /// An empty one for so many operations, with buckets of this length.
    pub(crate) fn new(operations: usize, bucket: Duration) -> Self {
        // Two digits are a precision of 1 %; the histogram grows with the longest latency seen.
        let histogram = || Histogram::new(2).ok();
        let latencies = (0..operations).filter_map(|_| histogram()).collect();
        let service = (0..operations).filter_map(|_| histogram()).collect();
        Self { bucket, latencies, service, generating: histogram(), ..Self::default() }
    }

    /// Records an answered request that ended `at` after the start of the window.
    pub(crate) fn record(&mut self, operation: usize, at: Duration, latency: Duration, tally: Tally) {
        if let Some(bucket) = self.bucket_at(at.as_nanos() / self.bucket.as_nanos().max(1)) {
            bucket.rows += tally.rows;
            bucket.requests += 1;
        }
        self.missing += tally.missing;
        if tally.failed.is_empty()
            && let Some(histogram) = self.latencies.get_mut(operation)
        {
            add(histogram, latency);
        }
        for (class, message) in tally.failed {
            self.fail(class, 1);
            self.example.get_or_insert(message);
        }
    }

    /// Records how long an answered request took from when it was sent, in open loop.
    pub(crate) fn record_service(&mut self, operation: usize, time: Duration) {
        if let Some(histogram) = self.service.get_mut(operation) {
            add(histogram, time);
        }
    }

    /// Spreads the rows of a request over the part of its time, `from` to `to` after the start of the window, that lies in the
    /// window.
    pub(crate) fn flow(&mut self, from: Duration, to: Duration, rows: f64) {
        let bucket = nanos(self.bucket).max(1);
        let (from, to) = (nanos(from), nanos(to));
        let per_nano = rows / real(to.saturating_sub(from).max(1));
        let mut at = from;
        loop {
            let place = at / bucket;
            let end = (place + 1).saturating_mul(bucket).min(to);
            if let Some(bucket) = self.bucket_at(u128::from(place)) {
                bucket.flow += per_nano * real(end.saturating_sub(at).max(u64::from(to == from)));
            }
            if end >= to {
                return;
            }
            at = end;
        }
    }

    fn bucket_at(&mut self, place: u128) -> Option<&mut Bucket> {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        if place >= self.buckets.len() {
            self.buckets.resize(place.saturating_add(1).min(1 << 20), Bucket::default());
        }
        self.buckets.get_mut(place)
    }

    /// Counts failures.
    pub(crate) fn fail(&mut self, class: &'static str, count: u64) {
        *self.errors.entry(class).or_default() += count;
    }

    /// Records how long it took to make a request.
    pub(crate) fn generated(&mut self, took: Duration) {
        if let Some(histogram) = &mut self.generating {
            add(histogram, took);
        }
    }

    /// Adds what another worker did: everything is summed, nothing replaced.
    pub(crate) fn merge(&mut self, other: Self) {
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), Bucket::default());
        }
        for (mine, its) in self.buckets.iter_mut().zip(&other.buckets) {
            mine.rows += its.rows;
            mine.requests += its.requests;
            mine.flow += its.flow;
        }
        self.started += other.started;
        let mine = self.latencies.iter_mut().chain(&mut self.service);
        for (mine, its) in mine.zip(other.latencies.iter().chain(&other.service)) {
            // Both grow as needed, so there is no value that doesn't fit.
            let _ = mine.add(its);
        }
        if let (Some(mine), Some(its)) = (&mut self.generating, &other.generating) {
            let _ = mine.add(its);
        }
        for (class, count) in other.errors {
            self.fail(class, count);
        }
        self.example = self.example.take().or(other.example);
        self.missing += other.missing;
    }
}

fn add(histogram: &mut Histogram<u64>, time: Duration) {
    // It grows as needed; only a time of centuries would not fit.
    let _ = histogram.record(nanos(time).max(1));
}

#[cfg(test)]
mod tests {
    use peristyle::response::Page;
    use peristyle::{Error, ErrorKind};

    use super::*;

    const BUCKET: Duration = Duration::from_millis(100);

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn an_answer_counts_rows_and_each_failure_by_class() {
        let overloaded = || Error::new(ErrorKind::Overloaded, "busy");
        let outcomes = Response::Outcomes(vec![Ok(()), Err(overloaded()), Ok(()), Err(Error::invalid("x"))]);
        let tally = Tally::of(&Ok(outcomes));
        assert_eq!((tally.rows, tally.failed.len()), (2, 2));
        assert_eq!(Tally::of(&Ok(Response::Done)).rows, 1);
        assert_eq!(Tally::of(&Ok(Response::Row(None))).missing, 1);
        assert_eq!(Tally::of(&Ok(Response::Page(Page::default()))).rows, 0);
        assert_eq!(Tally::of(&Err(overloaded())).failed, [("overloaded", "busy".to_owned())]);
    }

    #[test]
    fn merging_sums_counts_of_every_worker_and_operation() {
        let mut merged = Recorder::new(2, BUCKET);
        for worker in 0..3 {
            let mut recorder = Recorder::new(2, BUCKET);
            recorder.record(worker % 2, millis(150), millis(5), Tally { rows: 10, ..Tally::default() });
            recorder.fail("overloaded", 2);
            merged.merge(recorder);
        }
        assert_eq!(merged.buckets, [Bucket::default(), Bucket { rows: 30, requests: 3, flow: 0.0 }]);
        assert_eq!(merged.errors["overloaded"], 6);
        assert_eq!((merged.latencies[0].len(), merged.latencies[1].len()), (2, 1));
    }

    #[test]
    fn rows_flow_over_the_time_that_their_request_took() {
        let mut recorder = Recorder::new(1, BUCKET);
        recorder.flow(millis(50), millis(250), 20.0);
        recorder.flow(millis(120), millis(130), 3.0);
        recorder.flow(millis(300), millis(300), 7.0);
        let flows: Vec<f64> = recorder.buckets.iter().map(|bucket| bucket.flow).collect();
        let expected = [5.0, 13.0, 5.0, 7.0];
        assert!(flows.iter().zip(expected).all(|(flow, expected)| (flow - expected).abs() < 1e-6), "{flows:?}");
        assert_eq!(flows.len(), expected.len());
    }

    #[test]
    fn counts_go_beyond_32_bits() {
        let mut recorder = Recorder::new(1, BUCKET);
        let many = u64::from(u32::MAX) * 4;
        recorder.record(0, millis(1), millis(1), Tally { rows: many, ..Tally::default() });
        recorder.fail("overloaded", many);
        let mut merged = Recorder::new(1, BUCKET);
        merged.merge(recorder);
        assert_eq!((merged.buckets[0].rows, merged.errors["overloaded"]), (many, many));
    }

    #[test]
    fn latencies_keep_their_size_to_a_percent() {
        let mut recorder = Recorder::new(1, BUCKET);
        for latency in [1_u64, 900, 12_345_678, 40_000_000_000] {
            recorder.record(0, millis(1), Duration::from_nanos(latency), Tally::default());
            let longest = recorder.latencies[0].max();
            assert!(longest.abs_diff(latency) * 100 <= latency, "{latency}: {longest}");
        }
    }

    #[test]
    fn a_failed_request_has_no_latency() {
        let mut recorder = Recorder::new(1, BUCKET);
        recorder.record(0, millis(1), millis(1), Tally::of(&Err(Error::invalid("x"))));
        assert_eq!((recorder.latencies[0].len(), recorder.errors["invalid_argument"]), (0, 1));
    }
}
