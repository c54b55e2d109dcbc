//! The SDK over HBase against a plain blocking Thrift client and against happybase, side by side on one region server.
//!
//! `cargo bench -p peristyle-benches --bench hbase` starts the HBase itself, and makes the virtual environment for happybase.
#![expect(clippy::expect_used, reason = "a bench stops where its set-up fails")]

mod happy;
mod plain;

#[path = "../../backends/hbase/src/wire/hbase2.rs"]
#[rustfmt::skip]
#[allow(warnings, clippy::all, clippy::pedantic, clippy::expect_used, clippy::panic, reason = "generated")]
mod generated;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::ops::Range;

use happy::Happy;
use peristyle::codec::salt::salt_prefix;
use peristyle::model::{HBaseMapping, KeyEncoding, PreSplit, Salt, TableSpec, Type};
use peristyle::{Client, Error, Table};
use peristyle_benches::{Block, compare, run, run_blocking};
use peristyle_servers::{Gateway, HBase};
use plain::Plain;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};

const TABLE: &str = "bench";
/// Rows in one request.
const BATCH: u64 = 100;
/// Rows of all clients in one block of batches, and requests of single rows.
const ROWS: u64 = 48_000;
const SINGLES: u64 = 6_400;
const ROUNDS: usize = 7;
static VALUE: &str = "123456789012345678901234567890";

#[derive(Debug, Serialize, Deserialize)]
struct Title {
    id: i64,
    title: String,
}

fn main() {
    let server = HBase::builder()
        .bench()
        .region_servers(1)
        .heap_mib(1536)
        .gateways([Gateway::thrift2(), Gateway::thrift1()])
        .start()
        .expect("HBase starts");
    let (thrift2, thrift1) = (server.gateway(0).expect("a gateway"), server.gateway(1).expect("another"));
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let happy = runtime.block_on(prepare(thrift2)).map(|()| Happy::start(thrift1, TABLE));
    let happy = happy.expect("a table").expect("happybase starts");
    let mut bench = Bench { runtime, thrift2, happy };
    for connections in [8, 32] {
        bench.batches(connections);
    }
    bench.singles(32);
}

/// The table of an existing program: longs salted with the middle bytes of their CRC, over 64 regions.
async fn prepare(address: SocketAddr) -> Result<(), Error> {
    let columns = [("title".to_owned(), "cf:value".to_owned())].into();
    let mapping = HBaseMapping {
        key_encoding: KeyEncoding::Raw,
        pre_split: Some(PreSplit::Uniform(64)),
        columns,
        ..HBaseMapping::default()
    };
    let spec = TableSpec::builder(TABLE).partition("id", Type::I64).column("title", Type::Text);
    connect(address, 1).await?.create_table(&spec.salt(Salt::MIDDLE_BYTES).hbase(mapping).build()?).await
}

async fn connect(address: SocketAddr, pool: u64) -> Result<Client, Error> {
    peristyle::connect(&format!("hbase://{address}/default?pool={pool}")).await
}

/// The row key as the table's program makes it.
fn row_key(number: u64) -> Vec<u8> {
    let key = number.to_be_bytes();
    [&*salt_prefix(Salt::MIDDLE_BYTES, &key), &key].concat()
}

fn id(number: u64) -> i64 {
    i64::try_from(number).unwrap_or_default()
}

struct Bench {
    runtime: Runtime,
    thrift2: SocketAddr,
    happy: Happy,
}

impl Bench {
    /// Opens the table through a pool of so many connections.
    fn table(&self, connections: u64) -> Table {
        let open = async {
            let client = connect(self.thrift2, connections).await?;
            let spec = client.describe_table(TABLE).await?.ok_or_else(|| Error::invalid("no table"))?;
            client.table(spec).await
        };
        self.runtime.block_on(open).expect("a table")
    }

    fn plain(&self) -> Plain {
        Plain::open(self.thrift2, TABLE).expect("a connection")
    }

