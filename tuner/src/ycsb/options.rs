//! YCSB's command line.

use std::path::{Path, PathBuf};

use super::export::Exporter;
use super::properties::Properties;
use crate::failure::{Failure, Result};
use crate::space::Span;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Records are inserted.
    Load,
    /// The mix of operations.
    Run,
    /// The same, again and again, to find how many threads are best.
    Sweep,
}

/// A command line, read.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) phase: Phase,
    pub(crate) properties: Properties,
    /// The name of the first file of properties, else `ycsb`.
    pub(crate) workload: String,
    /// What a sweep takes beside YCSB's options.
    pub(crate) search: SearchOptions,
}

/// What a sweep takes as `tuner sweep` does.
#[derive(Debug, Default)]
pub(crate) struct SearchOptions {
    pub(crate) io_threads: Option<Span>,
    pub(crate) pool: Option<Span>,
    pub(crate) batch: Option<Span>,
    pub(crate) out: Option<PathBuf>,
}

impl SearchOptions {
    /// Takes one of these with its value.
    fn take(&mut self, option: &str, value: &str) -> Result<()> {
        let span = || value.parse().map(Some).map_err(|why| Failure::input(format!("{option} {value}: {why}")));
        match option {
            "--io-threads" => self.io_threads = span()?,
            "--pool" => self.pool = span()?,
            "--batch" => self.batch = span()?,
            _ => self.out = Some(value.into()),
        }
        Ok(())
    }
}

/// Its names.
const SEARCH: [&str; 4] = ["--io-threads", "--pool", "--batch", "--out"];

/// Options with a value, each with the property that it sets.
const VALUED: [(&str, &str); 4] = [("-threads", "threadcount"), ("-target", "target"), ("-db", "db"), ("-l", "label")];
/// Options without.
const FLAGS: [(&str, &str, &str); 3] =
    [("-s", "status", "true"), ("-load", "dotransactions", "false"), ("-t", "dotransactions", "true")];

/// The core workloads.
const WORKLOADS: [(&str, &str); 6] = [
    ("workloada", include_str!("workloads/workloada")),
    ("workloadb", include_str!("workloads/workloadb")),
    ("workloadc", include_str!("workloads/workloadc")),
    ("workloadd", include_str!("workloads/workloadd")),
    ("workloade", include_str!("workloads/workloade")),
    ("workloadf", include_str!("workloads/workloadf")),
];

impl Options {
    /// Reads what stands behind `load`, `run` or `sweep`. Properties of the command line count more than those of files, and
    /// later files more than earlier ones.
    pub(crate) fn parse(phase: Phase, arguments: &[String]) -> Result<Self> {
        let (mut files, mut given) = (Properties::default(), Properties::default());
        let (mut workload, mut search) = (None, SearchOptions::default());
        let mut arguments = arguments.iter();
        let mut is_first = true;
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| Failure::input(format!("{argument} takes a value")));
            if let Some((_, property)) = VALUED.iter().find(|(option, _)| option == argument) {
                given.set(property, value()?);
            } else if let Some((_, property, value)) = FLAGS.iter().find(|(option, ..)| option == argument) {
                given.set(property, value);
            } else if argument == "-P" {
                let path = value()?;
                files.extend(file(path)?);
                workload = workload.or_else(|| Some(Path::new(path).file_stem()?.to_string_lossy().into_owned()));
            } else if phase == Phase::Sweep && SEARCH.contains(&argument.as_str()) {
                search.take(argument, value()?)?;
            } else if argument == "-p" {
                let pair = value()?;
                let (name, value) = pair.split_once('=').ok_or_else(|| {
                    Failure::input(format!("-p {pair}: give name=value, such as operationcount=1000"))
                })?;
                given.set(name.trim(), value);
            } else if is_first && !argument.starts_with('-') {
                // As in `bin/ycsb run cassandra-cql -P …`.
                given.set("db", argument);
            } else {
                return Err(Failure::input(format!(
                    "unknown option {argument}; there are -P, -p, -threads, -target, -db, -s, -l, -load and -t"
                )));
            }
            is_first = false;
        }
        files.extend(given);
        let phase = match files.get("dotransactions").map(|_| files.flag("dotransactions", true)) {
            Some(false) if phase == Phase::Run => Phase::Load,
            Some(true) if phase == Phase::Load => Phase::Run,
            _ => phase,
        };
        Ok(Self { phase, properties: files, workload: workload.unwrap_or_else(|| "ycsb".into()), search })
    }

    /// How many workers: of a sweep a range, 1 to 512 by default.
    pub(crate) fn threads(&self) -> Result<Span> {
        if let (Phase::Sweep, given) = (self.phase, self.properties.get("threadcount")) {
            let range = given.map_or(Ok(Span::up_to(512)), |text| text.trim().parse());
            return range.map_err(|why| Failure::input(format!("threadcount={}: {why}", given.unwrap_or_default())));
        }
        match self.properties.number("threadcount", 1)? {
            0 => Err(Failure::input("-threads 0 does nothing; give 1 at least")),
            threads => Ok(Span::fixed(threads)),
        }
    }

    /// Operations per second of all workers together, where they are limited.
    pub(crate) fn rate(&self) -> Result<Option<f64>> {
        let rate: f64 = self.properties.number("target", 0.0)?;
        if !rate.is_finite() || rate < 0.0 {
            return Err(Failure::input(format!("target={rate} is no rate; give operations per second")));
        }
        Ok((rate > 0.0).then_some(rate))
    }

    /// Seconds after which it ends; 0 for never.
    pub(crate) fn seconds(&self) -> Result<u64> {
        self.properties.number("maxexecutiontime", 0)
    }

    /// How many operations; `None` without end, where there is a time instead.
    pub(crate) fn operations(&self) -> Result<Option<u64>> {
        let has_time = self.seconds()? > 0;
        match self.properties.get("operationcount") {
            None if !has_time => Err(Failure::input(
                "operationcount is missing; set it with -p operationcount=N, or a time with -p maxexecutiontime=SECONDS",
            )),
            _ => match self.properties.number("operationcount", 0)? {
                0 if has_time => Ok(None),
                0 => Err(Failure::input("operationcount=0 does nothing; give 1 at least, or a maxexecutiontime")),
                operations => Ok(Some(operations)),
            },
        }
    }

    /// How many records a load inserts is said somewhere.
    pub(crate) fn demand_records(&self) -> Result<()> {
        let given = ["recordcount", "insertcount"].iter().find_map(|name| self.properties.get(name));
        match given {
            None => Err(Failure::input("recordcount is missing; set it with -p recordcount=N")),
            Some(_) if self.properties.number("recordcount", 1_u64)? == 0 => {
                Err(Failure::input("recordcount=0 loads nothing; give 1 at least"))
            }
            Some(_) => Ok(()),
        }
    }

    /// Seconds between status lines, where they are wanted.
    pub(crate) fn status_interval(&self) -> Result<Option<u64>> {
        let seconds: u64 = self.properties.number("status.interval", 10)?;
        Ok(self.properties.flag("status", false).then_some(seconds.max(1)))
    }

    /// The form of the results.
    pub(crate) fn exporter(&self) -> Result<Exporter> {
        let Some(name) = self.properties.get("exporter") else { return Ok(Exporter::Text) };
        Exporter::find(name).ok_or_else(|| {
            Failure::input(format!(
                "exporter={name} is unknown; use site.ycsb.measurements.exporter.TextMeasurementsExporter or JSONMeasurementsExporter"
            ))
        })
    }
}

