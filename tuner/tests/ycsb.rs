//! YCSB's command line as its users know it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use common::{Ended, folder, tuner};
use serde_json::Value;

/// Runs `tuner ycsb` in a folder of its own.
fn run(arguments: &[&str]) -> Ended {
    common::run(folder().path(), &[&["ycsb"], arguments].concat())
}

/// The value of a line of a result.
fn value(ended: &Ended, metric: &str, measurement: &str) -> Option<f64> {
    let start = format!("[{metric}], {measurement}, ");
    ended.stdout.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok())
}

#[test]
fn every_core_workload_runs_on_what_was_loaded_and_finds_it_intact() {
    let dir = folder();
    let db = format!("embedded:{}", dir.path().join("db").display());
    let common = ["-db", &db, "-threads", "4", "-p", "dataintegrity=true", "-p", "recordcount=500"];
    let create = ["-p", "peristyle.create=true", "-p", "peristyle.batchsize=7"];
    let loaded = run(&[&["load", "-P", "workloada"], &common[..], &create].concat());
    assert_eq!((loaded.code, value(&loaded, "INSERT", "Operations")), (Some(0), Some(500.0)), "{}", loaded.stderr);
    for workload in ["workloada", "workloadb", "workloadc", "workloadd", "workloade", "workloadf"] {
        let operations = ["-p", "operationcount=300"];
        let ran = run(&[&["run", "-P", workload], &common[..], &operations].concat());
        assert_eq!(ran.code, Some(0), "{workload}: {}", ran.stderr);
        let metrics = ["READ", "UPDATE", "INSERT", "SCAN"];
        let ok: f64 = metrics.iter().filter_map(|metric| value(&ran, metric, "Return=OK")).sum();
        let doubled = value(&ran, "READ-MODIFY-WRITE", "Operations").unwrap_or_default();
        assert!((ok - doubled - 300.0).abs() < 0.5, "{workload}: {}", ran.stdout);
        assert_eq!(value(&ran, "VERIFY", "Return=OK"), value(&ran, "READ", "Return=OK"), "{workload}");
        assert!(!ran.stdout.contains("FAILED"), "{workload}: {}", ran.stdout);
    }
}

#[test]
fn records_that_are_not_as_demanded_are_reported_and_end_with_1() {
    let (dir, integrity) = (folder(), ["-p", "dataintegrity=true"]);
    let db = format!("embedded:{}", dir.path().join("db").display());
    let load = ["load", "-P", "workloadc", "-db", &db, "-p", "recordcount=20", "-p", "peristyle.create=true"];
    assert_eq!(run(&load).code, Some(0));
    let ran = run(&[&["run", "-P", "workloadc", "-db", &db, "-p", "recordcount=20"], &integrity[..]].concat());
    assert_eq!((ran.code, value(&ran, "VERIFY", "Return=UNEXPECTED_STATE")), (Some(1), Some(1000.0)), "{}", ran.stdout);
}

#[test]
fn bad_input_ends_with_2_a_message_and_nothing_like_a_result() {
    let workload = ["-P", "workloada"];
    for (arguments, part) in [
        (&["run", "-P", "/no/such/file"][..], "/no/such/file"),
        (&["run", "-P", "workloada", "-p", "workload=site.ycsb.workloads.None"], "site.ycsb.workloads.None"),
        (&["run", "-P", "workloada", "-p", "operationcount=0"], "operationcount=0"),
        (&["run", "-P", "workloada", "-p", "operationcount=many"], "operationcount=many"),
        (&["run", "-P", "workloada", "-threads", "0"], "-threads 0"),
        (&["run", "-P", "workloada", "-threads", "x"], "threadcount=x"),
        (&["run", "-P", "workloada", "-db", "cql://127.0.0.1:1/ks"], "127.0.0.1:1"),
        (&["run", "-P", "workloada", "-db", "site.ycsb.db.Unknown"], "Unknown"),
        (&["run", "-P", "workloada", "-p", "exporter=x"], "exporter=x"),
        (&["load", "-p", "fieldcount=x", "-p", "recordcount=5"], "fieldcount=x"),
        (&["load"], "recordcount is missing"),
    ] {
        let ended = run(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.lines().count() == 1 && ended.stderr.contains(part), "{arguments:?}: {}", ended.stderr);
    }
    assert_eq!(run(&[&["run"], &workload[..]].concat()).code, Some(0));
}

