//! Failures under load: bounded time, typed errors, no acknowledged row lost, no row missing from a scan.

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use libtest_mimic::Trial;
use peristyle_core::ErrorKind;
use peristyle_core::model::{Row, TableSpec, Type};
use peristyle_core::table::Table;
use peristyle_servers::{Gateway, HBase};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::traps::is_trouble;
use super::{client, name};

/// More than the limit of one attempt, by what a busy machine adds.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn trials(runtime: &Arc<Runtime>) -> Vec<Trial> {
    let runtime = Arc::clone(runtime);
    vec![Trial::test("failures::no_acknowledged_row_is_lost_and_every_error_is_typed", move || {
        let mut hbase = HBase::builder().gateway(Gateway::thrift2().own_process()).start().unwrap();
        let address = hbase.gateway(0).unwrap().to_string();
        let table = runtime.block_on(table(&address));
        gateway_is_restarted(&runtime, &table, &mut hbase);
        region_server_is_aborted(&runtime, &table, &hbase);
        region_is_split_and_moved_under_a_scan(&runtime, &table, &hbase);
        table_is_disabled(&runtime, &table, &hbase);
        hbase_is_down(&runtime, &table, &mut hbase);
        Ok(())
    })]
}

async fn table(address: &str) -> Table {
    let client = client(address, "request_timeout=5s&pool=8").await;
    let spec = TableSpec::builder(name("failures")).partition("id", Type::I64).column("v", Type::I64).build().unwrap();
    client.create_table(&spec).await.unwrap();
    client.table(spec).await.unwrap()
}

pub(super) fn row(id: i64) -> Row {
    Row::new().with("id", id).with("v", id)
}

/// Writers that put row after row, and what became of it.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<Mutex<BTreeSet<i64>>>,
    writers: JoinSet<(usize, Duration)>,
}

impl Load {
    pub(super) fn start(runtime: &Runtime, table: &Table, first: i64) -> Self {
        let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let next = Arc::new(AtomicI64::new(first));
        let mut writers = JoinSet::new();
        for _ in 0..4 {
            let (table, stop, next) = (table.clone(), Arc::clone(&stop), Arc::clone(&next));
            let acknowledged: Arc<Mutex<BTreeSet<i64>>> = Arc::clone(&acknowledged);
            writers.spawn_on(write(table, stop, next, acknowledged), runtime.handle());
        }
        Self { stop, acknowledged, writers }
    }

