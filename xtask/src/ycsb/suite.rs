//! The core workloads by the real YCSB and by `tuner ycsb`, each on what the other loaded.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::build::{Home, Library};
use super::check::Results;
use crate::cargo::{self, Cargo, root};
use crate::examples::create_keyspace;
use crate::servers::Servers;
use crate::step::seconds;

const WORKLOADS: [&str; 6] = ["workloada", "workloadb", "workloadc", "workloadd", "workloade", "workloadf"];
const RECORDS: u32 = 400;
const OPERATIONS: u32 = 300;

/// Who runs a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runner {
    Ycsb,
    Tuner,
}

/// Runs all of it; a failure doesn't keep the rest from running.
pub(crate) fn run(servers: &Servers) -> Result<(), String> {
    let home = Home::build(Library::Faults)?;
    Cargo::new(["build", "-p", "peristyle-tuner"]).run()?;
    let suite = Suite { tuner: Cargo::target_folder()?.join("debug/tuner"), home };
    let mut failures = Vec::new();
    failures.extend(suite.compare_generators().err());
    let folder = std::env::temp_dir().join(format!("peristyle-ycsb-{}", std::process::id()));
    let mut uris = vec![format!("embedded:{}", folder.display())];
    match servers.cassandra.as_ref().map_or(Err("Cassandra is not up".into()), create_keyspace) {
        Ok(uri) => uris.push(uri),
        Err(reason) => failures.push(format!("not run on Cassandra: {reason}")),
    }
    match &servers.hbase {
        Some(hbase) => uris.push(hbase.uri()),
        None => failures.push("not run on HBase: HBase is not up".into()),
    }
    for uri in &uris {
        failures.extend(suite.contract(uri).err());
        for loader in [Runner::Ycsb, Runner::Tuner] {
            failures.extend(suite.exchange(uri, loader));
        }
    }
    // What is left of it is in the way of nobody.
    let _ = fs::remove_dir_all(&folder);
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

struct Suite {
    home: Home,
    tuner: std::path::PathBuf,
}

impl Suite {
    /// Loads a table by one and runs every workload on it by the other.
    fn exchange(&self, uri: &str, loader: Runner) -> Vec<String> {
        let (table, reader) = match loader {
            Runner::Ycsb => ("by_ycsb", Runner::Tuner),
            Runner::Tuner => ("by_tuner", Runner::Ycsb),
        };
        if let Err(failure) = self.workload(loader, uri, table, "load", "workloada", RECORDS) {
            return vec![failure];
        }
        let runs = WORKLOADS.iter().map(|workload| self.workload(reader, uri, table, "run", workload, OPERATIONS));
        runs.filter_map(Result::err).collect()
    }

    fn workload(
        &self,
        runner: Runner,
        uri: &str,
        table: &str,
        phase: &str,
        workload: &str,
        operations: u32,
    ) -> Result<(), String> {
        let begun = Instant::now();
        let mut command = match runner {
            Runner::Ycsb => self.home.ycsb(),
            Runner::Tuner => {
                let mut command = Command::new(&self.tuner);
                command.arg("ycsb");
                command
            }
        };
        command.arg(phase).arg("-P").arg(root().join("tuner/src/ycsb/workloads").join(workload));
        command.args(["-threads", "4"]);
        // Reads of other workloads may come before the inserts that they are of, where nobody waits for them.
        let asynchronous = workload == "workloada" && runner == Runner::Ycsb;
        for (name, value) in [
            ("peristyle.uri", uri),
            ("table", table),
            ("recordcount", &RECORDS.to_string()),
            ("operationcount", &OPERATIONS.to_string()),
            ("dataintegrity", "true"),
            ("zeropadding", "12"),
            ("peristyle.create", "true"),
            ("peristyle.buckets", "4"),
            ("peristyle.async", if asynchronous { "true" } else { "false" }),
            ("peristyle.batchsize", if phase == "load" { "7" } else { "1" }),
        ] {
            command.arg("-p").arg(format!("{name}={value}"));
        }
        let what = format!("{phase} of {workload} by {runner:?} into {table} at {uri}");
        let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{what}: {error}"))?;
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let checked = if output.status.success() {
            Results::parse(&stdout).expect(operations)
        } else {
            Err(format!("ended with {}", output.status))
        };
        match checked {
            Ok(()) => println!("{what}: {operations} well ({})", seconds(begun.elapsed())),
            Err(why) => {
                println!("{what}: {why}\n{stdout}{stderr}");
                return Err(format!("{what}: {why}"));
            }
        }
        Ok(())
    }

    /// What YCSB's own client never asks of a binding.
    fn contract(&self, uri: &str) -> Result<(), String> {
        let mut command = self.home.java("Contract.java");
        command.arg(uri);
        cargo::run(command).map_err(|why| format!("the binding at {uri}: {why}"))
    }

    /// Compares our distributions and hashes with what YCSB's own generators give now.
    fn compare_generators(&self) -> Result<(), String> {
        let output = self.home.java("Samples.java").stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("java: {error}"))?;
        if !output.status.success() {
            return Err(format!("the samples of YCSB's generators ended with {}", output.status));
        }
        let file = Cargo::target_folder()?.join("ycsb/samples.csv");
        fs::write(&file, &output.stdout).map_err(|error| format!("{}: {error}", file.display()))?;
        let test = Cargo::new(["test", "-p", "peristyle-tuner", "--lib", "of_ycsb"]);
        test.env("PERISTYLE_YCSB_SAMPLES", &file.display().to_string()).run()
    }
}
