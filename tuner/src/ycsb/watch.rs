//! Who looks after a run: its end, its status lines, and the measurements of all workers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;

use super::client::Shared;
use super::measurement::Sheet;
use super::status::{Progress, line};
use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::stats::real;

/// From its start, how long it lasted, and its latencies.
type Interval = (Duration, Duration, Histogram<u64>);

/// Status lines and what was measured so far.
#[derive(Debug)]
pub(super) struct Watch {
    shared: Arc<Shared>,
    started: SystemTime,
    total: Sheet,
    before: Progress,
    next: Option<Duration>,
    /// The intervals of the HDR logs, by name.
    logs: BTreeMap<String, Vec<Interval>>,
    logged: Duration,
    /// When it was looked at, and the operations until then, from the end of the warm-up on.
    looks: Vec<(Duration, u64)>,
}

impl Watch {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let mut watch = Self {
            shared: Arc::clone(shared),
            started: SystemTime::now(),
            total: Sheet::default(),
            before: Progress { elapsed: Duration::ZERO, operations: 0, left: 0 },
            next: None,
            logs: BTreeMap::new(),
            logged: Duration::ZERO,
            looks: Vec::new(),
        };
        if let Some(interval) = shared.job.status_interval {
            watch.tell();
            watch.next = Some(Duration::from_secs(interval));
        }
        watch
    }

    /// Ends the run where it is time, and writes the status line that is due.
    pub(super) fn look(&mut self, interrupt: &Interrupt) {
        let elapsed = self.shared.origin.elapsed();
        let warm_up = self.shared.job.warm_up;
        if !warm_up.is_zero() && elapsed >= warm_up {
            if self.looks.is_empty() {
                drop(self.shared.take());
            }
            self.looks.push((elapsed, self.shared.done()));
        }
        if interrupt.is_set() || self.shared.job.limit.is_some_and(|limit| elapsed >= limit) {
            self.shared.stop.store(true, Ordering::Relaxed);
        }
        if self.next.is_some_and(|next| elapsed >= next) {
            self.tell();
            let interval = Duration::from_secs(self.shared.job.status_interval.unwrap_or(1));
            self.next = self.next.map(|next| next + interval);
        }
    }

    /// Operations per second between looks, behind the warm-up.
    pub(super) fn rates(&self) -> Vec<f64> {
        let steps = self.looks.iter().zip(self.looks.iter().skip(1));
        let rate = |((before, fewer), (at, more)): (&(Duration, u64), &(Duration, u64))| {
            real(more - fewer) / at.saturating_sub(*before).as_secs_f64().max(1e-9)
        };
        steps.map(rate).collect()
    }

    /// How long it took to warm up, and what was done meanwhile.
    pub(super) fn warm_up(&self) -> (Duration, u64) {
        self.looks.first().copied().unwrap_or_default()
    }

    /// Writes the last status line and the logs, and returns what was measured.
    pub(super) fn finish(mut self) -> Result<Sheet> {
        if self.shared.job.status_interval.is_some() {
            self.tell();
        } else {
            self.gather();
        }
        self.write_logs()?;
        Ok(self.total)
    }

    fn tell(&mut self) {
        let (elapsed, operations) = (self.shared.origin.elapsed(), self.shared.done());
        let left = self.shared.job.operations.unwrap_or(operations).saturating_sub(operations);
        let progress = Progress { elapsed, operations, left };
        let mut text = line(&self.shared.job.label, SystemTime::now(), progress, self.before);
        self.before = progress;
        text.push_str(&self.gather());
        eprintln!("{text}");
        if self.shared.job.measuring.repeats_status() {
            Console::result(&text);
        }
    }

    /// Adds what was measured since the last time, and says it.
    fn gather(&mut self) -> String {
        let (sheet, now) = (self.shared.take(), self.shared.origin.elapsed());
        let measuring = &self.shared.job.measuring;
        let brief = sheet.brief(measuring);
        if measuring.hdr_logs.is_some() {
            for (name, histogram) in sheet.histograms(measuring) {
                let interval = (self.logged, now.saturating_sub(self.logged), histogram.clone());
                self.logs.entry(name).or_default().push(interval);
            }
        }
        self.logged = now;
        self.total.merge(sheet, measuring);
        brief
    }

    /// A file for each operation, as every `HdrHistogram` reads it.
    fn write_logs(&self) -> Result<()> {
        let Some(prefix) = &self.shared.job.measuring.hdr_logs else { return Ok(()) };
        for (name, intervals) in &self.logs {
            let path = format!("{prefix}{name}.hdr");
            let mut text = Vec::new();
            let mut serializer = V2DeflateSerializer::new();
            let mut builder = IntervalLogWriterBuilder::new();
            builder.add_comment(&format!("[Logging for: {name}]"));
            builder.with_start_time(self.started).with_base_time(self.started);
            if let Ok(mut log) = builder.begin_log_with(&mut text, &mut serializer) {
                for (start, length, histogram) in intervals {
                    // Writing to memory doesn't fail.
                    let _ = log.write_histogram(histogram, *start, *length, None);
                }
            }
            std::fs::write(&path, text).map_err(|error| Failure::write(Path::new(&path), error))?;
        }
        Ok(())
    }
}
