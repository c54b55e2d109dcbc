//! The SDK over CQL against the bare driver: CPU of the client per operation, in one process, against one Cassandra.
//!
//! `cargo bench -p peristyle-benches --bench cql` starts the Cassandra itself.
#![expect(clippy::expect_used, reason = "a bench stops where its set-up fails")]

use std::sync::Arc;

use bytes::Bytes;
use peristyle::cql::CqlBackend;
use peristyle::model::{Key, TableSpec, Ttl, Type, Value, WriteTime};
use peristyle::request::{Mutation, Projection, Read, Replication, Request, Write};
use peristyle::{Backend, Client, Error};
use peristyle_benches::{Block, compare, run};
use peristyle_servers::Cassandra;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::prepared::PreparedStatement;
use tokio::runtime::Builder;

const EACH: u64 = 300;
const ROUNDS: usize = 15;
static VALUE: &[u8] = b"123456789012345678901234567890";

fn main() {
    let server = Cassandra::builder().bench().start().expect("Cassandra starts");
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(bench(&server.cql_address().to_string()));
}

/// The bare driver with its statements prepared.
struct Bare {
    session: Session,
    put: PreparedStatement,
    get: PreparedStatement,
}

async fn bench(address: &str) {
    let client = peristyle::connect(&format!("cql://{address}/bench?pool=2")).await.expect("connected");
    let spec = Arc::new(prepare(&client).await.expect("prepared"));
    let bare = Arc::new(bare(address).await.expect("connected"));
    println!("against the bare driver                             peristyle       driver");
    for in_flight in [128, 32, 1] {
        let each = if in_flight == 1 { EACH * 4 } else { EACH };
        for write in [true, false] {
            let load = Load { in_flight, each, write };
            let (mut backend, mut stack) = (Vec::new(), Vec::new());
            for round in 0..=ROUNDS {
                let theirs = theirs(&bare, load).await;
                let bare_backend = ours(&client, &spec, load, false).await;
                let whole_stack = ours(&client, &spec, load, true).await;
                // The first round warms all up.
                if round > 0 {
                    backend.push((bare_backend, theirs));
                    stack.push((whole_stack, theirs));
                }
            }
            for (name, pairs) in [("backend", &backend), ("client", &stack)] {
                let title = format!("{name}: {}, {in_flight} in flight", if write { "write" } else { "read" });
                compare(&title, "µs CPU", pairs, Block::cpu_micros);
                compare(&title, "ops/s", pairs, Block::rate);
            }
        }
    }
}

/// What one block does.
#[derive(Clone, Copy)]
struct Load {
    in_flight: u64,
    each: u64,
    write: bool,
}

async fn prepare(client: &Client) -> Result<TableSpec, Error> {
    client.create_namespace(Replication::default()).await?;
    let spec = TableSpec::builder("t").partition("id", Type::I64).column("v", Type::Blob).build()?;
    client.create_table_if_absent(&spec).await?;
    Ok(spec)
}

async fn bare(address: &str) -> Result<Bare, Box<dyn std::error::Error>> {
    let pool = std::num::NonZeroUsize::new(2).ok_or("no pool")?;
    let pool = scylla::client::PoolSize::PerHost(pool);
    let session = SessionBuilder::new().known_node(address).pool_size(pool).build().await?;
    let put = session.prepare("UPDATE bench.t USING TIMESTAMP ? SET v = ? WHERE id = ?").await?;
    let get = session.prepare("SELECT id, v FROM bench.t WHERE id = ?").await?;
    Ok(Bare { session, put, get })
}

/// The bare backend, or the client with its whole stack.
async fn ours(client: &Client, spec: &Arc<TableSpec>, load: Load, stacked: bool) -> Block {
    let ours = Arc::new((client.clone(), Arc::clone(spec)));
    run(load.in_flight, load.each, || {
        let ours = Arc::clone(&ours);
        move |number| {
            let ours = Arc::clone(&ours);
            let (client, spec) = &*ours;
            let key = Key::new([Value::I64(i64::try_from(number).unwrap_or_default())]);
            let request = if load.write {
                let values = [(1, Value::Blob(Bytes::from_static(VALUE)))];
                let put = Mutation::put(key, client.next_write_time(), values, Ttl::TableDefault);
                Request::write(Arc::clone(spec), Write::Apply(put))
            } else {
                Request::read(Arc::clone(spec), Read::Get { key, columns: Projection::default() })
            };
            async move {
                let (client, _) = &*ours;
                let answer = if stacked {
                    client.call(request).await
                } else {
                    let backend = client.native::<CqlBackend>().expect("the CQL backend");
                    backend.call(request).await
                };
                answer.expect("answered");
            }
        }
    })
    .await
}

async fn theirs(bare: &Arc<Bare>, load: Load) -> Block {
    run(load.in_flight, load.each, || {
        let bare = Arc::clone(bare);
        move |number| {
            let bare = Arc::clone(&bare);
            async move {
                let id = i64::try_from(number).unwrap_or_default();
                if load.write {
                    let time = WriteTime::MIN.as_micros();
                    bare.session.execute_unpaged(&bare.put, (time, VALUE, id)).await.expect("put");
                } else {
                    let rows = bare.session.execute_unpaged(&bare.get, (id,)).await.expect("got");
                    let rows = rows.into_rows_result().expect("rows");
                    assert!(rows.maybe_first_row::<(i64, &[u8])>().is_ok());
                }
            }
        }
    })
    .await
}
