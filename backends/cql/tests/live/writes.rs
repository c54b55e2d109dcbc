//! Timestamps, times to live, replaces, many rows at once, counters, conditions.

use std::num::NonZeroU32;
use std::sync::Arc;

use peristyle_core::model::{Key, Order, TableSpec, Ttl, Type, Value, WriteTime};
use peristyle_core::request::{Condition, Consistency, Mutation, Read, RequestOptions, SerialConsistency, Write};
use peristyle_core::response::Comparison;
use peristyle_core::{Backend, ErrorKind, Outcome, Request, Result};
use peristyle_cql::{BatchGrouping, CqlBackend};

use crate::support::{apply, apply_all, config, connect, connect_with, create, get, key, now, put, read, text};

async fn table(backend: &CqlBackend, name: &str) -> Arc<TableSpec> {
    let spec = TableSpec::builder(name)
        .partition("p", Type::Text)
        .clustering("c", Type::I64, Order::Ascending)
        .column("v", Type::Text)
        .column("w", Type::Blob)
        .build()
        .unwrap();
    create(backend, spec).await
}

fn at(p: &str, c: i64) -> Key {
    key([Value::from(p), Value::from(c)])
}

fn v(value: &str) -> Vec<(usize, Value)> {
    vec![(2, Value::from(value))]
}

fn put_at(key: &Key, time: WriteTime, value: &str) -> Mutation {
    Mutation::put(key.clone(), time, v(value), Ttl::TableDefault)
}

#[tokio::test]
async fn the_larger_write_time_wins_whatever_the_order() {
    let backend = connect().await;
    let table = table(&backend, "times").await;
    let row = at("p", 1);
    let (early, late) = (now(), now());
    apply(&backend, &table, put_at(&row, late, "late")).await.unwrap();
    apply(&backend, &table, put_at(&row, early, "early")).await.unwrap();
    assert_eq!(text(&get(&backend, &table, &row).await.unwrap().unwrap(), 2), "late");
    apply(&backend, &table, Mutation::delete_row(row.clone(), early)).await.unwrap();
    assert!(get(&backend, &table, &row).await.unwrap().is_some());
    apply(&backend, &table, Mutation::delete_row(row.clone(), late)).await.unwrap();
    assert!(get(&backend, &table, &row).await.unwrap().is_none(), "at equal times the delete wins");
}

#[tokio::test]
async fn a_row_goes_with_its_last_column() {
    let backend = connect().await;
    let table = table(&backend, "vanish").await;
    let row = at("p", 1);
    let both = vec![(2, Value::from("x")), (3, Value::from(vec![1_u8]))];
    apply(&backend, &table, put(&row, &both)).await.unwrap();
    apply(&backend, &table, Mutation::delete_columns(row.clone(), now(), [2])).await.unwrap();
    let left = get(&backend, &table, &row).await.unwrap().unwrap();
    assert_eq!((&left.values[2], &left.values[3]), (&None, &both[1].1.clone().into()));
    apply(&backend, &table, Mutation::delete_columns(row.clone(), now(), [3])).await.unwrap();
    assert!(get(&backend, &table, &row).await.unwrap().is_none());
    apply(&backend, &table, Mutation::put(row.clone(), now(), vec![], Ttl::TableDefault)).await.unwrap();
    let marked = get(&backend, &table, &row).await.unwrap().unwrap();
    assert_eq!(&marked.values[2..], [None, None]);
}

#[tokio::test]
async fn a_replace_leaves_what_it_writes_and_nothing_else() {
    let backend = connect().await;
    let table = table(&backend, "replaced").await;
    let row = at("p", 1);
    apply(&backend, &table, put(&row, &[(2, Value::from("x")), (3, Value::from(vec![1_u8]))])).await.unwrap();
    apply(&backend, &table, put(&row, &v("y")).replacing()).await.unwrap();
    let read = get(&backend, &table, &row).await.unwrap().unwrap();
    assert_eq!((text(&read, 2), &read.values[3]), ("y", &None));
}

#[tokio::test]
async fn a_partition_is_deleted_whole_and_no_other() {
    let backend = connect().await;
    let table = table(&backend, "partitions").await;
    for (p, c) in [("a", 1), ("a", 2), ("b", 1)] {
        apply(&backend, &table, put(&at(p, c), &v("x"))).await.unwrap();
    }
    apply(&backend, &table, Mutation::delete_partition(key([Value::from("a")]), now())).await.unwrap();
    assert!(get(&backend, &table, &at("a", 2)).await.unwrap().is_none());
    assert!(get(&backend, &table, &at("b", 1)).await.unwrap().is_some());
}

