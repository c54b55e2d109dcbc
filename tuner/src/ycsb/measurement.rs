//! What is measured, by operation.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use peristyle_ycsb::Status;

use super::export::{Line, Number};
use super::properties::Properties;
use super::series::Series;
use crate::failure::{Failure, Result};

/// The forms of `measurementtype`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Type {
    #[default]
    Hdr,
    Buckets,
    Raw,
    Times,
    HdrAndBuckets,
    HdrAndRaw,
}

/// How it is measured.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub(crate) struct Measuring {
    pub(super) ty: Type,
    /// Whether latencies count from when the operation began.
    from_begin: bool,
    /// Whether they count, too or only, from when it was to begin.
    from_intended: bool,
    pub(super) percentiles: Vec<f64>,
    pub(super) buckets: usize,
    /// Milliseconds of a stretch of a time series.
    pub(super) granularity: u64,
    pub(super) verbose: bool,
    pub(super) raw_without_summary: bool,
    raw_file: Option<String>,
    /// What stands before the name of an HDR log, where they are written.
    pub(super) hdr_logs: Option<String>,
    /// Whether failed operations are measured by their status.
    each_error: bool,
    tracked_errors: Vec<String>,
}

impl Default for Measuring {
    fn default() -> Self {
        Self {
            ty: Type::Hdr,
            from_begin: true,
            from_intended: false,
            percentiles: vec![95.0, 99.0],
            buckets: 1_000,
            granularity: 1_000,
            verbose: false,
            raw_without_summary: false,
            raw_file: None,
            hdr_logs: None,
            each_error: false,
            tracked_errors: Vec::new(),
        }
    }
}

impl Measuring {
    #[cfg(test)]
    pub(super) fn of(ty: Type) -> Self {
        Self { ty, ..Self::default() }
    }

    pub(crate) fn new(properties: &Properties) -> Result<Self> {
        let types = [
            ("hdrhistogram", Type::Hdr),
            ("histogram", Type::Buckets),
            ("raw", Type::Raw),
            ("timeseries", Type::Times),
            ("hdrhistogram+histogram", Type::HdrAndBuckets),
            ("hdrhistogram+raw", Type::HdrAndRaw),
        ];
        let intervals = [("op", (true, false)), ("intended", (false, true)), ("both", (true, true))];
        let (from_begin, from_intended) = properties.word("measurement.interval", &intervals, (true, false))?;
        let words = properties.get("latencytrackederrors").unwrap_or_default().split(',');
        let logs = properties.flag("hdrhistogram.fileoutput", false);
        Ok(Self {
            ty: properties.word("measurementtype", &types, Type::Hdr)?,
            from_begin,
            from_intended,
            percentiles: percentiles(properties.get("hdrhistogram.percentiles").unwrap_or("95,99"))?,
            buckets: at_least_one(properties, "histogram.buckets")?,
            granularity: at_least_one(properties, "timeseries.granularity")? as u64,
            verbose: properties.flag("measurement.histogram.verbose", false),
            raw_without_summary: properties.flag("measurement.raw.no_summary", false),
            raw_file: properties.get("measurement.raw.output_file").filter(|it| !it.is_empty()).map(str::to_owned),
            hdr_logs: logs.then(|| properties.get("hdrhistogram.output.path").unwrap_or_default().to_owned()),
            each_error: properties.flag("reportlatencyforeacherror", false),
            tracked_errors: words.map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect(),
        })
    }

    /// The same, with latencies of HDR histograms, in open loop from both starts.
    pub(super) fn of_sweep(self, is_open_loop: bool) -> Self {
        Self { ty: Type::Hdr, from_begin: true, from_intended: is_open_loop, ..self }
    }

    /// Whether status lines go to standard output too, as YCSB has it.
    pub(super) fn repeats_status(&self) -> bool {
        self.ty == Type::Times
    }