    fn batches(&mut self, connections: u64) {
        let (table, each) = (self.table(connections), ROWS / BATCH / connections);
        for what in ["put", "get"] {
            let mut pairs: [Vec<(Block, Block)>; 4] = Default::default();
            for round in 0..=ROUNDS {
                let batches = self.runtime.block_on(ours(&table, what, connections, each));
                let whole = self.runtime.block_on(whole(&table, what, connections));
                let blocking = rows(run_blocking(connections, each, || {
                    let mut plain = self.plain();
                    move |batch| plain_batch(&mut plain, what, batch)
                }));
                let python = self.happy.run(what, connections, each, BATCH).expect("happybase");
                let contenders = [(batches, blocking), (batches, python), (whole, blocking), (whole, python)];
                // The first round warms all up.
                if round > 0 {
                    pairs.iter_mut().zip(contenders).for_each(|(pairs, pair)| pairs.push(pair));
                }
            }
            let titles = ["calls of 100, plain", "calls of 100, happybase", "one call, plain", "one call, happybase"];
            for (title, pairs) in titles.iter().zip(&pairs) {
                let title = format!("{what}, {connections} connections, {title}");
                compare(&title, "rows/s", pairs, Block::rate);
                compare(&title, "µs CPU", pairs, Block::cpu_micros);
            }
        }
    }

    fn singles(&mut self, connections: u64) {
        let (table, each) = (self.table(connections), SINGLES / connections);
        for what in ["put", "get"] {
            let mut pairs = Vec::new();
            for round in 0..=ROUNDS {
                let ours = self.runtime.block_on(ours_singly(&table, what, connections, each));
                let blocking = run_blocking(connections, each, || {
                    let mut plain = self.plain();
                    move |number| plain_single(&mut plain, what, number)
                });
                if round > 0 {
                    pairs.push((ours, blocking));
                }
            }
            let title = format!("single {what}, {connections} connections, plain");
            compare(&title, "rows/s", &pairs, Block::rate);
            compare(&title, "µs CPU", &pairs, Block::cpu_micros);
        }
    }
}

/// A block whose operations were batches, by their rows.
fn rows(block: Block) -> Block {
    Block { operations: block.operations * BATCH, ..block }
}

fn batch_size() -> NonZeroUsize {
    usize::try_from(BATCH).ok().and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MIN)
}

/// Puts or gets these rows in one call, in requests of so many rows.
async fn bulk(table: &Table, what: &str, numbers: Range<u64>, requests: NonZeroUsize) {
    let ids = numbers.map(id);
    if what == "put" {
        let titles = ids.map(|id| Title { id, title: VALUE.to_owned() });
        let report = table.put_all(titles).rows_per_request(batch_size()).concurrency(requests).await;
        report.and_then(peristyle::table::PutAllReport::into_result).expect("put");
    } else {
        let found = table.get_all::<Title>(ids).rows_per_request(batch_size()).concurrency(requests).await;
        assert!(found.expect("got").iter().all(Option::is_some));
    }
}

/// Clients that put or get a batch in each call.
async fn ours(table: &Table, what: &'static str, connections: u64, each: u64) -> Block {
    let start = || {
        let table = table.clone();
        move |batch: u64| {
            let table = table.clone();
            async move { bulk(&table, what, batch * BATCH..(batch + 1) * BATCH, NonZeroUsize::MIN).await }
        }
    };
    rows(run(connections, each, start).await)
}

/// One client that puts or gets all rows in one call, which sorts them by region before it cuts them into requests.
async fn whole(table: &Table, what: &'static str, connections: u64) -> Block {
    let requests = usize::try_from(connections).ok().and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MIN);
    let start = || {
        let table = table.clone();
        move |_| {
            let table = table.clone();
            async move { bulk(&table, what, 0..ROWS, requests).await }
        }
    };
    let block = run(1, 1, start).await;
    Block { operations: ROWS, ..block }
}

async fn ours_singly(table: &Table, what: &'static str, connections: u64, each: u64) -> Block {
    run(connections, each, || {
        let table = table.clone();
        move |number| {
            let table = table.clone();
            async move {
                if what == "put" {
                    table.put(&Title { id: id(number), title: VALUE.to_owned() }).await.expect("put");
                } else {
                    let found: Option<Title> = table.get(id(number)).await.expect("got");
                    assert!(found.is_some());
                }
            }
        }
    })
    .await
}

fn plain_batch(plain: &mut Plain, what: &str, batch: u64) {
    let keys = (batch * BATCH..(batch + 1) * BATCH).map(row_key);
    if what == "put" {
        plain.put_all(keys, VALUE.as_bytes()).expect("put");
    } else {
        assert!(plain.get_all(keys).expect("got").iter().all(|row| row.row.is_some()));
    }
}

fn plain_single(plain: &mut Plain, what: &str, number: u64) {
    let key = row_key(number);
    if what == "put" {
        plain.put(key, VALUE.as_bytes()).expect("put");
    } else {
        assert!(plain.get(key).expect("got").is_some_and(|row| row.row.is_some()));
    }
}