#[tokio::test]
async fn columns_expire_each_in_its_time() {
    let backend = connect().await;
    let table = table(&backend, "expiring").await;
    let row = at("p", 1);
    let seconds = |seconds| Ttl::Seconds(NonZeroU32::new(seconds).unwrap());
    let mut mutation = Mutation::put(row.clone(), now(), v("short"), seconds(1));
    mutation.fold(Mutation::put(row.clone(), now(), [(3, Value::from(vec![1_u8]))], seconds(300)));
    apply(&backend, &table, mutation).await.unwrap();
    // The server's clock can't be moved.
    tokio::time::sleep(std::time::Duration::from_millis(2_100)).await;
    let read = get(&backend, &table, &row).await.unwrap().unwrap();
    assert_eq!((&read.values[2], &read.values[3]), (&None, &Some(Value::from(vec![1_u8]))));

    let forever = Mutation::put(row.clone(), now(), v("x"), seconds(630_720_000));
    let error = apply(&backend, &table, forever).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::InvalidArgument, Outcome::NotApplied));
    assert!(error.message().contains("max_expiry"), "{error}");
}

#[tokio::test]
async fn many_rows_are_put_together_and_each_has_its_outcome() {
    for (grouping, name) in [(BatchGrouping::Mixed, "bulk_mixed"), (BatchGrouping::Partition, "bulk_partition")] {
        let backend = connect_with(config().batch_grouping(grouping)).await;
        let table = table(&backend, name).await;
        // Partitions of one row, of a few, and of more than a batch takes.
        let partition = |row: i64| if row % 3 == 0 { format!("alone{row}") } else { format!("p{}", row % 5) };
        let keys: Vec<_> = (0..700).map(|row| at(&partition(row), row)).collect();
        let mutations = keys.iter().map(|key| put(key, &v(&"x".repeat(200)))).collect();
        let outcomes = apply_all(&backend, &table, mutations).await;
        assert_eq!(outcomes.len(), 700);
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        let all = Read::GetAll { keys: keys.clone(), columns: peristyle_core::request::Projection::default() };
        let rows = read(&backend, &table, all).await.unwrap().into_rows().unwrap();
        for (key, row) in keys.iter().zip(rows) {
            assert_eq!(&row.unwrap().key(&table).unwrap(), key);
        }
    }
}

#[tokio::test]
async fn a_poisonous_row_fails_alone() {
    let backend = connect().await;
    let table = table(&backend, "poison").await;
    // Clustering keys of more than 65535 bytes are refused by the server, a partition key of more here.
    let spec = TableSpec::builder("poison2")
        .partition("p", Type::Text)
        .clustering("c", Type::Text, Order::Ascending)
        .column("v", Type::Text)
        .build()
        .unwrap();
    let texts = create(&backend, spec).await;
    let long = "x".repeat(66_000);
    for same in [true, false] {
        let p = |row: usize| if same { "same".to_owned() } else { format!("alone{row}") };
        let mut mutations: Vec<_> =
            (0..8).map(|row| put(&key([Value::from(p(row)), Value::from(format!("c{row}"))]), &v("x"))).collect();
        mutations[3].key = key([Value::from(p(3)), Value::from(long.as_str())]);
        mutations[5].key = key([Value::from(long.as_str()), Value::from("c")]);
        mutations[6].cells_mut()[0].write =
            peristyle_core::request::CellWrite::Put(Value::from(1_i64), Ttl::TableDefault);
        let keys: Vec<_> = mutations.iter().map(|mutation| mutation.key.clone()).collect();
        let outcomes = apply_all(&backend, &texts, mutations).await;
        for (row, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.is_err(), [3, 5, 6].contains(&row), "row {row}: {outcome:?}");
            let Err(error) = outcome else {
                assert!(get(&backend, &texts, &keys[row]).await.unwrap().is_some(), "row {row}");
                continue;
            };
            assert_eq!(error.outcome(), Outcome::NotApplied, "{error}");
        }
        assert_eq!(outcomes[5].as_ref().unwrap_err().kind(), ErrorKind::TooLarge);
    }
    assert!(apply_all(&backend, &table, vec![]).await.is_empty());
}

#[tokio::test]
async fn puts_deletes_and_replaces_travel_together() {
    let backend = connect().await;
    let table = table(&backend, "together").await;
    for c in 0..3 {
        apply(&backend, &table, put(&at("p", c), &[(2, Value::from("x")), (3, Value::from(vec![1_u8]))]))
            .await
            .unwrap();
    }
    let outcomes = apply_all(
        &backend,
        &table,
        vec![
            Mutation::delete_row(at("p", 0), now()),
            put(&at("p", 1), &v("y")).replacing(),
            Mutation::delete_columns(at("p", 2), now(), [2]),
            put(&at("p", 3), &v("new")),
        ],
    )
    .await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert!(get(&backend, &table, &at("p", 0)).await.unwrap().is_none());
    assert_eq!(get(&backend, &table, &at("p", 1)).await.unwrap().unwrap().values[3], None);
    assert_eq!(get(&backend, &table, &at("p", 2)).await.unwrap().unwrap().values[2], None);
    assert!(get(&backend, &table, &at("p", 3)).await.unwrap().is_some());
}