#[test]
fn results_go_to_a_file_as_valid_json_and_histograms_beside_it() {
    let dir = folder();
    let file = dir.path().join("result.json");
    let exporter = "exporter=site.ycsb.measurements.exporter.JSONMeasurementsExporter";
    let export = format!("exportfile={}", file.display());
    let logs = format!("hdrhistogram.output.path={}/", dir.path().display());
    let properties = [exporter, &export, "hdrhistogram.fileoutput=true", &logs, "measurement.interval=both"];
    let properties: Vec<&str> = properties.into_iter().flat_map(|property| ["-p", property]).collect();
    let ran = run(&[&["run", "-P", "workloada", "-target", "5000", "-s"], &properties[..]].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    let lines: Vec<Value> = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let has = |metric: &str| lines.iter().any(|line| line["metric"] == metric && line["value"].is_number());
    assert!(["OVERALL", "READ", "Intended-READ", "CLEANUP"].iter().all(|metric| has(metric)), "{lines:?}");
    assert!(fs::read_to_string(dir.path().join("READ.hdr")).unwrap().contains("[Logging for: READ]"));
    assert!(ran.stderr.contains(" operations; ") && ran.stderr.contains("[READ: Count="), "{}", ran.stderr);
}

#[test]
fn a_time_ends_the_run_where_there_is_no_count() {
    let time = ["-p", "operationcount=0", "-p", "maxexecutiontime=1", "-p", "measurementtype=timeseries"];
    let ran = run(&[&["run", "-P", "workloadb", "-target", "100"], &time[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(value(&ran, "READ", "0").is_some() && value(&ran, "OVERALL", "RunTime(ms)").unwrap() >= 1_000.0);
}

#[test]
fn ctrl_c_prints_the_results_so_far_and_ends_with_130() {
    let dir = folder();
    let endless = ["ycsb", "run", "-P", "workloada", "-s", "-p", "operationcount=0", "-p", "maxexecutiontime=600"];
    let command = tuner(dir.path()).args(endless).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = command.unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    // The first status line tells that the run has begun.
    assert!(stderr.any(|line| line.unwrap().contains(" 0 sec: ")));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(value(&ended, "OVERALL", "RunTime(ms)").is_some() && value(&ended, "CLEANUP", "Operations").is_some());
}

#[test]
fn a_sweep_writes_what_it_found_and_prints_the_result_of_the_window_that_it_chose() {
    let dir = folder();
    let arguments =
        ["ycsb", "sweep", "-P", "workloadd", "-p", "recordcount=1000", "-threads", "1..2", "--io-threads", "1..2"];
    let more = ["--batch", "1..2", "-p", "maxexecutiontime=10", "--out", "found"];
    let ran = common::run(dir.path(), &[&arguments[..], &more].concat());
    // On a machine that others use, too, windows may differ too much, or be too few.
    assert!(matches!(ran.code, Some(0 | 4 | 5)), "{ran:?}");
    let read = |name: &str| fs::read_to_string(dir.path().join("found").join(name)).unwrap();
    let result: Value = serde_json::from_str(&read("result.json")).unwrap();
    assert_eq!((&result["workload"], &result["settings"]["batch"]), (&Value::from("workloadd"), &Value::from("1..2")));
    let chosen = if result["knee"].is_null() { &result["peak"] } else { &result["knee"] };
    assert!(read("points.csv").lines().count() > 1 && read("report.html").contains("workloadd"));
    assert_eq!(!chosen.is_null(), value(&ran, "READ", "Return=OK").is_some(), "{ran:?}");
    if !chosen.is_null() {
        assert!(chosen["p99_ms"].as_f64().unwrap() > 0.0, "{result}");
        assert!(read("tuned.toml").contains(&format!("threads = {}", chosen["threads"])));
    }
    let again = common::run(dir.path(), &[&arguments[..], &more].concat());
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("another run"), "{again:?}");
    assert_eq!(run(&["sweep", "-P", "workloadc", "-threads", "0..4"]).code, Some(2));
}
