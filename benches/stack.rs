//! What the client costs over a backend in the same process, in time per operation.
#![expect(clippy::expect_used, reason = "a bench stops where its set-up fails")]

use std::sync::Arc;

use peristyle::clock::Clock;
use peristyle::codec::ordered::encode_key;
use peristyle::memory::MemoryBackend;
use peristyle::model::{Key, Order, Row, TableSpec, Ttl, Type, Value, WriteTime};
use peristyle::request::{Mutation, Projection, Read, Request, Write};
use peristyle::{Backend, Client, Table};
use tokio::runtime::{Builder, Runtime};

fn main() {
    divan::main();
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn spec() -> Arc<TableSpec> {
    let builder = TableSpec::builder("t").partition("id", Type::I64).column("v", Type::Blob);
    Arc::new(builder.build().expect("a table"))
}

fn table(runtime: &Runtime) -> Table {
    let client = Client::builder(MemoryBackend::with_clock(Clock::system())).build();
    runtime.block_on(async {
        client.create_table(&spec()).await.expect("created");
        let table = client.table(spec()).await.expect("opened");
        table.put(&Row::new().with("id", 1_i64).with("v", vec![7_u8; 30])).await.expect("put");
        table
    })
}

fn get(table: &Table) -> Request {
    let key = Key::new([Value::from(1_i64)]);
    Request::read(table.spec().clone(), Read::Get { key, columns: Projection::default() })
}

fn put(table: &Table) -> Request {
    let values = vec![(1, Value::Blob(bytes::Bytes::from_static(b"123456789012345678901234567890")))];
    let key = Key::new([Value::from(1_i64)]);
    Request::write(table.spec().clone(), Write::Apply(Mutation::put(key, WriteTime::MIN, values, Ttl::TableDefault)))
}

#[divan::bench]
fn get_of_the_bare_backend(bencher: divan::Bencher<'_, '_>) {
    let runtime = runtime();
    let table = table(&runtime);
    let backend = table.client().native::<MemoryBackend>().expect("memory").clone();
    bencher.bench_local(|| runtime.block_on(backend.call(get(&table))));
}

#[divan::bench]
fn get_through_the_client(bencher: divan::Bencher<'_, '_>) {
    let runtime = runtime();
    let table = table(&runtime);
    bencher.bench_local(|| runtime.block_on(table.client().call(get(&table))));
}

#[divan::bench]
fn put_of_the_bare_backend(bencher: divan::Bencher<'_, '_>) {
    let runtime = runtime();
    let table = table(&runtime);
    let backend = table.client().native::<MemoryBackend>().expect("memory").clone();
    bencher.bench_local(|| runtime.block_on(backend.call(put(&table))));
}

#[divan::bench]
fn put_through_the_client(bencher: divan::Bencher<'_, '_>) {
    let runtime = runtime();
    let table = table(&runtime);
    bencher.bench_local(|| runtime.block_on(table.client().call(put(&table))));
}

#[divan::bench]
fn put_of_a_struct(bencher: divan::Bencher<'_, '_>) {
    let runtime = runtime();
    let table = table(&runtime);
    bencher.bench_local(|| {
        runtime.block_on(table.put(&Record { id: 1, v: b"123456789012345678901234567890" }).into_future())
    });
}

#[derive(serde::Serialize)]
struct Record {
    id: i64,
    v: &'static [u8],
}

#[divan::bench]
fn encode_a_key_of_three_columns(bencher: divan::Bencher<'_, '_>) {
    let spec = TableSpec::builder("property").partition("group", Type::Text).partition("name", Type::Text);
    let spec = spec.clustering("date", Type::I64, Order::Descending).build().expect("a table");
    let values = [Value::from("g"), Value::from("a_0"), Value::from(17_i64)];
    let mut out = Vec::with_capacity(64);
    bencher.bench_local(move || {
        out.clear();
        encode_key(divan::black_box(&values), spec.primary_key(), &mut out)
    });
}
