//! What the contract suite can't see: what is on the disk, what happens over restarts, and requests no client sends.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::{at, client, counters, on_clock, pair, pairs, table};
use fjall::{Keyspace, KeyspaceCreateOptions};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use peristyle_core::clock::Clock;
use peristyle_core::model::{Decimal, Key, Order, Row, TableSpec, Ttl, Type, Value, WriteTime};
use peristyle_core::request::{
    Cell, CellWrite, Condition, Mutation, Projection, Query, Read, Scan, ScanOrder, ScanRange,
};
use peristyle_core::request::{Schema, Wipe, Write};
use peristyle_core::testkit::values;
use peristyle_core::{Backend, ErrorKind, Outcome, Request, Response};
use peristyle_embedded::{Durability, Embedded, EmbeddedConfig, NativeDatabase};

const MODES: [Durability; 3] = Durability::ALL;

fn time(micros: i64) -> WriteTime {
    WriteTime::from_micros(micros).unwrap()
}

/// The keyspace below the first table that was made.
fn rows_of_first_table(engine: &Embedded) -> Keyspace {
    let native = engine.native().downcast_ref::<NativeDatabase>().unwrap();
    native.database().unwrap().keyspace("rows-1", KeyspaceCreateOptions::default).unwrap()
}

/// Writes what is in memory to files, and merges all files into one.
fn compact(engine: &Embedded) {
    let rows = rows_of_first_table(engine);
    rows.rotate_memtable_and_wait().unwrap();
    rows.major_compact().unwrap();
}