    fn names_error(&self, status: Status) -> bool {
        self.each_error || self.tracked_errors.iter().any(|name| name == status.name())
    }
}

fn percentiles(text: &str) -> Result<Vec<f64>> {
    let parse = |part: &str| part.trim().parse().ok().filter(|number| (0.0..=100.0).contains(number));
    text.split(',').map(parse).collect::<Option<_>>().ok_or_else(|| {
        Failure::input(format!(
            "hdrhistogram.percentiles={text}: give percentages with commas between, such as 50,95,99.9"
        ))
    })
}

fn at_least_one(properties: &Properties, name: &str) -> Result<usize> {
    match properties.number(name, 1_000)? {
        0 => Err(Failure::input(format!("{name}=0 is too small; give 1 at least"))),
        number => Ok(number),
    }
}

/// What latencies belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Metric {
    operation: &'static str,
    fate: Fate,
    intended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Done,
    Failed,
    Status(Status),
}

impl Metric {
    fn name(self, measuring: &Measuring) -> String {
        let intended = if self.intended && measuring.from_begin { "Intended-" } else { "" };
        match self.fate {
            Fate::Done => format!("{intended}{}", self.operation),
            Fate::Failed => format!("{intended}{}-FAILED", self.operation),
            Fate::Status(status) => format!("{intended}{}-{}", self.operation, status.name()),
        }
    }
}

#[derive(Debug)]
struct Entry {
    series: Vec<(&'static str, Series)>,
    statuses: BTreeMap<Status, u64>,
}

/// When an operation was to begin, began and ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) intended: Option<Instant>,
    pub(super) begun: Instant,
    pub(super) ended: Instant,
}

/// What was measured.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    entries: Vec<(Metric, Entry)>,
}

impl Sheet {
    fn entry(&mut self, metric: Metric, measuring: &Measuring) -> Option<&mut Entry> {
        let place = self.entries.iter().position(|(known, _)| *known == metric).unwrap_or_else(|| {
            let entry = Entry { series: Series::new(measuring.ty), statuses: BTreeMap::new() };
            self.entries.push((metric, entry));
            self.entries.len() - 1
        });
        self.entries.get_mut(place).map(|(_, entry)| entry)
    }

    /// Adds an operation with its status.
    pub(super) fn add(
        &mut self,
        operation: &'static str,
        status: Status,
        span: Span,
        origin: Instant,
        measuring: &Measuring,
    ) {
        self.add_latency(operation, status, span, origin, measuring);
        let metric = Metric { operation, fate: Fate::Done, intended: !measuring.from_begin };
        if let Some(entry) = self.entry(metric, measuring) {
            *entry.statuses.entry(status).or_default() += 1;
        }
    }

    /// Adds the latency of an operation whose status isn't counted.
    pub(super) fn add_latency(
        &mut self,
        operation: &'static str,
        status: Status,
        span: Span,
        origin: Instant,
        measuring: &Measuring,
    ) {
        let fate = match status {
            status if status.is_ok() => Fate::Done,
            status if measuring.names_error(status) => Fate::Status(status),
            _ => Fate::Failed,
        };
        let starts = [
            (measuring.from_begin, false, span.begun),
            (measuring.from_intended, true, span.intended.unwrap_or(span.begun)),
        ];
        for (_, intended, start) in starts.into_iter().filter(|(wanted, ..)| *wanted) {
            let micros = u64::try_from((span.ended - start).as_micros()).unwrap_or(u64::MAX);
            if let Some(entry) = self.entry(Metric { operation, fate, intended }, measuring) {
                for (_, series) in &mut entry.series {
                    series.add(micros, span.ended - origin, measuring);
                }
            }
        }
    }

    /// Adds another's.
    pub(super) fn merge(&mut self, other: Self, measuring: &Measuring) {
        for (metric, added) in other.entries {
            let Some(entry) = self.entry(metric, measuring) else { continue };
            for ((_, own), (_, other)) in entry.series.iter_mut().zip(added.series) {
                own.merge(other);
            }
            for (status, count) in added.statuses {
                *entry.statuses.entry(status).or_default() += count;
            }
        }
    }

