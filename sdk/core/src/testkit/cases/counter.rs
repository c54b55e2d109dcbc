//! Counters.

use futures::future::join_all;

use super::cases;
use crate::error::ErrorKind;
use crate::model::{Row, TableBuilder, Type, Value};
use crate::table::Table;
use crate::testkit::Fixture;

cases! {
    increments_add_up: Counters;
    concurrent_increments_are_all_counted: Counters;
    a_counter_wraps_around: Counters;
    counters_of_a_row_are_apart: Counters;
    a_counter_can_only_be_incremented: Counters;
}

fn hits(fixture: &Fixture) -> TableBuilder {
    fixture.table().partition("id", Type::Text).column("hits", Type::Counter).column("misses", Type::Counter)
}

async fn value(table: &Table, column: &str) -> Option<Value> {
    table.get::<Row>("a").await.unwrap().and_then(|row| row.get(column).cloned())
}

async fn increments_add_up(fixture: &Fixture) {
    fixture
        .with_table(hits(fixture), |hits| async move {
            assert_eq!(value(&hits, "hits").await, None);
            hits.increment("a").by("hits", 5).await.unwrap();
            hits.increment("a").by("hits", -7).by("hits", 1).await.unwrap();
            assert_eq!(value(&hits, "hits").await, Some(Value::Counter(-1)));
            assert_eq!(hits.get::<(String, i64, Option<i64>)>("a").await.unwrap(), Some(("a".into(), -1, None)));
        })
        .await;
}

async fn concurrent_increments_are_all_counted(fixture: &Fixture) {
    fixture
        .with_table(hits(fixture), |hits| async move {
            let increments = (0..100).map(|_| async { hits.increment("a").by("hits", 1).await });
            assert!(join_all(increments).await.iter().all(Result::is_ok));
            assert_eq!(value(&hits, "hits").await, Some(Value::Counter(100)));
        })
        .await;
}

async fn a_counter_wraps_around(fixture: &Fixture) {
    fixture
        .with_table(hits(fixture), |hits| async move {
            hits.increment("a").by("hits", i64::MAX).await.unwrap();
            hits.increment("a").by("hits", 1).await.unwrap();
            assert_eq!(value(&hits, "hits").await, Some(Value::Counter(i64::MIN)));
        })
        .await;
}

async fn counters_of_a_row_are_apart(fixture: &Fixture) {
    fixture
        .with_table(hits(fixture), |hits| async move {
            hits.increment("a").by("hits", 1).by("misses", 2).await.unwrap();
            hits.increment("a").by("misses", 2).await.unwrap();
            hits.increment("b").by("hits", 9).await.unwrap();
            assert_eq!(value(&hits, "hits").await, Some(Value::Counter(1)));
            assert_eq!(value(&hits, "misses").await, Some(Value::Counter(4)));
        })
        .await;
}

async fn a_counter_can_only_be_incremented(fixture: &Fixture) {
    fixture
        .with_table(hits(fixture), |hits| async move {
            let put = hits.put(&Row::new().with("id", "a").with("hits", Value::Counter(1))).await.unwrap_err();
            let delete = hits.delete("a").await.unwrap_err();
            let nothing = hits.increment("a").await.unwrap_err();
            for error in [put, delete, nothing] {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            }
        })
        .await;
}