#[tokio::test]
async fn counters_add_up() {
    let backend = connect().await;
    let spec = TableSpec::builder("counters").partition("id", Type::I64);
    let table = create(&backend, spec.column("a", Type::Counter).column("b", Type::Counter).build().unwrap()).await;
    let row = key([Value::from(1_i64)]);
    for deltas in [vec![(1, 5), (2, -1)], vec![(2, -1), (1, 2)], vec![(1, 1), (1, 1)], vec![]] {
        let write = Write::Increment { key: row.clone(), deltas };
        backend.call(Request::write(table.clone(), write)).await.unwrap().into_done().unwrap();
    }
    let read = get(&backend, &table, &row).await.unwrap().unwrap();
    assert_eq!(&read.values[1..], [Some(Value::Counter(9)), Some(Value::Counter(-2))]);
    apply(&backend, &table, Mutation::delete_row(row.clone(), now())).await.unwrap();
    assert!(get(&backend, &table, &row).await.unwrap().is_none());
    let columns = peristyle_core::request::Projection { write_time: true, ttl: true, ..Default::default() };
    crate::support::get_columns(&backend, &table, &row, columns).await.unwrap();
}

async fn compare(
    backend: &CqlBackend,
    table: &Arc<TableSpec>,
    key: &Key,
    cells: Vec<(usize, Value)>,
    condition: Condition,
) -> Comparison {
    let mutation = Mutation::put(key.clone(), now(), cells, Ttl::TableDefault);
    let mut options = RequestOptions::default();
    options.consistency = Some(Consistency::One);
    options.serial_consistency = Some(SerialConsistency::Serial);
    let request = Request::write(table.clone(), Write::CompareAndPut { mutation, condition }).with_options(options);
    backend.call(request).await.unwrap().into_comparison().unwrap()
}

#[tokio::test]
async fn a_conditional_put_tells_whether_it_was_applied_and_what_stood_in_its_way() {
    let backend = connect().await;
    let table = table(&backend, "conditional").await;
    let row = at("p", 1);
    let done = compare(&backend, &table, &row, v("1"), Condition::RowAbsent).await;
    assert_eq!(done, Comparison { applied: true, current: None });
    let refused = compare(&backend, &table, &row, v("2"), Condition::RowAbsent).await;
    let current = refused.current.unwrap();
    assert!(!refused.applied);
    assert_eq!((text(&current, 2), current.key(&table).unwrap()), ("1", row.clone()));

    let equals = |value: &str| Condition::ColumnEquals(2, Value::from(value));
    let refused = compare(&backend, &table, &row, v("2"), equals("9")).await;
    assert_eq!((refused.applied, text(&refused.current.unwrap(), 2)), (false, "1"));
    assert!(compare(&backend, &table, &row, v("2"), equals("1")).await.applied);
    assert_eq!(text(&get(&backend, &table, &row).await.unwrap().unwrap(), 2), "2");

    let w = vec![(3, Value::from(vec![7_u8]))];
    assert!(compare(&backend, &table, &row, w.clone(), Condition::ColumnAbsent(3)).await.applied);
    let refused = compare(&backend, &table, &row, w.clone(), Condition::ColumnAbsent(3)).await;
    assert_eq!((refused.applied, refused.current.unwrap().values[3].clone()), (false, Some(w[0].1.clone())));
    let absent = at("p", 2);
    assert_eq!(compare(&backend, &table, &absent, v("2"), equals("1")).await, Comparison::default());
    assert!(compare(&backend, &table, &absent, v("2"), Condition::ColumnAbsent(2)).await.applied);
}

#[tokio::test]
async fn a_conditional_put_that_cql_cannot_say_is_refused() {
    let backend = connect().await;
    let table = table(&backend, "unsayable").await;
    let row = at("p", 1);
    let mut mixed = put(&row, &v("x"));
    mixed.fold(Mutation::put(row.clone(), now(), [(3, Value::from(vec![1_u8]))], Ttl::Never));
    let cases = [
        (mixed, Condition::RowAbsent),
        (Mutation::delete_columns(row.clone(), now(), [2]), Condition::RowAbsent),
        (Mutation::put(row.clone(), now(), vec![], Ttl::TableDefault), Condition::ColumnAbsent(2)),
    ];
    for (mutation, condition) in cases {
        let write = Write::CompareAndPut { mutation, condition };
        let error = backend.call(Request::write(table.clone(), write)).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::InvalidArgument, Outcome::NotApplied), "{error}");
    }
}

#[tokio::test]
async fn a_consistency_that_the_cluster_cannot_give_is_unavailable_and_not_applied() {
    let backend = connect().await;
    let table = table(&backend, "levels").await;
    let mut options = RequestOptions::default();
    options.consistency = Some(Consistency::Three);
    let write = Write::Apply(put(&at("p", 1), &v("x")));
    let error = backend.call(Request::write(table.clone(), write).with_options(options)).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unavailable, Outcome::NotApplied), "{error}");
    let endpoint = &error.attempts()[0].endpoint;
    assert_eq!(endpoint, crate::support::address());
}