    /// In the order of results.
    fn sorted(&self) -> Vec<&(Metric, Entry)> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|(metric, _)| (metric.intended, *metric));
        entries
    }

    /// What a status line says.
    pub(super) fn brief(&self, measuring: &Measuring) -> String {
        let mut text = String::new();
        for (metric, entry) in self.sorted() {
            let name = metric.name(measuring);
            let briefs: Vec<String> =
                entry.series.iter().map(|(prefix, series)| series.brief(&format!("{prefix}{name}"))).collect();
            text.push_str(&briefs.join("\n"));
            text.push(' ');
        }
        text
    }

    /// The lines of the result.
    pub(crate) fn lines(&self, measuring: &Measuring) -> Vec<Line> {
        let mut lines = Vec::new();
        for (metric, entry) in self.sorted() {
            for (place, (prefix, series)) in entry.series.iter().enumerate() {
                let name = format!("{prefix}{}", metric.name(measuring));
                let (before, behind) = series.lines(&name, measuring);
                lines.extend(before);
                if place == 0 {
                    let codes = entry.statuses.iter();
                    lines.extend(codes.map(|(status, count)| {
                        Line::new(&name, &format!("Return={}", status.name()), Number::Whole(*count))
                    }));
                }
                lines.extend(behind);
            }
        }
        lines
    }

    /// The HDR histograms with their names.
    pub(super) fn histograms(&self, measuring: &Measuring) -> Vec<(String, &Histogram<u64>)> {
        let all = self.sorted().into_iter().flat_map(|(metric, entry)| {
            entry.series.iter().filter_map(move |(prefix, series)| match series {
                Series::Hdr(histogram) => Some((format!("{prefix}{}", metric.name(measuring)), histogram)),
                _ => None,
            })
        });
        all.collect()
    }

    /// Every single latency, where it was kept, as YCSB writes them; to a file where one is named, else to standard output.
    pub(crate) fn write_raw(&self, measuring: &Measuring) -> Result<()> {
        let mut text = String::new();
        for (metric, entry) in self.sorted() {
            for (prefix, series) in &entry.series {
                let Series::Raw(points) = series else { continue };
                let name = format!("{prefix}{}", metric.name(measuring));
                // Writing to a string doesn't fail.
                let _ = writeln!(text, "{name} latency raw data: op, timestamp(ms), latency(us)");
                for (at, micros) in points {
                    let _ = writeln!(text, "{name},{at},{micros}");
                }
            }
        }
        match &measuring.raw_file {
            None => crate::console::Console::result(text.trim_end()),
            Some(path) => {
                let append = std::fs::OpenOptions::new().append(true).create(true).open(path);
                append
                    .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
                    .map_err(|error| Failure::write(std::path::Path::new(path), error))?;
            }
        }
        Ok(())
    }

    /// Whether single latencies were kept.
    pub(crate) fn has_raw(&self) -> bool {
        self.entries.iter().flat_map(|(_, entry)| &entry.series).any(|(_, series)| matches!(series, Series::Raw(_)))
    }

    /// Latencies of successes in nanoseconds, by operation, from when it began or from when it was to begin; of HDR histograms.
    pub(super) fn latencies(&self, intended: bool) -> BTreeMap<&'static str, Histogram<u64>> {
        let entries = self.entries.iter().filter(|(it, _)| it.fate == Fate::Done && it.intended == intended);
        let found = entries.filter_map(|(metric, entry)| {
            // As precise as those of all reports.
            let mut nanos = Histogram::new(2).ok()?;
            let Series::Hdr(micros) = entry.series.first().map(|(_, series)| series)? else { return None };
            for value in micros.iter_recorded() {
                // It grows with the longest latency.
                let _ = nanos.record_n(value.value_iterated_to() * 1_000, value.count_at_value());
            }
            Some((metric.operation, nanos))
        });
        found.collect()
    }

    /// Operations by the status that they ended with.
    pub(super) fn statuses(&self) -> BTreeMap<Status, u64> {
        let mut all = BTreeMap::new();
        for (status, count) in self.entries.iter().flat_map(|(_, entry)| &entry.statuses) {
            *all.entry(*status).or_default() += count;
        }
        all
    }

    /// How many operations ended with another status than success or absence.
    pub(crate) fn failures(&self) -> u64 {
        let failed = self.statuses().into_iter().filter(|(status, _)| !status.is_ok() && *status != Status::NotFound);
        failed.map(|(_, count)| count).sum()
    }
}

