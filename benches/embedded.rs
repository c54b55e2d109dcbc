//! The embedded engine against bare fjall with the same durability, 16 clients each: rows per second.
#![expect(clippy::expect_used, reason = "a bench stops where its set-up fails")]

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fjall::{Database, KeyspaceCreateOptions, PersistMode};
use peristyle::Client;
use peristyle::embedded::{Durability, Embedded, EmbeddedConfig};
use peristyle::model::{Key, TableSpec, Ttl, Type, Value};
use peristyle::request::{Mutation, Request, Schema, Write};
use peristyle_benches::{Block, compare, run};
use tokio::runtime::Builder;

const CLIENTS: u64 = 16;
const ROUNDS: u64 = 9;
static VALUE: &[u8] = b"123456789012345678901234567890";

fn main() {
    println!("rows/s, 16 clients                                 peristyle        fjall");
    for (name, durability, persist, each) in [
        ("put, synced to disk", Durability::Durable, PersistMode::SyncData, 400),
        ("put, given to the system", Durability::Buffered, PersistMode::Buffer, 5_000),
    ] {
        let pairs: Vec<(Block, Block)> = (0..ROUNDS).map(|_| round(durability, persist, each)).collect();
        compare(name, "rows/s", &pairs, Block::rate);
    }
}

/// A block of each contender, in folders of their own.
fn round(durability: Durability, persist: PersistMode, each: u64) -> (Block, Block) {
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    (ours(folders[0].path(), durability, each), bare(folders[1].path(), persist, each))
}

fn ours(folder: &Path, durability: Durability, each: u64) -> Block {
    let threads = thread::available_parallelism().map_or(2, NonZeroUsize::get);
    let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build().expect("a runtime");
    let spec = TableSpec::builder("t").partition("id", Type::I64).column("v", Type::Blob).build().expect("a table");
    let spec = Arc::new(spec);
    let engine = Embedded::open(&EmbeddedConfig::at(folder).durability(durability)).expect("opened");
    let client = Client::builder(engine).build();
    runtime.block_on(async {
        client
            .call(Request::schema(Schema::Create { table: Arc::clone(&spec), if_absent: false }))
            .await
            .expect("made");
        let block = run(CLIENTS, each, || {
            let (client, spec) = (client.clone(), Arc::clone(&spec));
            move |number| {
                let (client, spec) = (client.clone(), Arc::clone(&spec));
                async move {
                    let key = Key::new([Value::I64(i64::try_from(number).unwrap_or_default())]);
                    let values = vec![(1, Value::Blob(Bytes::from_static(VALUE)))];
                    let put = Mutation::put(key, client.next_write_time(), values, Ttl::TableDefault);
                    client.call(Request::write(spec, Write::Apply(put))).await.expect("put");
                }
            }
        })
        .await;
        client.close().await.expect("closed");
        block
    })
}

fn bare(folder: &Path, persist: PersistMode, each: u64) -> Block {
    let db = Database::builder(folder).open().expect("opened");
    let rows = db.keyspace("t", KeyspaceCreateOptions::default).expect("made");
    let begin = Instant::now();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (db, rows) = (&db, &rows);
            scope.spawn(move || {
                for number in 0..each {
                    let key = (client * each + number).to_be_bytes();
                    let mut batch = db.batch().durability(Some(persist));
                    batch.insert(rows, key, VALUE);
                    batch.commit().expect("committed");
                }
            });
        }
    });
    Block { operations: CLIENTS * each, wall: begin.elapsed(), cpu: Duration::ZERO }
}
