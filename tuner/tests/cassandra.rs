//! A sweep of a real Cassandra, at the address in `PERISTYLE_CQL`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod front;

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use common::{Ended, folder, run};
use front::Front;
use serde_json::Value;

/// The address of the server; `None`, with a word about it, where there is none and none is required.
fn address() -> Option<String> {
    let Ok(address) = std::env::var("PERISTYLE_CQL") else {
        let required = std::env::var("REQUIRE_BACKENDS").unwrap_or_default();
        assert!(
            !required.split(',').any(|backend| backend.trim() == "cql"),
            "PERISTYLE_CQL is not set, but cql is required"
        );
        eprintln!("ignored: PERISTYLE_CQL is not set");
        return None;
    };
    Some(address)
}

/// The URI of a keyspace that no other test uses, on the server at an address.
fn keyspace(address: &str, test: &str) -> String {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos();
    format!("cql://{address}/tuner_{test}_{nanos}")
}

/// The URI of such a keyspace on the server, if there is one.
fn target(test: &str) -> Option<String> {
    Some(keyspace(&address()?, test))
}

fn result(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn an_absent_keyspace_or_table_is_refused_until_it_may_be_made() {
    let Some(target) = target("absent") else { return };
    let files = folder();
    let arguments = ["run", "--target", &target, "--threads", "4", "--budget", "10s", "--json"];
    let refused = run(files.path(), &arguments);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--create") && refused.stderr.trim_end().lines().count() == 1, "{refused:?}");
    assert_eq!(fs::read_dir(files.path()).unwrap().count(), 0);
    let made = run(files.path(), &[&arguments[..], &["--create"]].concat());
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(result(&made)["peak"]["rows_per_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn rows_that_were_loaded_are_read() {
    let Some(target) = target("load") else { return };
    let files = folder();
    let subject = ["--target", &target, "--workload", "property-range", "--create"];
    let empty = run(files.path(), &[&["sweep"], &subject[..]].concat());
    assert_eq!(empty.code, Some(2), "{empty:?}");
    assert!(empty.stderr.contains("tuner load"), "{empty:?}");
    let loaded = run(files.path(), &[&["load"], &subject[..]].concat());
    assert_eq!(loaded.code, Some(0), "{loaded:?}");
    let read = run(files.path(), &[&["run"], &subject[..], &["--threads", "4", "--budget", "10s", "--json"]].concat());
    let result = result(&read);
    assert!(result["peak"]["rows_per_s"].as_f64().unwrap() > 0.0, "{read:?}");
    assert!(!result["why"].to_string().contains("not there"), "{result}");
}

/// The result of a sweep that ended by itself.
fn swept(folder: &Path, target: &str, arguments: &[&str]) -> Value {
    let ended = run(folder, &[&["sweep", "--target", target, "--create", "--json"], arguments].concat());
    assert!(matches!(ended.code, Some(0 | 4 | 5)), "{ended:?}");
    result(&ended)
}

#[test]
fn a_sweep_ends_by_itself_within_its_budget() {
    let Some(target) = target("sweep") else { return };
    let files = folder();
    let ranges = ["--threads", "1..32", "--pool", "1..2", "--batch", "1..4", "--budget", "40s"];
    let result = swept(files.path(), &target, &ranges);
    assert!(result["environment"]["spent_s"].as_f64().unwrap() <= 40.5, "{result}");
    assert!(result["peak"]["rows_per_s"].as_f64().unwrap() > 0.0, "{result}");
    assert_eq!(result["peak"]["errors"], 0, "{result}");
}

#[test]
fn the_choice_of_a_sweep_is_measured_beside_the_defaults() {
    let Some(target) = target("beside") else { return };
    let files = folder();
    let ranges = ["--threads", "1..16", "--pool", "1", "--batch", "1..8", "--budget", "25s", "--against-defaults"];
    let result = swept(files.path(), &target, &ranges);
    let (chosen, other) = (&result["beside"]["chosen"], &result["beside"]["other"]);
    assert_eq!((other["threads"].as_u64(), other["batch"].as_u64()), (Some(32), Some(1)), "{result}");
    assert_eq!((&chosen["errors"], &other["errors"]), (&Value::from(0), &Value::from(0)), "{result}");
    assert!(chosen["rows_per_s"].as_f64().unwrap() > 0.0, "{result}");
    let interval = result["beside"]["compared"]["ci95"].as_array().unwrap();
    let ratio = result["beside"]["compared"]["ratio"].as_f64().unwrap();
    assert!(interval[0].as_f64().unwrap() <= ratio && ratio <= interval[1].as_f64().unwrap(), "{result}");
}

/// The field's story: a service with more threads than one connection takes sees errors, and with more connections none.
#[test]
fn more_threads_fail_on_one_connection_and_more_connections_cure_it() {
    let Some(server) = address() else { return };
    let front = Front { server: server.parse().unwrap(), most: 56, away: Duration::from_millis(50) };
    let (address, _runtime) = front.listen();
    let target = keyspace(&address.to_string(), "front");
    let files = folder();
    let run_of = |threads| {
        let point = ["--threads", threads, "--pool", "1", "--budget", "10s", "--create", "--json"];
        result(&run(files.path(), &[&["run", "--target", &target][..], &point[..]].concat()))
    };
    let (few, many) = (run_of("16"), run_of("64"));
    assert_eq!((&few["peak"]["errors"], &few["ceiling"]), (&0.into(), &Value::Null), "{few}");
    assert_eq!((&many["verdict"], &many["limit"]), (&"no_feasible_point".into(), &"errors".into()), "{many}");
    assert_eq!(many["ceiling"]["cause"], "overloaded", "{many}");

    let ranges = ["--threads", "64", "--io-threads", "1..2", "--pool", "1..4", "--batch", "1", "--budget", "35s"];
    let swept = swept(files.path(), &target, &[&ranges[..], &["--out", "out"]].concat());
    let chosen = if swept["knee"].is_null() { &swept["peak"] } else { &swept["knee"] };
    assert!(chosen["pool"].as_u64().unwrap() > 1 && chosen["rows_per_s"].as_f64().unwrap() > 0.0, "{swept}");
    assert_eq!(chosen["errors"], 0, "{swept}");
    let ceiling = &swept["ceiling"];
    assert_eq!((&ceiling["pool"], &ceiling["cause"]), (&1.into(), &"overloaded".into()), "{swept}");
    let page = fs::read_to_string(files.path().join("out/report.html")).unwrap();
    let why = swept["why"].to_string();
    for told in ["1 pool fail with overloaded; 64 threads with", "pool don't", "too many requests on this connection"] {
        assert!(why.contains(told) && page.contains(told), "{told}: {swept}");
    }
}