/// The lines above the operations: time, rate, and the collections of garbage that there are none of.
pub(crate) fn overall(operations: u64, elapsed: Duration) -> Vec<Line> {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let rate = crate::stats::real(operations) / elapsed.as_secs_f64().max(1e-9);
    vec![
        Line::new("OVERALL", "RunTime(ms)", Number::Whole(millis)),
        Line::new("OVERALL", "Throughput(ops/sec)", Number::Real(rate)),
        Line::new("TOTAL_GCs", "Count", Number::Whole(0)),
        Line::new("TOTAL_GC_TIME", "Time(ms)", Number::Whole(0)),
        Line::new("TOTAL_GC_TIME_%", "Time(%)", Number::Real(0.0)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measuring(pairs: &[(&str, &str)]) -> Result<Measuring> {
        let mut properties = Properties::default();
        for (name, value) in pairs {
            properties.set(name, value);
        }
        Measuring::new(&properties)
    }

    fn names(pairs: &[(&str, &str)]) -> Vec<String> {
        let measuring = measuring(pairs).unwrap();
        let (mut sheet, origin) = (Sheet::default(), Instant::now());
        let begun = origin + Duration::from_micros(40);
        let span = Span { intended: Some(origin), begun, ended: origin + Duration::from_micros(100) };
        sheet.add("READ", Status::Ok, span, origin, &measuring);
        sheet.add("READ", Status::Timeout, span, origin, &measuring);
        let lines = sheet.lines(&measuring).into_iter().map(|line| line.text());
        lines.filter(|line| line.contains("Average") || line.contains("Return")).collect()
    }

    #[test]
    fn failures_are_measured_apart_and_counted_by_status() {
        assert_eq!(
            names(&[]),
            [
                "[READ], AverageLatency(us), 60.0",
                "[READ], Return=OK, 1",
                "[READ], Return=TIMEOUT, 1",
                "[READ-FAILED], AverageLatency(us), 60.0",
            ]
        );
        assert_eq!(names(&[("latencytrackederrors", "TIMEOUT,ERROR")])[3], "[READ-TIMEOUT], AverageLatency(us), 60.0");
    }

    #[test]
    fn latencies_from_the_intended_start_have_their_own_names_beside_the_others() {
        let both = names(&[("measurement.interval", "both")]);
        assert!(both.contains(&"[READ], AverageLatency(us), 60.0".into()), "{both:?}");
        assert!(both.contains(&"[Intended-READ], AverageLatency(us), 100.0".into()), "{both:?}");
        let intended = names(&[("measurement.interval", "intended")]);
        assert_eq!(intended[..2], ["[READ], AverageLatency(us), 100.0", "[READ], Return=OK, 1"]);
    }

    #[test]
    fn unknown_words_are_told_with_those_there_are() {
        for (pair, part) in [
            (("measurementtype", "hdr"), "hdrhistogram+raw"),
            (("measurement.interval", "x"), "intended"),
            (("hdrhistogram.percentiles", "50,x"), "50,95,99.9"),
            (("histogram.buckets", "0"), "histogram.buckets=0"),
        ] {
            let message = measuring(&[pair]).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
