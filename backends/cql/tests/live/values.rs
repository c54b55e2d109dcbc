//! Values of every type, there and back.

use std::num::NonZeroU32;

use peristyle_core::ErrorKind;
use peristyle_core::codec::value::encode_value;
use peristyle_core::model::{Order, TableSpec, Ttl, Type, Value};
use peristyle_core::request::{Mutation, Projection};
use peristyle_core::testkit::arbitrary::any_value;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::support::{apply, connect, cql, create, get, get_columns, key, keyspace, now, put, query};

fn bytes(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_value(value, &mut bytes);
    bytes
}

fn samples(ty: Type, count: usize) -> Vec<Value> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(|_| any_value(ty).new_tree(&mut runner).unwrap().current()).collect()
}

/// Single-column partition keys can't be empty, on any CQL server.
fn is_empty(value: &Value) -> bool {
    bytes(value).is_empty()
}

#[tokio::test]
async fn every_type_comes_back_as_key_and_as_value_bit_by_bit() {
    let backend = connect().await;
    for ty in Type::ALL.into_iter().filter(|ty| *ty != Type::Counter) {
        let spec = TableSpec::builder(format!("ty_{ty}"))
            .partition("p", ty)
            .clustering("c", ty, Order::Descending)
            .column("v", ty)
            .build()
            .unwrap();
        let table = create(&backend, spec).await;
        for values in samples(ty, 36).chunks(3) {
            let [p, c, v] = values else { continue };
            if is_empty(p) {
                continue;
            }
            let key = key([p.clone(), c.clone()]);
            apply(&backend, &table, put(&key, &[(2, v.clone())])).await.unwrap();
            let row = get(&backend, &table, &key).await.unwrap().unwrap();
            let read: Vec<_> = row.values.iter().map(|value| value.as_ref().unwrap()).collect();
            assert_eq!(read.iter().map(|value| value.ty()).collect::<Vec<_>>(), [ty; 3]);
            assert_eq!(bytes(read[0]), bytes(p), "{ty}");
            assert_eq!(bytes(read[2]), bytes(v), "{ty}");
            assert_eq!(read[1].cluster_cmp(c), std::cmp::Ordering::Equal, "{ty}");
        }
    }
}

#[tokio::test]
async fn an_absent_column_is_not_written_and_an_empty_value_is_one() {
    let backend = connect().await;
    let spec = TableSpec::builder("absent").partition("id", Type::I64);
    let table = create(&backend, spec.column("a", Type::Text).column("b", Type::Text).build().unwrap()).await;
    let key = key([Value::from(1_i64)]);
    apply(&backend, &table, put(&key, &[(1, Value::from("x")), (2, Value::from("y"))])).await.unwrap();
    apply(&backend, &table, put(&key, &[(1, Value::from(""))])).await.unwrap();
    let row = get(&backend, &table, &key).await.unwrap().unwrap();
    assert_eq!(row.values, [Some(Value::from(1_i64)), Some(Value::from("")), Some(Value::from("y"))]);
    assert!(row.meta.is_empty());
}

#[tokio::test]
async fn an_empty_cell_of_a_number_counts_as_absent() {
    let backend = connect().await;
    let spec = TableSpec::builder("empties").partition("id", Type::I64).column("n", Type::I32).build().unwrap();
    let table = create(&backend, spec).await;
    let name = format!("\"{}\".\"empties\"", keyspace());
    cql(&backend, &format!("INSERT INTO {name} (id, n) VALUES (1, blobAsInt(0x))")).await;
    let row = get(&backend, &table, &key([Value::from(1_i64)])).await.unwrap().unwrap();
    assert_eq!(row.values[1], None);
}

