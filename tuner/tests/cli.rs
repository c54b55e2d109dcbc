//! The command line as a user meets it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Ended, folder, run, tuner};
use serde_json::Value;

/// A sweep that is over soon, on the engine in memory.
const SHORT: [&str; 12] = [
    "sweep",
    "--target",
    "memory:",
    "--threads",
    "1..4",
    "--io-threads",
    "1",
    "--batch",
    "1..4",
    "--budget",
    "12s",
    "--out",
];

/// Every mistake is one line on standard error that contains all of `words`, code 2, and leaves nothing behind.
fn refused(arguments: &[&str], words: &[&str]) {
    let folder = folder();
    let ended = run(folder.path(), arguments);
    assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
    assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{arguments:?}: {}", ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "{arguments:?}: {:?} lacks {word:?}", ended.stderr);
    }
    assert!(ended.stdout.is_empty(), "{arguments:?}: {}", ended.stdout);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{arguments:?} left files");
}

#[test]
fn an_unknown_scheme_is_refused() {
    refused(&["sweep", "--target", "mongodb://h/db"], &["\"mongodb\"", "cql://host:9042/keyspace"]);
    refused(&["run", "--target", "127.0.0.1:9042"], &["embedded:"]);
    refused(&["load", "--target", "postgres://h"], &["\"postgres\""]);
}

#[test]
fn impossible_ranges_are_refused() {
    refused(&["sweep", "--threads", "8..2"], &["8..2", "--threads", "2..8"]);
    refused(&["sweep", "--pool", "0..2"], &["--pool", "start at 1"]);
    refused(&["sweep", "--batch", "many"], &["--batch", "\"many\""]);
    refused(&["sweep", "--threads", "1..99999999"], &["--threads", "16384"]);
    refused(&["run", "--threads", "1..8"], &["--threads 1..8", "tuner sweep"]);
    refused(&["sweep", "--budget", "soon"], &["--budget", "soon"]);
    refused(&["sweep", "--budget", "1s"], &["--budget", "2s"]);
}

#[test]
fn an_unknown_workload_gets_the_nearest_and_the_list() {
    refused(&["sweep", "--workload", "write-3b"], &["did you mean write-30b?", "title-read"]);
    refused(&["workloads", "point-raed"], &["did you mean point-read?"]);
    refused(&["sweep", "--workload", "none.toml"], &["none.toml", "No such file"]);
}

#[test]
fn a_malformed_workload_file_names_file_and_line() {
    let files = folder();
    let path = files.path().join("mine.toml");
    let good = run(files.path(), &["workloads", "write-30b"]).stdout;
    for (from, to, words) in [
        ("[rows]", "[rows", ["mine.toml:", "]"]),
        ("kind = \"put\"", "kind = \"putt\"", ["mine.toml:", "putt"]),
        ("data = {", "dato = {", ["mine.toml:", "data"]),
    ] {
        assert!(good.contains(from));
        fs::write(&path, good.replace(from, to)).unwrap();
        refused(&["sweep", "--workload", path.to_str().unwrap()], &words);
    }
    fs::write(&path, [0xff, 0xfe]).unwrap();
    refused(&["sweep", "--workload", path.to_str().unwrap()], &["mine.toml"]);
}

#[test]
fn an_unwritable_out_is_refused_before_anything_runs() {
    let files = folder();
    let file = files.path().join("file");
    fs::write(&file, "x").unwrap();
    let below = file.join("results");
    let begun = Instant::now();
    refused(&["sweep", "--out", below.to_str().unwrap()], &["--out", "results", "choose another folder"]);
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(fs::read_to_string(&file).unwrap(), "x");
}

#[test]
fn a_wrong_port_is_refused() {
    refused(&["sweep", "--target", "cql://127.0.0.1:1/ks"], &["127.0.0.1:1"]);
}