/// A properties file, or one of the core workloads by name where there is no such file.
fn file(path: &str) -> Result<Properties> {
    match WORKLOADS.iter().find(|(name, _)| *name == path && !Path::new(path).exists()) {
        Some((name, text)) => Properties::parse(text).map_err(|why| Failure::input(format!("{name}: {why}"))),
        None => Properties::load(Path::new(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options> {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Options::parse(Phase::Run, &arguments)
    }

    #[test]
    fn the_command_line_counts_more_than_files_and_later_files_more_than_earlier() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        std::fs::write(&one, "recordcount=1\noperationcount=1\ntarget=1").unwrap();
        std::fs::write(&two, "recordcount=2\noperationcount=2").unwrap();
        let (one, two) = (one.to_str().unwrap(), two.to_str().unwrap());
        let options = parse(&["-p", "recordcount=3", "-P", one, "-P", two, "-threads", "5", "-s"]).unwrap();
        let properties = &options.properties;
        assert_eq!(
            ["recordcount", "operationcount", "target"].map(|name| properties.get(name).unwrap()),
            ["3", "2", "1"]
        );
        assert_eq!((options.threads().unwrap().lo(), options.status_interval().unwrap()), (5, Some(10)));
    }

    #[test]
    fn the_core_workloads_are_there_by_name() {
        for (name, text) in WORKLOADS {
            let properties = parse(&["-P", name]).unwrap().properties;
            assert_eq!(properties.get("workload"), Some("site.ycsb.workloads.CoreWorkload"), "{text}");
            assert!(super::super::warnings(&properties).is_empty());
            super::super::Core::new(&properties, &["field0".into()]).unwrap();
        }
    }

    #[test]
    fn the_binding_may_stand_first_and_flags_choose_the_phase() {
        let options = parse(&["cassandra-cql", "-load"]).unwrap();
        assert_eq!((options.properties.get("db"), options.phase), (Some("cassandra-cql"), Phase::Load));
    }

    #[test]
    fn a_sweep_takes_ranges_and_a_folder_that_no_other_command_takes() {
        let arguments = ["-P", "workloadd", "--io-threads", "1..2", "--batch", "8", "--out", "runs/x"];
        let arguments = arguments.map(str::to_owned);
        let options = Options::parse(Phase::Sweep, &arguments).unwrap();
        let search = &options.search;
        assert_eq!((search.io_threads.unwrap().hi(), search.batch, search.pool), (2, Some(Span::fixed(8)), None));
        assert_eq!((options.workload.as_str(), search.out.as_deref()), ("workloadd", Some(Path::new("runs/x"))));
        assert!(Options::parse(Phase::Run, &arguments).unwrap_err().to_string().contains("--io-threads"));
    }

    #[test]
    fn what_can_not_be_meant_is_refused() {
        for (arguments, part) in [
            (&["-P"][..], "-P takes a value"),
            (&["-P", "/no/such/file"], "/no/such/file"),
            (&["-p", "recordcount"], "name=value"),
            (&["-x"], "unknown option -x"),
            (&["-s", "stray"], "unknown option stray"),
        ] {
            let message = parse(arguments).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let of = |pair: &str| parse(&["-p", pair]).unwrap();
        assert!(of("operationcount=0").operations().is_err() && parse(&[]).unwrap().operations().is_err());
        assert_eq!(of("maxexecutiontime=5").operations().unwrap(), None);
        assert!(of("threadcount=0").threads().is_err() && of("threadcount=x").threads().is_err());
        assert!(of("target=-1").rate().is_err() && of("recordcount=0").demand_records().is_err());
    }
}