#[tokio::test]
async fn every_type_survives_a_restart_as_key_and_as_value() {
    let folder = tempfile::tempdir().unwrap();
    for restarted in [false, true] {
        let (client, _engine) = client(&at(folder.path())).unwrap();
        for ty in Type::ALL.into_iter().filter(|ty| *ty != Type::Counter) {
            let spec = TableSpec::builder(format!("of_{ty}"))
                .partition("p", Type::I8)
                .clustering("c", ty, Order::Descending)
                .column("v", ty)
                .build()
                .unwrap();
            let table = table(&client, spec).await;
            let rows = values::of(ty).into_iter().rev();
            let rows: Vec<Row> =
                rows.map(|value| Row::new().with("p", 1_i8).with("c", value.clone()).with("v", value)).collect();
            if !restarted {
                table.put_all(rows.iter().cloned()).await.unwrap().into_result().unwrap();
            }
            let found: Vec<Row> = table.query(1_i8).rows().try_collect().await.unwrap();
            assert_eq!(format!("{found:?}"), format!("{rows:?}"));
        }
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_clean_close_loses_nothing_in_any_mode() {
    for mode in MODES {
        let folder = tempfile::tempdir().unwrap();
        let config = at(folder.path()).durability(mode);
        let (first, _engine) = client(&config).unwrap();
        let rows = table(&first, pairs()).await;
        stream::iter(0..300)
            .for_each_concurrent(16, |id| {
                let rows = &rows;
                async move { rows.put(&pair(id, "x")).await.unwrap() }
            })
            .await;
        first.close().await.unwrap();
        let (second, _engine) = client(&config).unwrap();
        let found: Vec<Row> = table(&second, pairs()).await.scan().rows().try_collect().await.unwrap();
        assert_eq!(found.len(), 300, "{mode:?}");
    }
}

#[tokio::test]
async fn a_key_keeps_the_bytes_it_was_first_written_with() {
    let (client, _engine) = client(&EmbeddedConfig::temporary()).unwrap();
    let spec = TableSpec::builder("prices")
        .partition("p", Type::Decimal)
        .clustering("c", Type::Decimal, Order::Ascending)
        .column("v", Type::I32)
        .build()
        .unwrap();
    let table = table(&client, spec).await;
    let decimal = |unscaled: i64, scale: i32| Value::from(Decimal::new(unscaled, scale));
    let row = |p: Value, c: Value, v: i32| Row::new().with("p", p).with("c", c).with("v", v);
    // 1.0 and 1.00 are one row of a partition, but two partitions.
    table.put(&row(decimal(10, 1), decimal(100, 2), 1)).await.unwrap();
    table.put(&row(decimal(10, 1), decimal(1, 0), 2)).await.unwrap();
    table.put(&row(decimal(100, 2), decimal(1, 0), 3)).await.unwrap();
    let first = row(decimal(10, 1), decimal(100, 2), 2);
    let second = row(decimal(100, 2), decimal(1, 0), 3);
    for key in [decimal(1, 0), decimal(100, 2)] {
        let found: Option<Row> = table.get(Key::new(vec![decimal(10, 1), key.clone()])).await.unwrap();
        assert_eq!(format!("{:?}", found.unwrap()), format!("{first:?}"));
        let found: Option<Row> = table.get(Key::new(vec![decimal(100, 2), key])).await.unwrap();
        assert_eq!(format!("{:?}", found.unwrap()), format!("{second:?}"));
    }
    let all: Vec<Row> = table.scan().rows().try_collect().await.unwrap();
    assert_eq!(format!("{all:?}"), format!("{:?}", [first, second]));
}

#[tokio::test]
async fn an_older_write_that_comes_after_the_delete_of_its_partition_stays_hidden() {
    let folder = tempfile::tempdir().unwrap();
    let now = 1_700_000_000_000_000;
    let config = at(folder.path()).clock(Clock::manual(now));
    let (first, engine) = client(&config).unwrap();
    let rows = table(&first, pairs()).await;
    rows.put(&pair(1, "before")).write_time(time(now)).await.unwrap();
    rows.delete_partition(1_i64).write_time(time(now + 10)).await.unwrap();
    assert_eq!(rows_of_first_table(&engine).len().unwrap(), 0, "the delete of the partition says it all");
    rows.put(&pair(1, "late")).write_time(time(now + 10)).await.unwrap();
    assert_eq!(rows.get::<Row>(1_i64).await.unwrap(), None);
    first.close().await.unwrap();
    let (second, _engine) = client(&config).unwrap();
    let rows = table(&second, pairs()).await;
    rows.put(&pair(1, "late")).write_time(time(now + 10)).await.unwrap();
    assert_eq!(rows.get::<Row>(1_i64).await.unwrap(), None);
    rows.put(&pair(1, "after")).write_time(time(now + 11)).await.unwrap();
    assert_eq!(rows.get::<Row>(1_i64).await.unwrap(), Some(pair(1, "after")));
}

#[tokio::test]
async fn a_table_made_anew_knows_nothing_of_the_deletes_before() {
    let folder = tempfile::tempdir().unwrap();
    let config = at(folder.path()).clock(Clock::manual(1_700_000_000_000_000));
    for _ in 0..2 {
        let (client, _engine) = client(&config).unwrap();
        let rows = table(&client, pairs()).await;
        rows.delete_partition(1_i64).await.unwrap();
        client.truncate_table("pairs").await.unwrap();
        rows.put(&pair(1, "old")).write_time(time(5)).await.unwrap();
        assert_eq!(rows.get::<Row>(1_i64).await.unwrap(), Some(pair(1, "old")));
        rows.delete_partition(1_i64).await.unwrap();
        client.drop_table("pairs").await.unwrap();
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn compaction_drops_the_expired_and_the_deleted_after_the_grace_and_nothing_before() {
    let (config, clock) = on_clock();
    let (client, engine) = client(&config.tombstone_grace(Duration::from_secs(100))).unwrap();
    let rows = table(&client, pairs()).await;
    rows.put(&pair(1, "expires")).ttl(Duration::from_secs(10)).await.unwrap();
    rows.put(&pair(2, "deleted")).await.unwrap();
    rows.put(&pair(3, "stays")).await.unwrap();
    rows.put(&pair(4, "half")).await.unwrap();
    rows_of_first_table(&engine).rotate_memtable_and_wait().unwrap();
    let old = client.next_write_time();
    rows.delete(2_i64).await.unwrap();
    rows.delete(4_i64).columns(["b"]).await.unwrap();
    clock.advance(Duration::from_secs(50));
    compact(&engine);
    assert_eq!(rows_of_first_table(&engine).len().unwrap(), 4, "within the grace everything is remembered");
    rows.put(&pair(2, "late")).write_time(old).await.unwrap();
    assert_eq!(rows.get::<Row>(2_i64).await.unwrap(), None);
    clock.advance(Duration::from_secs(51));
    compact(&engine);
    assert_eq!(rows_of_first_table(&engine).len().unwrap(), 2);
    let left: Vec<Row> = rows.scan().rows().try_collect().await.unwrap();
    assert_eq!(left, [pair(3, "stays"), Row::new().with("id", 4_i64).with("a", "half")]);
}

#[tokio::test]
async fn an_expired_row_is_gone_at_once_and_its_older_value_does_not_come_back() {
    let (config, clock) = on_clock();
    let (client, engine) = client(&config.tombstone_grace(Duration::from_secs(1))).unwrap();
    let rows = table(&client, pairs()).await;
    rows.put(&pair(1, "lasting")).await.unwrap();
    rows_of_first_table(&engine).rotate_memtable_and_wait().unwrap();
    rows.put(&pair(1, "expiring")).ttl(Duration::from_secs(60)).await.unwrap();
    clock.advance(Duration::from_secs(59));
    assert_eq!(rows.get::<Row>(1_i64).await.unwrap(), Some(pair(1, "expiring")));
    clock.advance(Duration::from_secs(1));
    assert_eq!(rows.get::<Row>(1_i64).await.unwrap(), None);
    clock.advance(Duration::from_secs(60));
    compact(&engine);
    assert_eq!(rows.get::<Row>(1_i64).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_sees_one_instant() {
    let config = EmbeddedConfig::temporary().durability(Durability::Buffered);
    let (client, _engine) = client(&config).unwrap();
    let rows = table(&client, pairs()).await;
    let both = |text: String| [pair(1, &text), pair(2, &text)];
    rows.put_all(both("start".into())).await.unwrap().into_result().unwrap();
    let writer = tokio::spawn({
        let rows = rows.clone();
        async move {
            for turn in 0..2000 {
                rows.put_all(both(turn.to_string())).await.unwrap().into_result().unwrap();
            }
        }
    });
    while !writer.is_finished() {
        let page = rows.scan().page::<Row>(None).await.unwrap();
        let texts: Vec<_> = page.rows.iter().map(|row| row.get("a").cloned()).collect();
        assert!(texts.len() == 2 && texts[0] == texts[1], "{texts:?}");
    }
    writer.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_increment_of_sixteen_tasks_counts() {
    for mode in MODES {
        let (client, _engine) = client(&EmbeddedConfig::temporary().durability(mode)).unwrap();
        let counts = table(&client, counters()).await;
        let task = || {
            let counts = counts.clone();
            tokio::spawn(async move {
                for _ in 0..100 {
                    counts.increment(1_i64).by("hits", 1).await.unwrap();
                }
            })
        };
        let tasks: Vec<_> = (0..16).map(|_| task()).collect();
        for task in tasks {
            task.await.unwrap();
        }
        let row: Option<Row> = counts.get(1_i64).await.unwrap();
        assert_eq!(row.unwrap().get("hits"), Some(&Value::Counter(1600)), "{mode:?}");
    }
}

#[tokio::test]
async fn a_write_that_is_dropped_is_whole_or_not_there_and_holds_nothing() {
    for mode in MODES {
        let (client, _engine) = client(&EmbeddedConfig::temporary().durability(mode)).unwrap();
        let rows = table(&client, pairs()).await;
        // More than the queue has places for, each polled once.
        for id in 0..5000 {
            let row = pair(id, &format!("row {id}"));
            drop(rows.put(&row).into_future().now_or_never());
        }
        rows.put(&pair(-1, "last")).await.unwrap();
        let found: Vec<Row> = rows.scan().rows().try_collect().await.unwrap();
        assert!(found.len() > 1, "{}", found.len());
        for row in found {
            let Some(Value::I64(id)) = row.get("id") else { panic!("{row:?}") };
            let text = if *id == -1 { "last".to_owned() } else { format!("row {id}") };
            assert_eq!(row, pair(*id, &text), "{mode:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_before_a_close_is_there_after_it() {
    for mode in MODES {
        let folder = tempfile::tempdir().unwrap();
        let config = at(folder.path()).durability(mode);
        let (first, _engine) = client(&config).unwrap();
        let rows = table(&first, pairs()).await;
        let writes = |from: i64| {
            let rows = rows.clone();
            tokio::spawn(async move {
                for id in from.. {
                    match rows.put(&pair(id, "x")).await {
                        Ok(()) => {}
                        Err(error) => {
                            assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::NotApplied));
                            return id - from;
                        }
                    }
                }
                unreachable!("the engine is closed some time")
            })
        };
        let tasks: Vec<_> = (0..16).map(|task| writes(task * 1_000_000)).collect();
        while rows.scan().page::<Row>(None).await.unwrap().rows.len() < 50 {
            tokio::task::yield_now().await;
        }
        first.close().await.unwrap();
        let mut acknowledged = 0;
        for task in tasks {
            acknowledged += task.await.unwrap();
        }
        let (second, _engine) = client(&config).unwrap();
        let found = table(&second, pairs()).await.scan().rows::<Row>().count().await;
        assert_eq!(i64::try_from(found).unwrap(), acknowledged, "{mode:?}");
    }
}

#[tokio::test]
async fn a_closed_engine_says_so_and_closes_twice() {
    let (client, engine) = client(&EmbeddedConfig::temporary()).unwrap();
    let rows = table(&client, pairs()).await;
    client.close().await.unwrap();
    client.close().await.unwrap();
    let read = rows.get::<Row>(1_i64).await.unwrap_err();
    let write = rows.put(&pair(1, "x")).await.unwrap_err();
    let schema = client.drop_table("pairs").await.unwrap_err();
    let native = engine.native().downcast_ref::<NativeDatabase>().unwrap().database().map(drop).unwrap_err();
    for error in [read, write, schema, native] {
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::NotApplied), "{error}");
    }
}

#[test]
fn no_runtime_is_needed() {
    futures::executor::block_on(async {
        let engine = Embedded::open(&EmbeddedConfig::temporary()).unwrap();
        let spec = Arc::new(pairs());
        let create = Schema::Create { table: Arc::clone(&spec), if_absent: false };
        engine.call(Request::schema(create)).await.unwrap();
        let key = Key::new(vec![Value::I64(1)]);
        let put = Mutation::put(key, time(1), vec![(1, Value::from("x"))], Ttl::TableDefault);
        engine.call(Request::write(Arc::clone(&spec), Write::Apply(put))).await.unwrap();
        let scan = Read::Scan(Box::new(scan(ScanRange::All, 1000)));
        let page = engine.call(Request::read(spec, scan)).await.unwrap().into_page().unwrap();
        assert_eq!(page.rows.len(), 1);
        engine.close().await.unwrap();
    });
}

fn scan(range: ScanRange, limit: usize) -> Scan {
    Scan { range, order: ScanOrder::Key, after: None, limit, columns: Projection::default() }
}

#[tokio::test]
async fn a_declaration_of_fewer_columns_in_another_order_reads_and_writes_those() {
    let (client, _engine) = client(&EmbeddedConfig::temporary()).unwrap();
    let whole = TableSpec::builder("t")
        .partition("id", Type::I64)
        .column("a", Type::Text)
        .column("b", Type::I32)
        .column("c", Type::Text)
        .build()
        .unwrap();
    let part = TableSpec::builder("t").partition("id", Type::I64).column("c", Type::Text).column("a", Type::Text);
    let (whole, part) = (table(&client, whole).await, client.table(part.build().unwrap()).await.unwrap());
    let row = Row::new().with("id", 1_i64).with("c", "c").with("a", "a");
    part.put(&row).await.unwrap();
    let b = Row::new().with("id", 1_i64).with("b", 2);
    whole.put(&b).await.unwrap();
    let found: Option<Row> = part.get(1_i64).await.unwrap();
    assert_eq!(found, Some(row.clone()));
    let found: Vec<Row> = part.scan().columns(["a"]).rows().try_collect().await.unwrap();
    assert_eq!(found, [Row::new().with("id", 1_i64).with("a", "a")]);
    let refused = part.compare_and_put(&row).if_equals("a", "other").await.unwrap();
    assert_eq!(refused.current, Some(row.clone()));
    assert!(part.compare_and_put(&row.with("c", "d")).if_equals("c", "c").await.unwrap().applied);
    let found: Option<Row> = whole.get(1_i64).await.unwrap();
    assert_eq!(found, Some(Row::new().with("id", 1_i64).with("a", "a").with("b", 2).with("c", "d")));
}

#[tokio::test]
async fn a_request_for_other_columns_than_the_tables_is_refused() {
    let (client, engine) = client(&EmbeddedConfig::temporary()).unwrap();
    table(&client, pairs()).await;
    let base = || TableSpec::builder("pairs");
    let other_key = base().partition("key", Type::I64).column("a", Type::Text);
    let other_type = base().partition("id", Type::I64).column("a", Type::Blob);
    let other_column = base().partition("id", Type::I64).column("z", Type::Text);
    for spec in [other_key, other_type, other_column] {
        let request = Request::read(Arc::new(spec.build().unwrap()), Read::Scan(Box::new(scan(ScanRange::All, 1))));
        let error = engine.call(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{error}");
        assert!(error.to_string().contains("id i64, a text, b text"), "{error}");
    }
}

#[tokio::test]
async fn a_dropped_table_takes_no_space_and_a_truncated_one_stays_empty() {
    let folder = tempfile::tempdir().unwrap();
    let (first, engine) = client(&at(folder.path())).unwrap();
    let rows = table(&first, pairs()).await;
    table(&first, counters()).await;
    rows.put_all((0..100).map(|id| pair(id, "x"))).await.unwrap().into_result().unwrap();
    first.truncate_table("pairs").await.unwrap();
    assert_eq!(rows.scan().rows::<Row>().count().await, 0);
    rows.put(&pair(1, "after")).await.unwrap();
    first.drop_table("counters").await.unwrap();
    assert_eq!(table_folders(engine.folder()), 1);
    drop((rows, engine));
    first.close().await.unwrap();
    let (second, _engine) = client(&at(folder.path())).unwrap();
    let found: Vec<Row> = table(&second, pairs()).await.scan().rows().try_collect().await.unwrap();
    assert_eq!(found, [pair(1, "after")]);
    assert_eq!(second.describe_table("counters").await.unwrap(), None);
}

/// The folders below, but for the engine's own three.
fn table_folders(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("keyspaces")).unwrap().count() - 3
}

#[tokio::test]
async fn a_page_of_dead_rows_ends_early_and_the_next_goes_on() {
    let (client, engine) = client(&EmbeddedConfig::temporary().durability(Durability::Buffered)).unwrap();
    let rows = table(&client, pairs()).await;
    rows.put_all([pair(0, "first"), pair(30_000, "last")]).await.unwrap().into_result().unwrap();
    let spec = Arc::new(pairs());
    let dead = (1..20_000).map(|id| Mutation::delete_row(Key::new(vec![Value::I64(id)]), time(1))).collect();
    engine.call(Request::write(Arc::clone(&spec), Write::ApplyAll(dead))).await.unwrap();
    let first = rows.scan().page_size(10).page::<Row>(None).await.unwrap();
    assert_eq!(first.rows, [pair(0, "first")]);
    let second = rows.scan().page_size(10).page::<Row>(first.next.as_ref()).await.unwrap();
    assert_eq!(second.rows, [pair(30_000, "last")]);
    assert!(second.next.is_none());
}

#[tokio::test]
async fn a_bad_row_among_many_fails_alone() {
    let (client, engine) = client(&EmbeddedConfig::temporary()).unwrap();
    let rows = table(&client, pairs()).await;
    let put = |id: Value| Mutation::put(Key::new(vec![id]), time(1), vec![(1, Value::from("x"))], Ttl::TableDefault);
    let mutations = vec![put(Value::I64(1)), put(Value::from("wrong")), put(Value::I64(3))];
    let answer = engine.call(Request::write(Arc::new(pairs()), Write::ApplyAll(mutations))).await.unwrap();
    let outcomes = answer.into_outcomes().unwrap();
    assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(outcomes[1].as_ref().unwrap_err().outcome(), Outcome::NotApplied);
    assert_eq!(rows.scan().rows::<Row>().count().await, 2);
}

#[tokio::test]
async fn requests_that_no_client_sends_are_errors() {
    let (client, engine) = client(&EmbeddedConfig::temporary()).unwrap();
    table(&client, pairs()).await;
    table(&client, counters()).await;
    let key = || Key::new(vec![Value::I64(1)]);
    let put = |column: usize, value: Value| Mutation::put(key(), time(1), vec![(column, value)], Ttl::TableDefault);
    let partition = |mutation: Mutation| Mutation { wipe: Wipe::Partition, ..mutation };
    let swap = |mutation, condition| Write::CompareAndPut { mutation, condition };
    let writes = vec![
        Write::Apply(put(0, Value::I64(1))),
        Write::Apply(put(3, Value::from("x"))),
        Write::Apply(put(usize::MAX, Value::from("x"))),
        Write::Apply(put(1, Value::I64(1))),
        Write::Apply(Mutation { key: Key::default(), ..put(1, Value::from("x")) }),
        Write::Apply(Mutation::delete_columns(key(), time(1), [9])),
        Write::Apply(partition(put(1, Value::from("x")))),
        Write::Apply(partition(Mutation::delete_partition(Key::default(), time(1)))),
        Write::Increment { key: key(), deltas: vec![(1, 1)] },
        Write::Increment { key: key(), deltas: vec![(7, 1)] },
        swap(put(1, Value::from("x")), Condition::ColumnAbsent(0)),
        swap(put(1, Value::from("x")), Condition::ColumnEquals(1, Value::I64(1))),
        swap(put(1, Value::from("x")).replacing(), Condition::RowAbsent),
    ];
    for write in writes {
        let shown = format!("{write:?}");
        let error = engine.call(Request::write(Arc::new(pairs()), write)).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::InvalidArgument, Outcome::NotApplied), "{shown}");
    }
    let tokens = ScanRange::Tokens { after: 0, to: 1 };
    let reads = [
        Read::Get { key: Key::default(), columns: Projection::default() },
        Read::Scan(Box::new(scan(tokens, 1))),
        Read::Scan(Box::new(Scan { after: Some(Key::default()), ..scan(ScanRange::All, 1) })),
        Read::Query(Box::new(query(Key::default()))),
        Read::Query(Box::new(Query { prefix: vec![Value::I64(1)], ..query(key()) })),
    ];
    for read in reads {
        let error = engine.call(Request::read(Arc::new(pairs()), read)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}

fn query(partition: Key) -> Query {
    use std::ops::Bound::Unbounded;
    let columns = Projection { columns: Some(Arc::from([99_usize])), ..Projection::default() };
    Query {
        partition,
        prefix: vec![],
        lower: Unbounded,
        upper: Unbounded,
        reverse: false,
        after: None,
        limit: 0,
        columns,
    }
}

#[tokio::test]
async fn a_range_of_keys_that_ends_before_it_begins_is_empty() {
    let (client, engine) = client(&EmbeddedConfig::temporary()).unwrap();
    table(&client, pairs()).await.put(&pair(1, "x")).await.unwrap();
    for (from, to) in [(&b"b"[..], &b"a"[..]), (b"b", b"b")] {
        let range = ScanRange::Keys { from: from.into(), to: Some(to.into()) };
        let answer =
            engine.call(Request::read(Arc::new(pairs()), Read::Scan(Box::new(scan(range, 10))))).await.unwrap();
        assert!(matches!(answer, Response::Page(page) if page.rows.is_empty() && !page.more));
    }
    let everything = ScanRange::Keys { from: (&b""[..]).into(), to: None };
    let answer =
        engine.call(Request::read(Arc::new(pairs()), Read::Scan(Box::new(scan(everything, 10))))).await.unwrap();
    assert_eq!(answer.into_page().unwrap().rows.len(), 1);
}

#[tokio::test]
async fn a_conditional_put_comes_behind_a_write_from_the_future() {
    let (config, _clock) = on_clock();
    let (client, engine) = client(&config).unwrap();
    let rows = table(&client, pairs()).await;
    let future = time(config.clock.micros() + 60_000_000);
    let put = Mutation::put(Key::new(vec![Value::I64(1)]), future, vec![(1, Value::from("x"))], Ttl::TableDefault);
    engine.call(Request::write(Arc::new(pairs()), Write::Apply(put))).await.unwrap();
    let row = Row::new().with("id", 1_i64).with("a", "swapped");
    assert!(rows.compare_and_put(&row).if_equals("a", "x").await.unwrap().applied);
    assert_eq!(rows.get::<Row>(1_i64).await.unwrap(), Some(row));
}

#[tokio::test]
async fn at_equal_write_times_deletes_win_then_larger_bytes_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let put = |text: &str| {
        Mutation::put(Key::new(vec![Value::I64(1)]), time(7), vec![(1, Value::from(text))], Ttl::TableDefault)
    };
    let delete = Mutation::delete_columns(Key::new(vec![Value::I64(1)]), time(7), [1]);
    let steps =
        [(put("m"), Some("m")), (put("z"), Some("z")), (put("a"), Some("z")), (delete, None), (put("zz"), None)];
    for (mutation, expected) in steps {
        let (client, engine) = client(&at(folder.path())).unwrap();
        let rows = table(&client, pairs()).await;
        engine.call(Request::write(Arc::new(pairs()), Write::Apply(mutation))).await.unwrap();
        let found: Option<Row> = rows.get(1_i64).await.unwrap();
        assert_eq!(found.and_then(|row| row.get("a").cloned()), expected.map(Value::from));
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_write_and_a_delete_of_a_column_in_one_request_are_one_step() {
    let (client, engine) = client(&EmbeddedConfig::temporary()).unwrap();
    let rows = table(&client, pairs()).await;
    rows.put(&pair(1, "x")).await.unwrap();
    let cells = vec![
        Cell { column: 1, write: CellWrite::Put(Value::from("y"), Ttl::Never) },
        Cell { column: 2, write: CellWrite::Delete },
    ];
    let write_time = client.next_write_time();
    let mutation = Mutation {
        key: Key::new(vec![Value::I64(1)]),
        write_time,
        wipe: Wipe::Nothing,
        marker: None,
        cells: cells.into(),
    };
    engine.call(Request::write(Arc::new(pairs()), Write::Apply(mutation))).await.unwrap();
    assert_eq!(rows.get::<Row>(1_i64).await.unwrap(), Some(Row::new().with("id", 1_i64).with("a", "y")));
}

fn large(id: i64) -> Row {
    pair(id, &format!("{id} ").repeat(4_000))
}

#[tokio::test]
async fn writes_wait_for_tables_to_be_written_out_and_go_on() {
    for mode in MODES {
        let config = EmbeddedConfig::temporary().durability(mode).write_buffer_bytes(1 << 20);
        let (client, engine) = client(&config).unwrap();
        let rows = table(&client, pairs()).await;
        rows.put_all((0..500).map(large)).await.unwrap().into_result().unwrap();
        let written_out = async {
            while rows_of_first_table(&engine).table_count() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), written_out).await.expect("nothing was written out");
        for id in [0, 250, 499] {
            assert_eq!(rows.get::<Row>(id).await.unwrap(), Some(large(id)), "{mode:?}");
        }
    }
}

#[tokio::test]
async fn a_table_that_cannot_be_written_out_ends_writes_with_an_error_and_reads_go_on() {
    for mode in MODES {
        let config = EmbeddedConfig::temporary().durability(mode).write_buffer_bytes(1 << 20);
        let (client, engine) = client(&config).unwrap();
        let rows = table(&client, pairs()).await;
        rows.put(&large(0)).await.unwrap();
        std::fs::remove_dir_all(rows_of_first_table(&engine).path().join("tables")).unwrap();
        let mut id = 0;
        let error = loop {
            assert!(id < 5_000, "writes go on though nothing can be written out");
            match rows.put(&large(id)).await {
                Ok(()) => id += 1,
                Err(error) => break error,
            }
        };
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Internal, Outcome::NotApplied), "{error}");
        assert!(error.to_string().contains("check disk and space"), "{error}");
        assert_eq!(rows.get::<Row>(id - 1).await.unwrap(), Some(large(id - 1)), "{mode:?}");
        assert!(client.close().await.is_err());
    }
}
