//! Which rows should travel together: `put_all` on a ring of three, by each grouping of the client and of the CQL backend.
//!
//! All ways take turns in one run, on three real nodes, with one replica of each row and with three. Client and servers share the
//! machine, so what counts is the processor time of both for a row, and rows per second follow from it.
//!
//! `cargo bench -p peristyle-benches --bench ring` starts the Cassandras itself, which takes some 3 GiB.
#![expect(clippy::expect_used, reason = "a bench stops where its set-up fails")]

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use peristyle::model::{Order, TableSpec, Type};
use peristyle::request::Replication;
use peristyle::table::PutAllReport;
use peristyle::{Client, Error, Grouping, Table};
use peristyle_benches::{Block, Spread, run};
use peristyle_servers::{Cassandra, Ring};
use tokio::runtime::Builder;

/// Rounds that count, after those that warm all up.
const ROUNDS: (usize, usize) = (7, 2);
const ROWS: i64 = 6_000;
const VALUE: &str = "123456789012345678901234567890";

static NEXT: AtomicI64 = AtomicI64::new(0);

fn main() {
    let nodes = Cassandra::builder().bench().heap_mib(768);
    let ring = Ring::start(&nodes, &[("dc1", "r1"), ("dc1", "r2"), ("dc1", "r3")]).expect("a ring");
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        for replicas in [1, 3] {
            let ways = ways(&ring, replicas).await.expect("connected");
            for rows_each in [1, 10] {
                let title = format!("{replicas} replicas, {rows_each} rows of a partition");
                compare(&title, &ways, &measure(&ring, &ways, rows_each).await);
            }
        }
    });
}

/// A way of grouping: what the client puts into a request, and what the backend makes of it.
struct Way {
    name: String,
    table: Table,
    grouping: Grouping,
}

async fn ways(ring: &Ring, replicas: u32) -> Result<Vec<Way>, Error> {
    let mut ways = Vec::new();
    for batches in ["mixed", "partition"] {
        let table = open(ring, replicas, batches).await?;
        for (name, grouping) in Grouping::NAMES.into_iter().rev() {
            let name = format!("requests by {name}, batches by {}", if batches == "mixed" { "owner" } else { batches });
            ways.push(Way { name, table: table.clone(), grouping });
        }
    }
    Ok(ways)
}

async fn open(ring: &Ring, replicas: u32, batches: &str) -> Result<Table, Error> {
    let hosts: Vec<String> = ring.nodes().iter().map(|node| node.cql_address().to_string()).collect();
    let settings = format!("pool=1&batch_concurrency=16&batch_grouping={batches}");
    let uri = format!("cql://{}/ring{replicas}?{settings}", hosts.join(","));
    let client: Client = peristyle::connect(&uri).await?;
    client.create_namespace(Replication::Simple(replicas)).await?;
    let spec = TableSpec::builder("t").partition("pk", Type::I64).clustering("c", Type::I64, Order::Ascending);
    let spec = spec.column("v", Type::Text).build()?;
    client.create_table_if_absent(&spec).await?;
    ring.wait_until_whole().expect("the nodes agree");
    client.table(spec).await
}

#[derive(serde::Serialize)]
struct Row {
    pk: i64,
    c: i64,
    v: &'static str,
}

/// What a block took, and what it took of the servers.
struct Sample {
    block: Block,
    servers: Duration,
}

impl Sample {
    fn server_micros(&self) -> f64 {
        Block { cpu: self.servers, ..self.block }.cpu_micros()
    }

    fn micros(&self) -> f64 {
        self.block.cpu_micros() + self.server_micros()
    }
}

/// By round, a sample of each way.
async fn measure(ring: &Ring, ways: &[Way], rows_each: i64) -> Vec<Vec<Sample>> {
    let (counted, warm_up) = ROUNDS;
    let mut rounds = Vec::new();
    for round in 0..warm_up + counted {
        let mut samples = Vec::new();
        // Another one begins each time.
        for place in 0..ways.len() {
            let place = (place + round) % ways.len();
            if let Some(way) = ways.get(place) {
                samples.push((place, write(ring, way, rows_each).await));
            }
        }
        samples.sort_by_key(|(place, _)| *place);
        if round >= warm_up {
            rounds.push(samples.into_iter().map(|(_, sample)| sample).collect());
        }
    }
    rounds
}

async fn write(ring: &Ring, way: &Way, rows_each: i64) -> Sample {
    let before = cpu_of(ring);
    let block = run(1, 1, || {
        let (table, grouping) = (way.table.clone(), way.grouping);
        move |_| {
            let table = table.clone();
            async move {
                let first = NEXT.fetch_add(ROWS, Ordering::Relaxed);
                // Partitions side by side, as from many sources.
                let partitions = ROWS / rows_each;
                let rows = (0..ROWS).map(|row| Row { pk: first + row % partitions, c: row, v: VALUE });
                table.put_all(rows).grouping(grouping).await.and_then(PutAllReport::into_result).expect("put");
            }
        }
    })
    .await;
    Sample { block: Block { operations: ROWS.unsigned_abs(), ..block }, servers: cpu_of(ring).saturating_sub(before) }
}

/// The processor time that all nodes have used.
fn cpu_of(ring: &Ring) -> Duration {
    ring.nodes().iter().filter_map(Cassandra::process_id).filter_map(cpu_of_process).sum()
}

fn cpu_of_process(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which may have blanks: the 12th and the 13th are the ticks in user and in system mode.
    let ticks = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().ok());
    let ticks = ticks.sum::<Option<u64>>()?;
    Some(Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second()))
}

/// Prints the ways; ratios are to the first, which is the default, round by round.
fn compare(title: &str, ways: &[Way], rounds: &[Vec<Sample>]) {
    println!("\n{title:<46} {:>8} {:>9} {:>10}  of the first: rows/s, CPU", "rows/s", "client µs", "servers µs");
    for (place, way) in ways.iter().enumerate() {
        let of = |figure: fn(&Sample) -> f64| Spread::of(rounds.iter().filter_map(|all| all.get(place)).map(figure));
        let ratio = |figure: fn(&Sample) -> f64| {
            Spread::of(rounds.iter().filter_map(|all| Some(figure(all.get(place)?) / figure(all.first()?))))
        };
        let rate = of(|sample| sample.block.rate()).median;
        let (client, servers) = (of(|sample| sample.block.cpu_micros()).median, of(Sample::server_micros).median);
        let (rates, all) = (ratio(|sample| sample.block.rate()), ratio(Sample::micros));
        println!("{:<46} {rate:>8.0} {client:>9.1} {servers:>10.1}  {rates}  {all}", way.name);
    }
}
