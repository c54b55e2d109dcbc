//! The ways to write many rows against one put for each: rows per second, and CPU of the client per row, in one process, against
//! one Cassandra.
//!
//! `cargo bench -p peristyle-benches --bench bulk` starts the Cassandra itself; with `-- URI` it takes one that runs.
#![expect(clippy::expect_used, reason = "a bench stops where its set-up fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures::future::BoxFuture;
use peristyle::model::{Order, TableSpec, Type};
use peristyle::request::Replication;
use peristyle::streamer::StreamReport;
use peristyle::table::PutAllReport;
use peristyle::{Client, Error, Table};
use peristyle_benches::{Block, compare, run};
use peristyle_servers::Cassandra;
use tokio::runtime::Builder;

const ROUNDS: usize = 7;
const IN_FLIGHT: u64 = 128;
const EACH: u64 = 100;
const ROWS: i64 = 40_000;
const VALUE: &str = "123456789012345678901234567890";

fn main() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let given = std::env::args().skip(1).find(|argument| argument.contains("://"));
    let server = given.is_none().then(|| Cassandra::builder().bench().start().expect("Cassandra starts"));
    let uri = given.or_else(|| Some(format!("cql://{}/bench", server.as_ref()?.cql_address()))).expect("a server");
    runtime.block_on(bench(&uri));
}

#[derive(serde::Serialize)]
struct Row {
    pk: i64,
    c: i64,
    v: &'static str,
}

/// Rows of one partition, or each of its own.
#[derive(Clone, Copy, PartialEq)]
enum Keys {
    OnePartition,
    Many,
}

type Way = fn(Table, Keys) -> BoxFuture<'static, Block>;

static NEXT: AtomicI64 = AtomicI64::new(0);

/// Rows that were never written before.
fn rows(keys: Keys, count: i64) -> impl Iterator<Item = Row> + Send {
    let first = NEXT.fetch_add(count, Ordering::Relaxed);
    (first..first + count).map(move |c| Row { pk: if keys == Keys::OnePartition { first } else { c }, c, v: VALUE })
}

async fn bench(uri: &str) {
    let plain = open(uri, "").await.expect("connected");
    let joined = open(uri, "&batching=owner").await.expect("connected");
    for (keys, name) in [(Keys::OnePartition, "one partition"), (Keys::Many, "many partitions")] {
        let ways: [(&str, Way, &Table); 3] = [
            ("put_all", |table, keys| Box::pin(put_all(table, keys)), &plain),
            ("streamer", |table, keys| Box::pin(stream(table, keys)), &plain),
            ("joined puts", |table, keys| Box::pin(puts(table, keys)), &joined),
        ];
        for (way, write, table) in ways {
            let mut pairs = Vec::new();
            for round in 0..=ROUNDS {
                let pair = (write(table.clone(), keys).await, puts(plain.clone(), keys).await);
                // The first round warms all up.
                if round > 0 {
                    pairs.push(pair);
                }
            }
            let title = format!("{way} against puts, {name}");
            compare(&title, "µs CPU", &pairs, Block::cpu_micros);
            compare(&title, "rows/s", &pairs, Block::rate);
        }
    }
}

async fn open(uri: &str, settings: &str) -> Result<Table, Error> {
    let separator = if uri.contains('?') { "&" } else { "?" };
    let client: Client = peristyle::connect(&format!("{uri}{separator}pool=2&batch_concurrency=32{settings}")).await?;
    client.create_namespace(Replication::default()).await?;
    let spec = TableSpec::builder("bulk").partition("pk", Type::I64).clustering("c", Type::I64, Order::Ascending);
    let spec = spec.column("v", Type::Text).build()?;
    client.create_table_if_absent(&spec).await?;
    client.table(spec).await
}

async fn puts(table: Table, keys: Keys) -> Block {
    let partition = NEXT.load(Ordering::Relaxed);
    let table = Arc::new(table);
    run(IN_FLIGHT, EACH, || {
        let table = Arc::clone(&table);
        move |_| {
            let table = Arc::clone(&table);
            async move {
                let c = NEXT.fetch_add(1, Ordering::Relaxed);
                let pk = if keys == Keys::OnePartition { partition } else { c };
                table.put(&Row { pk, c, v: VALUE }).await.expect("put");
            }
        }
    })
    .await
}

async fn put_all(table: Table, keys: Keys) -> Block {
    let block = run(1, 1, || {
        let table = table.clone();
        move |_| {
            let table = table.clone();
            async move { table.put_all(rows(keys, ROWS)).await.and_then(PutAllReport::into_result).expect("put") }
        }
    })
    .await;
    Block { operations: ROWS.unsigned_abs(), ..block }
}

async fn stream(table: Table, keys: Keys) -> Block {
    let block = run(1, 1, || {
        let table = table.clone();
        move |_| {
            let table = table.clone();
            async move {
                let streamer = table.streamer().open();
                for row in rows(keys, ROWS) {
                    streamer.add(&row).await.expect("added");
                }
                streamer.close().await.and_then(StreamReport::into_result).expect("put");
            }
        }
    })
    .await;
    Block { operations: ROWS.unsigned_abs(), ..block }
}