#[tokio::test]
async fn write_times_and_times_to_live_are_read_back() {
    let backend = connect().await;
    let spec = TableSpec::builder("meta").partition("id", Type::I64);
    let spec = spec.column("a", Type::Text).column("b", Type::Text).default_ttl(std::time::Duration::from_secs(500));
    let table = create(&backend, spec.build().unwrap()).await;
    let key = key([Value::from(1_i64)]);
    let (first, second) = (now(), now());
    let a = vec![(1, Value::from("x"))];
    let b = vec![(2, Value::from("y"))];
    apply(&backend, &table, Mutation::put(key.clone(), first, a.clone(), Ttl::TableDefault)).await.unwrap();
    apply(&backend, &table, Mutation::put(key.clone(), second, b, Ttl::Never)).await.unwrap();
    let columns = Projection { write_time: true, ttl: true, ..Projection::default() };
    let row = get_columns(&backend, &table, &key, columns.clone()).await.unwrap().unwrap();
    assert_eq!(row.meta.len(), 3);
    assert_eq!((row.meta[1].write_time, row.meta[2].write_time), (Some(first), Some(second)));
    assert!(row.meta[1].ttl.is_some_and(|left| left.get() > 490 && left.get() <= 500), "{:?}", row.meta);
    assert_eq!(row.meta[2].ttl, None);

    let own = Ttl::Seconds(NonZeroU32::new(1_000).unwrap());
    apply(&backend, &table, Mutation::put(key.clone(), now(), a, own)).await.unwrap();
    let row = get_columns(&backend, &table, &key, columns).await.unwrap().unwrap();
    assert!(row.meta[1].ttl.is_some_and(|left| left.get() > 990), "{:?}", row.meta);
}

#[tokio::test]
async fn a_projection_reads_what_it_names_and_the_key() {
    let backend = connect().await;
    let spec = TableSpec::builder("projected").partition("id", Type::I64);
    let table = create(&backend, spec.column("a", Type::Text).column("b", Type::Text).build().unwrap()).await;
    let key = key([Value::from(1_i64)]);
    apply(&backend, &table, put(&key, &[(1, Value::from("x"))])).await.unwrap();
    let only = |columns: &[usize]| Projection { columns: Some(columns.into()), ..Projection::default() };
    let row = get_columns(&backend, &table, &key, only(&[2])).await.unwrap().unwrap();
    assert_eq!(row.values, [Some(Value::from(1_i64)), None, None]);
    let row = get_columns(&backend, &table, &key, only(&[])).await.unwrap().unwrap();
    assert_eq!(row.values, [Some(Value::from(1_i64)), None, None]);
    let row = get_columns(&backend, &table, &key, only(&[1])).await.unwrap().unwrap();
    assert_eq!(row.values[1], Some(Value::from("x")));
}

#[tokio::test]
async fn a_value_of_another_type_is_refused_and_nothing_panics() {
    let backend = connect().await;
    let spec = TableSpec::builder("wrong").partition("id", Type::I64).column("v", Type::Text).build().unwrap();
    let table = create(&backend, spec).await;
    let good = key([Value::from(1_i64)]);
    for mutation in [
        put(&good, &[(1, Value::from(1_i64))]),
        put(&key([Value::from("x")]), &[(1, Value::from("x"))]),
        put(&key([]), &[(1, Value::from("x"))]),
        put(&key([Value::from(1_i64), Value::from(2_i64)]), &[(1, Value::from("x"))]),
        put(&good, &[(7, Value::from("x"))]),
    ] {
        let error = apply(&backend, &table, mutation).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument), "{error}");
        assert_eq!(error.outcome(), peristyle_core::Outcome::NotApplied);
    }
    let missing = peristyle_core::request::Query {
        partition: key([]),
        prefix: vec![Value::from(1_i64)],
        lower: std::ops::Bound::Unbounded,
        upper: std::ops::Bound::Unbounded,
        reverse: true,
        after: None,
        limit: 1,
        columns: Projection::default(),
    };
    assert_eq!(query(&backend, &table, missing).await.unwrap_err().kind(), ErrorKind::InvalidArgument);
}
