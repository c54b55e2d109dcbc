//! Workloads and a sweep on a real HBase, by the Thrift 2 gateway at the address in `PERISTYLE_HBASE_THRIFT2`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use common::{Ended, folder, run};
use serde_json::Value;

/// The URI of a namespace that no other test uses; `None`, with a word about it, where there is no gateway and none is
/// required.
fn target(test: &str) -> Option<String> {
    let Ok(address) = std::env::var("PERISTYLE_HBASE_THRIFT2") else {
        let required = std::env::var("REQUIRE_BACKENDS").unwrap_or_default();
        assert!(
            !required.split(',').any(|backend| backend.trim() == "hbase"),
            "PERISTYLE_HBASE_THRIFT2 is not set, but hbase is required"
        );
        eprintln!("ignored: PERISTYLE_HBASE_THRIFT2 is not set");
        return None;
    };
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos();
    Some(format!("hbase://{address}/tuner_{test}_{nanos}"))
}

fn result(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn every_workload_runs_with_several_rows_in_a_request() {
    let Some(target) = target("workloads") else { return };
    let files = folder();
    let list = run(files.path(), &["workloads"]).stdout;
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"property-range") && names.contains(&"title-read"), "{list}");
    for name in names {
        // Fewer rows than it has of itself.
        let text = run(files.path(), &["workloads", name]).stdout;
        let short = |line: &str| {
            let count = line.strip_prefix("count = ").and_then(|count| count.trim().parse::<u64>().ok());
            count.map_or_else(|| line.to_owned(), |count| format!("count = {}", count.min(2_000)))
        };
        let lines: Vec<String> = text.lines().map(short).collect();
        let file = format!("{name}.toml");
        fs::write(files.path().join(&file), lines.join("\n")).unwrap();
        let subject = ["--target", &target, "--workload", &file, "--create"];
        let loaded = run(files.path(), &[&["load"], &subject[..]].concat());
        assert_eq!(loaded.code, Some(0), "{name}: {loaded:?}");
        let point = ["--threads", "4", "--pool", "2", "--batch", "8", "--budget", "6s", "--json"];
        let ended = run(files.path(), &[&["run"], &subject[..], &point[..]].concat());
        assert!(matches!(ended.code, Some(0 | 4 | 5)), "{name}: {}", ended.stderr);
        let result = result(&ended);
        assert!(result["peak"]["rows_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{name}: {result}");
        assert_eq!((&result["peak"]["pool"], &result["peak"]["errors"]), (&2.into(), &0.into()), "{name}: {result}");
    }
}

#[test]
fn a_sweep_of_gateway_connections_and_rows_per_request_ends_within_its_budget() {
    let Some(target) = target("sweep") else { return };
    let files = folder();
    let space = ["--threads", "1..32", "--pool", "1..8", "--batch", "1..64", "--budget", "40s", "--json"];
    let ended = run(files.path(), &[&["sweep", "--target", &target, "--create"], &space[..]].concat());
    assert!(matches!(ended.code, Some(0 | 4 | 5)), "{ended:?}");
    let result = result(&ended);
    assert!(result["environment"]["spent_s"].as_f64().unwrap() <= 40.5, "{result}");
    assert!(result["peak"]["rows_per_s"].as_f64().unwrap() > 0.0, "{result}");
    assert_eq!(result["peak"]["errors"], 0, "{result}");
}
