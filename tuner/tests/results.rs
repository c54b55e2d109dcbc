//! Results that are read back, compared, applied and resumed; on simulated servers, which need no time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::Path;

use common::{Ended, folder, run};
use serde_json::Value;

fn sweep(at: &Path, target: &str, out: &str, more: &[&str]) -> Ended {
    run(at, &[&["sweep", "--target", target, "--out", out], more].concat())
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_simulated_server_is_swept_to_its_known_knee_with_every_file() {
    let files = folder();
    let target = "sim://usl?lambda=1000&sigma=0.05&kappa=0.0005&cv=0.01&seed=3";
    let ended = sweep(files.path(), target, "out", &["--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    let knee = result["knee"]["threads"].as_u64().unwrap();
    assert!((28..=69).contains(&knee), "{knee}");
    assert_eq!(result["limit"], "coherency");
    assert!((result["model"]["kappa"].as_f64().unwrap() / 0.0005 - 1.0).abs() < 0.3, "{}", result["model"]);
    for name in ["report.html", "points.csv", "latency.hdr", "journal.jsonl", "settings.json", "tuned.toml"] {
        assert!(fs::metadata(files.path().join("out").join(name)).unwrap().len() > 0, "{name}");
    }
}

#[test]
fn the_page_holds_everything_and_fetches_nothing() {
    let files = folder();
    let ended = sweep(files.path(), "sim://usl?streams=8&nodes=2&errors_above=40&cv=0.01", "out", &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let page = fs::read_to_string(files.path().join("out/report.html")).unwrap();
    for part in [
        "<svg",
        "polyline class=\"fit\"",
        "class=\"band\"",
        "class=\"knee\"",
        "class=\"ceiling\"",
        "overloaded",
        "pool \\ batch",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for part in ["http://", "https://", "<script", "<link", "@import", "NaN", "src="] {
        assert!(!page.contains(part), "{part}");
    }
    for tag in ["svg", "table", "figure", "h2", "td"] {
        let (opened, closed) = (page.matches(&format!("<{tag}")).count(), page.matches(&format!("</{tag}>")).count());
        assert_eq!(opened, closed, "{tag}");
    }
}

#[test]
fn a_simulated_sweep_repeats_itself_exactly() {
    let files = folder();
    for out in ["a", "b"] {
        assert_eq!(sweep(files.path(), "sim://usl?seed=5", out, &[]).code, Some(0));
    }
    let journals = ["a", "b"].map(|out| fs::read_to_string(files.path().join(out).join("journal.jsonl")).unwrap());
    assert_eq!(journals[0], journals[1]);
}

#[test]
fn a_table_is_swept_and_the_points_of_a_run_are_a_table() {
    let files = folder();
    let csv = "n,x\n1,24456\n2,45314\n4,78024\n8,126892\n16,129029\n32,127780\n64,125526\n128,124158\n256,116337\n";
    fs::write(files.path().join("mysql.csv"), csv).unwrap();
    let target = "sim://table?file=mysql.csv&cv=0.01";
    assert_eq!(sweep(files.path(), target, "out", &["--threads", "1..256"]).code, Some(0));
    let result = json(&files.path().join("out/result.json"));
    assert!((7..=10).contains(&result["knee"]["threads"].as_u64().unwrap()), "{}", result["knee"]);
    assert_eq!(sweep(files.path(), "sim://table?file=out/points.csv", "again", &["--threads", "1..256"]).code, Some(0));
}

#[test]
fn a_sweep_that_was_cut_short_goes_on_where_it_stopped() {
    let files = folder();
    let target = "sim://usl?seed=11&streams=8&cv=0.02";
    assert_eq!(sweep(files.path(), target, "whole", &[]).code, Some(0));
    let journal = fs::read_to_string(files.path().join("whole/journal.jsonl")).unwrap();
    let lines: Vec<&str> = journal.lines().collect();
    for kept in [0, 1, 9, lines.len() - 1] {
        let cut = files.path().join(format!("cut{kept}"));
        fs::create_dir(&cut).unwrap();
        fs::copy(files.path().join("whole/settings.json"), cut.join("settings.json")).unwrap();
        // The last line was being written when the power went.
        let mut text = lines[..kept].join("\n");
        text += if kept > 0 { "\n" } else { "" };
        fs::write(cut.join("journal.jsonl"), text + &lines[kept][..lines[kept].len() / 2]).unwrap();
        let resumed = run(files.path(), &["sweep", "--target", target, "--resume", cut.to_str().unwrap()]);
        assert_eq!(resumed.code, Some(0), "{kept}: {resumed:?}");
        let (whole, after) = (json(&files.path().join("whole/result.json")), json(&cut.join("result.json")));
        for key in ["verdict", "knee", "peak", "windows", "ceiling"] {
            assert_eq!(whole[key], after[key], "{kept}: {key}");
        }
        assert_eq!(fs::read_to_string(cut.join("journal.jsonl")).unwrap().lines().count(), lines.len());
    }
}

#[test]
fn a_run_is_resumed_with_its_own_settings_alone() {
    let files = folder();
    assert_eq!(sweep(files.path(), "sim://usl?seed=1", "out", &[]).code, Some(0));
    let before = fs::read_to_string(files.path().join("out/journal.jsonl")).unwrap();
    let other = run(files.path(), &["sweep", "--target", "sim://usl?seed=1", "--threads", "1..8", "--resume", "out"]);
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.stderr.contains("--threads was \"1..512\" and is \"1..8\""), "{}", other.stderr);
    assert_eq!(fs::read_to_string(files.path().join("out/journal.jsonl")).unwrap(), before);
    let nothing = run(files.path(), &["sweep", "--target", "sim://usl", "--resume", "none"]);
    assert_eq!((nothing.code, nothing.stderr.lines().count()), (Some(2), 1), "{nothing:?}");
}

#[test]
fn equals_compare_as_equals_and_a_slower_server_as_slower() {
    let files = folder();
    let run_of = |lambda: u32, seed: u32, out: &str| {
        let target = format!("sim://usl?lambda={lambda}&seed={seed}&cv=0.01");
        let arguments = ["run", "--target", &target, "--threads", "44", "--out", out];
        assert_eq!(run(files.path(), &arguments).code, Some(0));
    };
    let (mut different, mut found) = (0, 0);
    run_of(1000, 0, "base");
    for seed in 1..=12 {
        run_of(1000, seed, &format!("same{seed}"));
        run_of(970, seed, &format!("slower{seed}"));
        let compared = |out: &str| {
            let ended = run(files.path(), &["compare", "base", &format!("{out}{seed}"), "--json"]);
            let value: Value = serde_json::from_str(&ended.stdout).unwrap();
            value["rows_per_s"]["p"].as_f64().unwrap()
        };
        different += u32::from(compared("same") < 0.05);
        found += u32::from(compared("slower") < 0.05);
    }
    assert!(different <= 3 && found >= 9, "{different} {found}");
    let text = run(files.path(), &["compare", "base", "slower1"]).stdout;
    for word in ["rows/s", "p90 ms", "verdict", "ratio"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn a_result_is_shown_and_applied() {
    let files = folder();
    let ended = sweep(files.path(), "sim://usl?errors_above=20&cv=0.01", "out", &[]);
    let shown = run(files.path(), &["show", "out"]);
    assert_eq!(shown.code, Some(0));
    for line in ended.stdout.lines().filter(|line| ["knee", "why", "ceiling"].iter().any(|name| line.starts_with(name)))
    {
        assert!(shown.stdout.contains(line), "{line}");
    }
    let applied = run(files.path(), &["apply", "out"]).stdout;
    assert_eq!(applied.trim_end(), fs::read_to_string(files.path().join("out/tuned.toml")).unwrap().trim_end());
    assert_eq!(run(files.path(), &["apply", "out", "--to", "client.toml"]).code, Some(0));
    peristyle::Tuned::load(files.path().join("client.toml")).unwrap();
    for command in [["show", "none"], ["apply", "none"]] {
        let refused = run(files.path(), &command);
        assert_eq!((refused.code, refused.stderr.lines().count()), (Some(2), 1), "{refused:?}");
    }
}

#[test]
fn each_end_has_its_exit_code() {
    let files = folder();
    for (number, (target, code)) in [
        ("sim://usl?errors_above=0", 3),
        ("sim://usl?zero_ops=true", 3),
        ("sim://usl?drift=0.2&drift_at=45&cv=0.01", 5),
        ("sim://usl?kappa=0&sigma=0.001", 0),
    ]
    .into_iter()
    .enumerate()
    {
        let ended = sweep(files.path(), target, &format!("out{number}"), &[]);
        assert_eq!(ended.code, Some(code), "{target}: {ended:?}");
        let text = fs::read_to_string(files.path().join(format!("out{number}/result.json"))).unwrap();
        assert!(!text.contains("NaN"), "{text}");
    }
    assert_eq!(sweep(files.path(), "sim://usl", "short", &["--budget", "5s"]).code, Some(4));
}

#[test]
fn a_ramp_stops_at_the_first_load_that_is_too_much() {
    let files = folder();
    let arguments = [
        "ramp",
        "--target",
        "sim://usl?cv=0.01",
        "--rates",
        "2000,8000,20000,40000",
        "--threads",
        "44",
        "--apdex",
        "5ms",
    ];
    let ended = run(files.path(), &[&arguments[..], &["--out", "out", "--json"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&result["verdict"], &result["limit"]), (&"knee_found".into(), &"capacity".into()));
    assert!((result["knee"]["rows_per_s"].as_f64().unwrap() / 8000.0 - 1.0).abs() < 0.01, "{}", result["knee"]);
    assert!(result["knee"]["apdex"].as_f64().unwrap() > 0.99);
    let points = fs::read_to_string(files.path().join("out/points.csv")).unwrap();
    assert_eq!(points.lines().count(), 4, "{points}");
    for (wrong, word) in [("--rates=9,5", "ascend"), ("--rates=0", "no rate"), ("--users=0,5", "ascend")] {
        let refused = run(files.path(), &["ramp", "--target", "sim://usl", wrong]);
        assert_eq!((refused.code, refused.stderr.contains(word)), (Some(2), true), "{wrong}: {refused:?}");
    }
}

#[test]
fn a_held_point_shows_a_late_collapse() {
    let files = folder();
    let held = |parameters: &str, out: &str| {
        sweep(files.path(), &format!("sim://usl?cv=0.01&{parameters}"), out, &["--hold", "10m"])
    };
    assert_eq!(held("seed=1", "good").code, Some(0));
    let collapsed = held("drift=0.8&drift_at=400", "bad");
    assert_eq!(collapsed.code, Some(5), "{collapsed:?}");
    assert!(collapsed.stdout.contains("late collapse"), "{}", collapsed.stdout);
}

#[test]
fn an_open_loop_starts_what_was_offered() {
    let files = folder();
    let arguments = ["run", "--target", "memory:", "--rate", "500", "--threads", "16", "--budget", "4s", "--json"];
    let ended = run(files.path(), &[&arguments[..], &["--out", "out"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let journal = fs::read_to_string(files.path().join("out/journal.jsonl")).unwrap();
    for line in journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let (intended, seconds) =
            (line["schedule"]["intended"].as_f64().unwrap(), line["measured_s"].as_f64().unwrap());
        assert!((intended - 500.0 * seconds).abs() <= 2.0, "{line}");
        let [response, service] = ["operations", "service"].map(|key| line[key]["put"]["p99_ms"].as_f64().unwrap());
        assert!(response >= service * 0.98, "{line}");
    }
}

#[test]
fn an_objective_for_an_operation_that_is_not_there_is_refused() {
    let files = folder();
    for (objective, word) in
        [("get:p99<1ms", "no such operation"), ("p99", "OPERATION:pNN<TIME"), ("p0<1ms", "percentile")]
    {
        let refused = run(files.path(), &["sweep", "--target", "sim://usl", "--objective", objective]);
        assert_eq!((refused.code, refused.stderr.lines().count()), (Some(2), 1), "{refused:?}");
        assert!(refused.stderr.contains(word), "{}", refused.stderr);
    }
}

#[test]
fn the_truth_of_a_simulated_server_is_printed_whole() {
    let files = folder();
    let grid = run(files.path(), &["sim", "grid", "--target", "sim://usl?errors_above=20", "--threads", "1..40"]);
    assert_eq!((grid.code, grid.stdout.lines().count()), (Some(0), 41), "{grid:?}");
    assert!(grid.stderr.contains("peak      20 threads") && grid.stdout.contains("21,1,1,1,,overloaded"), "{grid:?}");
    assert_eq!(run(files.path(), &["sim", "grid", "--target", "memory:"]).code, Some(2));
    assert_eq!(run(files.path(), &["load", "--target", "sim://usl"]).code, Some(2));
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let files = folder();
    assert!(run(files.path(), &["man"]).stdout.contains(".TH tuner 1"));
    assert_eq!(run(files.path(), &["man", "--to", "pages"]).code, Some(0));
    for name in ["tuner.1", "tuner-sweep.1", "tuner-ramp.1", "tuner-compare.1"] {
        assert!(files.path().join("pages").join(name).exists(), "{name}");
    }
}

#[test]
fn each_limit_is_named_with_a_reason_and_advice() {
    let files = folder();
    let cases: [(&str, &str, &[&str]); 7] = [
        ("errors_above=20", "errors", &[]),
        ("lambda=1000", "objective", &["--objective", "put:p99<4ms"]),
        ("collapse_above=30", "collapse", &[]),
        ("client_cpu=1000", "client_bound", &[]),
        ("batch_fail_bytes=5000", "batch_threshold", &["--threads", "1..64"]),
        ("kappa=0", "range", &["--threads", "1..64"]),
        ("kappa=0.0005", "coherency", &[]),
    ];
    for (number, (parameters, limit, more)) in cases.into_iter().enumerate() {
        let target = format!("sim://usl?cv=0.01&seed=2&{parameters}");
        let ended = sweep(files.path(), &target, &format!("out{number}"), &[more, &["--json"]].concat());
        let result: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(result["limit"], limit, "{parameters}: {result}");
        let why = result["why"].as_array().unwrap();
        assert!(why.len() >= 2 && why.iter().all(|sentence| sentence.as_str().unwrap().len() > 10), "{result}");
    }
}

#[test]
fn settings_that_would_be_passed_over_are_refused() {
    let files = folder();
    for arguments in [
        &["ramp", "--target", "sim://usl", "--rates", "5,9", "--rate", "7"][..],
        &["ramp", "--target", "sim://usl", "--users", "5,9", "--threads", "7"],
        &["ramp", "--target", "sim://usl", "--users", "5,9", "--rates", "7"],
        &["ramp", "--target", "sim://usl"],
        &["sweep", "--target", "sim://usl", "--out", "a", "--resume", "b"],
        &["sweep", "--target", "sim://usl", "--rate", "0"],
        &["sweep", "--target", "sim://usl", "--server-pid", "4294967290"],
    ] {
        let refused = run(files.path(), arguments);
        assert_eq!((refused.code, refused.stderr.lines().count()), (Some(2), 1), "{arguments:?}: {refused:?}");
    }
    assert_eq!(fs::read_dir(files.path()).unwrap().count(), 0);
}

#[test]
fn more_threads_that_fail_and_more_connections_that_cure_it_are_told() {
    // The field's story: with one connection to a node 1400 clients fail, with eight and ten io threads none does.
    let target = "sim://usl?lambda=1&sigma=0.0002&kappa=2e-7&streams=175&streams_refuse=true&io_cost=8000&cv=0.01";
    let files = folder();
    let ranges = ["--threads", "1..2048", "--io-threads", "1..10", "--pool", "1..8", "--json"];
    let ended = sweep(files.path(), target, "out", &ranges);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    let knee = &result["knee"];
    assert!((1000..=1400).contains(&knee["threads"].as_u64().unwrap()), "{knee}");
    assert_eq!((&knee["errors"], &result["limit"]), (&Value::from(0), &Value::from("errors")), "{result}");
    assert!(knee["pool"].as_u64().unwrap() >= 6 && knee["io_threads"].as_u64().unwrap() >= 6, "{knee}");
    let why = result["why"].to_string();
    assert!(why.contains("requests fail with overloaded") && why.contains("threads with"), "{why}");
    assert!(why.contains("fail with overloaded;") && why.contains("pool don't"), "{why}");
    assert!(why.contains("each of them takes only so many at once") && why.contains("raise --pool above 8"), "{why}");
    let page = fs::read_to_string(files.path().join("out/report.html")).unwrap();
    assert!(page.contains("fail with overloaded;"), "the page does not tell it");
}

#[test]
fn connections_that_are_full_are_named_before_and_after() {
    let files = folder();
    let target = "sim://usl?streams=8&nodes=2&cv=0.01";
    let ended = sweep(files.path(), target, "out", &["--threads", "1..128", "--pool", "1..2"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout.contains("connections carry 32 requests with pool 1..2: threads beyond that wait"),
        "{ended:?}"
    );
    let ended = sweep(files.path(), target, "fixed", &["--threads", "1..128", "--pool", "1", "--json"]);
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["limit"], "connections", "{result}");
    assert!(result["why"].to_string().contains("raise --pool"), "{result}");
}

#[test]
fn the_chosen_point_is_compared_with_the_defaults_in_turns() {
    let files = folder();
    let target = "sim://usl?batch_fixed=5&batch_per_row=1&cv=0.01";
    let arguments = ["--threads", "1..64", "--batch", "1..64", "--against-defaults", "--json"];
    let ended = sweep(files.path(), target, "out", &arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    let beside = &result["beside"];
    assert_eq!(
        (&beside["other"]["threads"], &beside["other"]["batch"]),
        (&Value::from(32), &Value::from(1)),
        "{beside}"
    );
    assert_eq!(beside["chosen"]["batch"], result["peak"]["batch"]);
    // A batch of 64 gives 64 rows for the work of 11.5 of one.
    let compared = &beside["compared"];
    assert!(compared["ratio"].as_f64().unwrap() > 4.0 && compared["p"].as_f64().unwrap() < 0.001, "{beside}");
    let journal = fs::read_to_string(files.path().join("out/journal.jsonl")).unwrap();
    let turns: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let turns: Vec<&Value> =
        turns.iter().filter(|line| line["purpose"] == "beside").map(|line| &line["batch"]).collect();
    assert_eq!(turns.len(), 16);
    assert!(turns[0] == turns[3] && turns[1] == turns[2] && turns[0] != turns[1], "{turns:?}");
    let shown = run(files.path(), &["show", "out"]).stdout;
    assert!(shown.contains("defaults") && shown.contains("more than chance"), "{shown}");
    // Nobody but the one who asked pays for it.
    assert!(!fs::read_to_string(files.path().join("out/report.html")).unwrap().contains("NaN"));
}

#[test]
fn a_run_that_misses_its_objective_says_which() {
    let files = folder();
    let arguments =
        ["run", "--target", "sim://usl?cv=0.01", "--threads", "44", "--objective", "p99<1ms", "--out", "out", "--json"];
    let ended = run(files.path(), &arguments);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(result["stop_reason"].to_string().contains("misses p99<1ms"), "{result}");
}