#[test]
fn an_absent_table_is_refused_unless_it_may_be_made() {
    let data = folder();
    let target = format!("embedded:{}", data.path().join("db").display());
    refused(&["run", "--target", &target], &["table basic", "--create"]);
    let made = folder();
    let out = made.path().join("out");
    let ended =
        run(made.path(), &["run", "--target", &target, "--create", "--budget", "3s", "--out", out.to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn reading_an_empty_table_names_the_command_that_fills_it() {
    let data = folder();
    let target = format!("embedded:{}", data.path().join("db").display());
    let reading = ["--target", &target, "--workload", "property-range", "--create"];
    refused(&[&["sweep"], &reading[..]].concat(), &["no rows", "tuner load"]);
    let loaded = run(data.path(), &[&["load"], &reading[..]].concat());
    assert_eq!(loaded.code, Some(0), "{loaded:?}");
    assert!(loaded.stdout.contains("500 rows into property") && loaded.stdout.contains("failed    0"), "{loaded:?}");
    let read = run(data.path(), &[&["run"], &reading[..], &["--budget", "3s"]].concat());
    assert_eq!(read.code, Some(0), "{read:?}");
    refused(&["load"], &["embedded:", "gone"]);
}

#[test]
fn a_temporary_engine_is_loaded_by_itself() {
    let files = folder();
    let arguments =
        ["run", "--target", "memory:", "--workload", "title-read", "--batch", "10", "--budget", "8s", "--json"];
    let ended = run(files.path(), &arguments);
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(result["peak"]["rows_per_s"].as_f64().unwrap() > 0.0, "{result}");
    assert!(!result["why"].to_string().contains("not there"), "{result}");
}

#[test]
fn help_is_complete_and_goes_to_standard_output() {
    let files = folder();
    let help = run(files.path(), &["sweep", "--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    for flag in [
        "--target",
        "--workload",
        "--threads",
        "--io-threads",
        "--pool",
        "--batch",
        "--budget",
        "--seed",
        "--out",
        "--create",
        "--json",
    ] {
        assert!(help.stdout.contains(flag), "{flag}");
    }
    assert_eq!(run(files.path(), &["--version"]).code, Some(0));
    assert_eq!(run(files.path(), &[]).code, Some(2));
    refused(&["sweep", "--thread", "1"], &["--thread"]);
    assert!(run(files.path(), &["completions", "bash"]).stdout.contains("tuner"));
}

#[test]
fn every_listed_workload_can_be_printed_copied_and_run() {
    let files = folder();
    let list = run(files.path(), &["workloads"]).stdout;
    assert!(list.lines().count() >= 8, "{list}");
    for line in list.lines() {
        let name = line.split_whitespace().next().unwrap();
        let text = run(files.path(), &["workloads", name]).stdout;
        let copy = files.path().join(format!("{name}.toml"));
        fs::write(&copy, text.replace("00000\n", "000\n")).unwrap();
        let copy = copy.to_str().unwrap();
        let ended = run(
            files.path(),
            &["run", "--target", "memory:", "--workload", copy, "--threads", "2", "--budget", "4s", "--json"],
        );
        assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
        let result: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(result["peak"]["rows_per_s"].as_f64().unwrap() > 0.0, "{name}: {result}");
    }
}

#[test]
fn every_file_of_a_sweep_reads_back() {
    let files = folder();
    let out = files.path().join("results");
    let ended = run(files.path(), &[&SHORT[..], &[out.to_str().unwrap(), "--json", "--seed", "7"]].concat());
    assert!(matches!(ended.code, Some(0 | 4 | 5)), "{ended:?}");
    let printed: Value = serde_json::from_str(&ended.stdout).unwrap();
    let written: Value = serde_json::from_str(&fs::read_to_string(out.join("result.json")).unwrap()).unwrap();
    assert_eq!(printed, written);
    for key in [
        "schema",
        "target",
        "workload",
        "seed",
        "verdict",
        "stop_reason",
        "windows",
        "knee",
        "peak",
        "ceiling",
        "environment",
    ] {
        assert!(written.get(key).is_some(), "{key}");
    }
    assert_eq!(
        (&written["schema"], &written["seed"], &written["workload"]),
        (&1.into(), &7.into(), &"write-30b".into())
    );
    let journal = fs::read_to_string(out.join("journal.jsonl")).unwrap();
    let lines: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(written["windows"], lines.len());
    assert!(lines.iter().all(|line| line["rows"].as_u64().unwrap() > 0 && line["p99_ms"].as_f64().unwrap() > 0.0));
    let peak = &written["peak"];
    let interval = peak["ci95"].as_array().unwrap();
    let rate = peak["rows_per_s"].as_f64().unwrap();
    assert!(interval[0].as_f64().unwrap() <= rate && rate <= interval[1].as_f64().unwrap(), "{peak}");
    for key in ["threads", "io_threads", "pool", "batch", "errors", "p50_ms", "p95_ms", "p99_ms"] {
        assert!(peak[key].is_number(), "{key}: {peak}");
    }
    let csv = fs::read_to_string(out.join("points.csv")).unwrap();
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == columns), "{csv}");
    let best: Vec<&str> =
        csv.lines().skip(1).filter(|line| line.starts_with(&format!("{},", peak["threads"]))).collect();
    assert!(!best.is_empty(), "{csv}");
}

#[tokio::test]
async fn the_sdk_loads_the_tuned_file() {
    let files = folder();
    let out = files.path().join("results");
    let ended = run(files.path(), &[&SHORT[..], &[out.to_str().unwrap()]].concat());
    assert!(matches!(ended.code, Some(0 | 4 | 5)), "{ended:?}");
    let path = out.join("tuned.toml");
    let tuned = peristyle::Tuned::load(&path).unwrap();
    let result: Value = serde_json::from_str(&fs::read_to_string(out.join("result.json")).unwrap()).unwrap();
    let chosen = if result["knee"].is_null() { &result["peak"] } else { &result["knee"] };
    assert_eq!((tuned.threads, tuned.batch), (chosen["threads"].as_u64().unwrap(), chosen["batch"].as_u64().unwrap()));
    peristyle::connect(&format!("memory:?tuned={}", path.display())).await.unwrap();
}

#[test]
fn results_of_another_run_are_not_overwritten() {
    let files = folder();
    let arguments = ["run", "--target", "memory:", "--budget", "2s", "--out", "results"];
    assert_eq!(run(files.path(), &arguments).code, Some(0));
    let before = fs::read_to_string(files.path().join("results/result.json")).unwrap();
    let again = run(files.path(), &arguments);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert_eq!(fs::read_to_string(files.path().join("results/result.json")).unwrap(), before);
}

#[test]
fn the_budget_is_a_limit_and_its_end_keeps_the_best_so_far() {
    let files = folder();
    let begun = Instant::now();
    let ended = run(files.path(), &["sweep", "--target", "memory:", "--budget", "3s", "--out", "results", "--json"]);
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "a debug build on a busy machine starts slowly, but not that slowly"
    );
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["verdict"], "budget_exhausted");
    assert!(result["environment"]["spent_s"].as_f64().unwrap() <= 3.5, "{result}");
    assert!(result["peak"]["rows_per_s"].as_f64().unwrap() > 0.0, "{result}");
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let files = folder();
    let mut child = tuner(files.path())
        .args(["sweep", "--target", "memory:", "--budget", "5m", "--out", "results", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let journal = files.path().join("results/journal.jsonl");
    let lines = || fs::read_to_string(&journal).map_or(0, |text| text.lines().count());
    while lines() < 3 {
        assert!(child.try_wait().unwrap().is_none(), "ended before it was interrupted");
        std::thread::sleep(Duration::from_millis(50));
    }
    interrupt(&child);
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["verdict"], "interrupted");
    assert_eq!(result["windows"], lines());
    assert!(files.path().join("results/points.csv").exists() && files.path().join("results/result.json").exists());
}

#[test]
fn a_second_ctrl_c_ends_at_once_and_leaves_the_journal_whole() {
    let files = folder();
    let mut child = tuner(files.path())
        .args(["sweep", "--target", "memory:", "--budget", "5m", "--out", "results"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let journal = files.path().join("results/journal.jsonl");
    let text = || fs::read_to_string(&journal).unwrap_or_default();
    while text().lines().count() < 3 {
        assert!(child.try_wait().unwrap().is_none(), "ended before it was interrupted");
        std::thread::sleep(Duration::from_millis(50));
    }
    interrupt(&child);
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(text().ends_with('\n') && text().lines().count() >= 3);
    assert!(text().lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{}", text());
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_a_server_that_never_answers() {
    // It accepts connections and says nothing: the first Ctrl-C waits for the attempt to end, which takes the time limit.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("cql://{}/ks", silent.local_addr().unwrap());
    let files = folder();
    let child = tuner(files.path())
        .args(["sweep", "--target", &target])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Once it has connected, it listens for signals too.
    let _connection = silent.accept().unwrap();
    interrupt(&child);
    std::thread::sleep(Duration::from_millis(20));
    interrupt(&child);
    let ended = Ended::of(child.wait_with_output().unwrap());
    // An end in order would have been the refusal of the target, with 2.
    assert_eq!(ended.code, Some(130), "{ended:?}");
}

fn interrupt(child: &std::process::Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

#[test]
fn a_server_that_is_not_there_can_not_be_watched() {
    refused(&["sweep", "--server-pid", "4294967295"], &["--server-pid", "no such process"]);
    refused(&["sweep", "--server-cgroup", "/nowhere"], &["--server-cgroup /nowhere", "cpu.stat"]);
}

#[test]
fn passwords_are_nowhere_in_the_output() {
    let files = folder();
    let target = "cql://me:s3cret-pw@127.0.0.1:1/ks?tls_key_password=s3cret-key";
    let ended = run(files.path(), &["sweep", "--target", target]);
    assert_eq!(ended.code, Some(2));
    assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
}

#[test]
fn the_ways_to_write_are_compared_in_a_table_a_file_and_a_picture() {
    let folder = folder();
    let arguments =
        ["paths", "--target", "memory:", "--time", "200ms", "--rounds", "2", "--threads", "4", "--out", "out"];
    let ended = run(folder.path(), &arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for name in ["put", "put_all", "streamer", "client µs/row"] {
        assert!(ended.stdout.contains(name), "{}", ended.stdout);
    }
    let read = |name: &str| fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    let result: Value = serde_json::from_str(&read("paths.json")).unwrap();
    let paths = result["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 3);
    assert!(paths.iter().all(|path| path["rows_per_s"].as_f64().unwrap() > 0.0 && path["failed"] == 0), "{result}");
    assert!(read("paths.svg").starts_with("<svg"));
    let again = run(folder.path(), &arguments);
    assert!(again.code == Some(2) && again.stderr.contains("holds the results of another run"), "{again:?}");
}

#[test]
fn paths_refuses_what_it_cannot_write_to() {
    refused(&["paths", "--target", "sim://usl"], &["simulated"]);
    refused(&["paths", "--threads", "1..8"], &["--threads", "range"]);
    refused(&["paths", "--time", "0s"], &["--time"]);
}