    /// How many rows were acknowledged.
    pub(super) fn acknowledged(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    /// Waits until so many rows were acknowledged since the start.
    pub(super) fn wait(&self, rows: usize) {
        let start = Instant::now();
        while self.acknowledged() < rows {
            assert!(start.elapsed() < Duration::from_secs(90), "no progress");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends the writers and reads back all that was acknowledged.
    pub(super) fn finish(self, runtime: &Runtime, table: &Table, what: &str) {
        self.stop.store(true, Ordering::SeqCst);
        let outcomes: Vec<(usize, Duration)> = runtime.block_on(self.writers.join_all());
        let errors: usize = outcomes.iter().map(|(errors, _)| errors).sum();
        let slowest = outcomes.iter().map(|(_, slowest)| *slowest).max().unwrap();
        assert!(slowest < PATIENCE, "{what}: a put took {slowest:?}");
        let acknowledged = self.acknowledged.lock().unwrap().clone();
        let ids: Vec<i64> = acknowledged.iter().copied().collect();
        let found = runtime.block_on(table.get_all::<Row>(ids.clone()).into_future()).unwrap();
        let lost: Vec<i64> = ids.iter().zip(&found).filter(|(_, row)| row.is_none()).map(|(id, _)| *id).collect();
        assert!(lost.is_empty(), "{what}: lost {lost:?} of {}", ids.len());
        println!("{what}: {} rows acknowledged and found, {errors} errors, slowest {slowest:?}", ids.len());
    }
}

async fn write(
    table: Table,
    stop: Arc<AtomicBool>,
    next: Arc<AtomicI64>,
    acknowledged: Arc<Mutex<BTreeSet<i64>>>,
) -> (usize, Duration) {
    let (mut errors, mut slowest) = (0, Duration::ZERO);
    while !stop.load(Ordering::SeqCst) {
        let id = next.fetch_add(1, Ordering::SeqCst);
        let start = Instant::now();
        match table.put(&row(id)).await {
            Ok(()) => {
                acknowledged.lock().unwrap().insert(id);
            }
            Err(error) => {
                assert!(is_trouble(error.kind()), "{error:?}");
                errors += 1;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        slowest = slowest.max(start.elapsed());
    }
    (errors, slowest)
}

fn gateway_is_restarted(runtime: &Runtime, table: &Table, hbase: &mut HBase) {
    let load = Load::start(runtime, table, 0);
    load.wait(200);
    hbase.restart_gateway(0).unwrap();
    let before = load.acknowledged();
    load.wait(before + 200);
    load.finish(runtime, table, "gateway restarted");
}

fn region_server_is_aborted(runtime: &Runtime, table: &Table, hbase: &HBase) {
    let load = Load::start(runtime, table, 1_000_000);
    load.wait(200);
    let region = hbase.regions(&format!("default:{}", table.spec().name())).unwrap().remove(0);
    hbase.abort_region_server(&region.server).unwrap();
    let before = load.acknowledged();
    load.wait(before + 500);
    load.finish(runtime, table, "region server aborted");
}

fn region_is_split_and_moved_under_a_scan(runtime: &Runtime, table: &Table, hbase: &HBase) {
    let full = format!("default:{}", table.spec().name());
    let expected = runtime.block_on(scanned(table, 1_000)).len();
    let scan = {
        let table = table.clone();
        runtime.spawn(async move { scanned(&table, 20).await })
    };
    hbase.split(&full, &[0x80, 0, 0, 0, 0, 0, 0, 50]).unwrap();
    let region = hbase.regions(&full).unwrap().remove(0);
    let other = hbase.region_servers().unwrap().into_iter().find(|server| *server != region.server).unwrap();
    hbase.move_region(&region.name, &other).unwrap();
    let rows = runtime.block_on(scan).unwrap();
    assert_eq!(rows.len(), expected, "rows of a scan over a split and a move");
    assert_eq!(runtime.block_on(scanned(table, 1_000)), rows, "and behind them");
}

async fn scanned(table: &Table, page_size: usize) -> BTreeSet<i64> {
    let rows: Vec<Row> = table.scan().page_size(page_size).rows().try_collect().await.unwrap();
    let count = rows.len();
    let ids: BTreeSet<i64> = rows.iter().map(|row| i64::try_from(row.get("id").unwrap().clone()).unwrap()).collect();
    assert_eq!(ids.len(), count, "no row comes twice");
    ids
}

fn table_is_disabled(runtime: &Runtime, table: &Table, hbase: &HBase) {
    let full = format!("default:{}", table.spec().name());
    hbase.disable(&full).unwrap();
    let start = Instant::now();
    let put = runtime.block_on(table.put(&row(1)).into_future()).unwrap_err();
    let put_all = runtime.block_on(table.put_all([row(2), row(3)]).into_future()).unwrap();
    assert!(is_trouble(put.kind()), "{put:?}");
    assert!(put_all.failures().count() == 2 && put_all.failures().all(|(_, error)| is_trouble(error.kind())));
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    println!("table disabled: {put}");
    hbase.enable(&full).unwrap();
    runtime.block_on(table.put(&row(1)).into_future()).unwrap();
}

fn hbase_is_down(runtime: &Runtime, table: &Table, hbase: &mut HBase) {
    hbase.kill();
    let start = Instant::now();
    let get = runtime.block_on(table.get::<Row>(1).into_future()).unwrap_err();
    assert!(is_trouble(get.kind()) && get.kind() != ErrorKind::NotFound, "{get:?}");
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    println!("HBase down: {get}");
}
