//! What other processes see: an engine killed without warning, held by another process, or on a full disk.
//!
//! The test starts itself as the other process, with what to do in its arguments.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use common::{at, counters, pair, pairs, table};
use libtest_mimic::{Arguments, Trial};
use peristyle_core::model::{Row, TableSpec, Type, Value};
use peristyle_core::{ErrorKind, Outcome};
use peristyle_embedded::{Durability, EmbeddedConfig};
use tokio::runtime::Runtime;

const CHILD: &str = "as-child";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, child, task, folder] = arguments.as_slice()
        && child == CHILD
    {
        return runtime().block_on(run_child(task, Path::new(folder)));
    }
    let trials = vec![
        trial("what_was_acknowledged_survives_a_kill", what_was_acknowledged_survives_a_kill),
        trial("a_second_process_is_told_who_holds_the_folder", a_second_process_is_told_who_holds_the_folder),
        trial("a_full_disk_stops_writes_and_loses_nothing", a_full_disk_stops_writes_and_loses_nothing),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn trial(name: &str, run: fn()) -> Trial {
    Trial::test(name, move || {
        run();
        Ok(())
    })
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

async fn run_child(task: &str, folder: &Path) {
    match task {
        "durable" => write_for_ever(&at(folder)).await,
        "buffered" => write_for_ever(&at(folder).durability(Durability::Buffered)).await,
        "hold" => hold(folder).await,
        "fill" => fill(folder).await,
        other => panic!("unknown task {other}"),
    }
}

/// A line that is out before the process can be killed.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

fn start(task: &str, folder: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut child = command.args([CHILD, task]).arg(folder).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

/// Four tasks, each with a kind of write; each says what was acknowledged.
async fn write_for_ever(config: &EmbeddedConfig) {
    let (client, _engine) = common::client(config).unwrap();
    let rows = table(&client, pairs()).await;
    let counts = table(&client, counters()).await;
    let turn = table(&client, turns()).await;
    let stored: Option<Row> = turn.get(1).await.unwrap();
    // Rows of their own for each round.
    let base = stored.as_ref().map_or(0, turn_of) * 1_000_000 + 1;
    let puts = async {
        for id in base.. {
            rows.put(&pair(id, &format!("put {id}"))).await.unwrap();
            say(&format!("put {id}"));
        }
    };
    let put_alls = async {
        for batch in 0.. {
            let ids: Vec<i64> = (0..20).map(|place| -(base + batch * 20 + place)).collect();
            let batch = ids.iter().map(|id| pair(*id, &format!("put_all {id}")));
            rows.put_all(batch).await.unwrap().into_result().unwrap();
            say(&format!("put_all {}", ids.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")));
        }
    };
    let increments = async {
        loop {
            counts.increment(1).by("hits", 1).await.unwrap();
            say("increment");
        }
    };
    let swaps = async {
        loop {
            let stored: Option<Row> = turn.get(1).await.unwrap();
            let next = stored.as_ref().map_or(1, turn_of) + 1;
            let row = Row::new().with("id", 1_i64).with("turn", next);
            let swap = turn.compare_and_put(&row);
            let swap = match &stored {
                None => swap.if_absent(),
                Some(row) => swap.if_equals("turn", &Value::from(turn_of(row))),
            };
            assert!(swap.await.unwrap().applied);
            say(&format!("swap {next}"));
        }
    };
    tokio::join!(puts, put_alls, increments, swaps);
}

fn turns() -> TableSpec {
    TableSpec::builder("turns").partition("id", Type::I64).column("turn", Type::I64).build().unwrap()
}

fn turn_of(row: &Row) -> i64 {
    match row.get("turn") {
        Some(Value::I64(turn)) => *turn,
        other => panic!("{other:?}"),
    }
}

#[derive(Default)]
struct Acknowledged {
    rows: Vec<(i64, String)>,
    increments: i64,
    turn: i64,
}

impl Acknowledged {
    fn note(&mut self, line: &str) {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "put" | "put_all" => {
                self.rows.extend(rest.split(' ').map(|id| (id.parse().unwrap(), format!("{kind} {id}"))));
            }
            "increment" => self.increments += 1,
            "swap" => self.turn = rest.parse().unwrap(),
            other => panic!("{other}"),
        }
    }
}

/// The child is killed after some number of lines, different in each round, and everything it said must be there. The folder
/// goes from round to round, so that recovered data is recovered again.
fn what_was_acknowledged_survives_a_kill() {
    for task in ["durable", "buffered"] {
        let folder = tempfile::tempdir().unwrap();
        let mut acknowledged = Acknowledged::default();
        for round in 0..6_usize {
            let (mut child, mut lines) = start(task, folder.path());
            for _ in 0..(37 + round * 211) {
                let mut line = String::new();
                lines.read_line(&mut line).unwrap();
                acknowledged.note(line.trim_end());
            }
            child.kill().unwrap();
            // What it said before the kill reached it.
            let rest: Vec<String> = lines.lines().map(Result::unwrap).collect();
            for line in &rest {
                acknowledged.note(line);
            }
            child.wait().unwrap();
            runtime().block_on(check(folder.path(), &acknowledged));
        }
    }
}

async fn check(folder: &Path, acknowledged: &Acknowledged) {
    let (client, _engine) = common::client(&at(folder)).unwrap();
    let rows = table(&client, pairs()).await;
    let ids = acknowledged.rows.iter().map(|(id, _)| *id);
    let found: Vec<Option<Row>> = rows.get_all(ids).await.unwrap();
    for ((id, text), row) in acknowledged.rows.iter().zip(found) {
        assert_eq!(row, Some(pair(*id, text)));
    }
    let hits: Option<Row> = table(&client, counters()).await.get(1).await.unwrap();
    let hits = hits.map_or(0, |row| match row.get("hits") {
        Some(Value::Counter(hits)) => *hits,
        other => panic!("{other:?}"),
    });
    // One increment of each round may have been done and not said.
    assert!((acknowledged.increments..=acknowledged.increments + 6).contains(&hits), "{hits}");
    let turn: Option<Row> = table(&client, turns()).await.get(1).await.unwrap();
    assert!(turn.as_ref().map_or(0, turn_of) >= acknowledged.turn, "{turn:?} {}", acknowledged.turn);
    client.close().await.unwrap();
}

async fn hold(folder: &Path) {
    let (_client, _engine) = common::client(&at(folder)).unwrap();
    say("open");
    std::future::pending::<()>().await;
}

fn a_second_process_is_told_who_holds_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, mut lines) = start("hold", folder.path());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert_eq!(line.trim_end(), "open");
    let error = common::client(&at(folder.path())).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    assert!(error.to_string().contains(&*folder.path().to_string_lossy()), "{error}");
    child.kill().unwrap();
    child.wait().unwrap();
    common::client(&at(folder.path())).map(drop).unwrap();
}

/// Bytes that don't compress, different for each row.
fn noise(seed: i64) -> Vec<u8> {
    let mut state = seed.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()
    };
    (0..16_384).flat_map(|_| next()).collect()
}

fn blobs() -> TableSpec {
    TableSpec::builder("blobs").partition("id", Type::I64).column("data", Type::Blob).build().unwrap()
}

/// Writes until the limit on the size of files refuses more, then checks what is left.
async fn fill(folder: &Path) {
    let config = at(folder).durability(Durability::Buffered).write_buffer_bytes(1 << 30);
    let (client, _engine) = common::client(&config).unwrap();
    let table = table(&client, blobs()).await;
    let row = |id: i64| Row::new().with("id", id).with("data", noise(id));
    let mut id = 0;
    let error = loop {
        match table.put(&row(id)).await {
            Ok(()) => id += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::DiskFull, Outcome::Unknown), "{error}");
    assert!(error.to_string().contains("space"), "{error}");
    let refused = table.put(&row(-1)).await.unwrap_err();
    assert_eq!((refused.kind(), refused.outcome()), (ErrorKind::DiskFull, Outcome::NotApplied), "{refused}");
    let refused = client.create_table(&pairs()).await.unwrap_err();
    assert_eq!((refused.kind(), refused.outcome()), (ErrorKind::DiskFull, Outcome::NotApplied), "{refused}");
    let last: Option<Row> = table.get(id - 1).await.unwrap();
    assert_eq!(last, Some(row(id - 1)), "reads go on");
    say(&format!("filled {id}"));
}

/// A limit on the size of files stands for the full disk: the journal, 64 MiB from the start, may grow by 2 MiB.
fn a_full_disk_stops_writes_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let this: PathBuf = std::env::current_exe().unwrap();
    let script = "trap '' XFSZ; ulimit -f 135168; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    let output = command.args(["-c", script]).arg(this).args([CHILD, "fill"]).arg(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    let filled: i64 = said.trim().strip_prefix("filled ").unwrap().parse().unwrap();
    assert!(filled > 100, "{filled}");
    runtime().block_on(async {
        let (client, _engine) = common::client(&at(folder.path())).unwrap();
        let table = table(&client, blobs()).await;
        for id in 0..filled {
            let row: Option<Row> = table.get(id).await.unwrap();
            assert_eq!(row, Some(Row::new().with("id", id).with("data", noise(id))), "{id}");
        }
        let refused: Option<Row> = table.get(-1).await.unwrap();
        assert_eq!(refused, None);
        table.put(&Row::new().with("id", -1_i64).with("data", b"again".to_vec())).await.unwrap();
    });
}
