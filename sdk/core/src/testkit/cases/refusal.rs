//! What is refused before any I/O.

use std::time::Duration;

use super::cases;
use crate::capability::Capability;
use crate::error::{Error, ErrorKind, Outcome, Result};
use crate::model::{Row, Salt, Type, WriteTime};
use crate::request::Consistency;
use crate::table::Table;
use crate::testkit::Fixture;

cases! {
    wrong_rows_name_the_column;
    what_the_backend_cannot_do_is_refused;
    sizes_over_the_limit_are_refused;
    impossible_times_are_refused;
    an_empty_partition_key_is_refused;
    a_deadline_in_the_past_ends_at_once;
}

fn refused<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind, text: &str) {
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (kind, Outcome::NotApplied), "{error}");
    let message = error.to_string();
    assert!(message.contains(text) && !message.contains('\n'), "{message:?} lacks {text:?}");
}

async fn wrong_rows_name_the_column(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let invalid = ErrorKind::InvalidArgument;
            refused(books.put(&Row::new().with("title", "x")).await, invalid, "id is missing");
            refused(
                books.put(&Row::new().with("id", "x")).await,
                invalid,
                "column id: has type text, but the column is i64",
            );
            refused(books.put(&Row::new().with("id", 1_i64).with("colour", 1)).await, invalid, "\"colour\"");
            refused(books.get::<Row>("x").await, invalid, "column id");
            refused(books.get::<Row>(1).columns(["colour"]).await, invalid, "\"colour\"");
            refused(books.delete(1).columns(["colour"]).await, invalid, "\"colour\"");
            refused(books.delete(1).columns(["id"]).await, invalid, "no value column");
            refused(books.query(1).range(1..2).page::<Row>(None).await, invalid, "no clustering column left");
            refused(books.query(1).page_size(0).page::<Row>(None).await, invalid, "page of 0 rows");
        })
        .await;
}

async fn what_the_backend_cannot_do_is_refused(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            for capability in Capability::ALL {
                if let Some(attempt) = attempt(fixture, &books, capability).await
                    && !fixture.client().capabilities().has(capability)
                {
                    assert_eq!(attempt.unwrap_err().kind(), ErrorKind::Unsupported(capability));
                }
            }
        })
        .await;
}

/// Does something that needs the capability, where that is simple.
async fn attempt(fixture: &Fixture, books: &Table, capability: Capability) -> Option<Result<()>> {
    let row = Row::new().with("id", 1_i64).with("title", "x");
    let nothing = |_: Row| ();
    Some(match capability {
        Capability::OrderedScan => books.scan().key_order().page::<Row>(None).await.map(|_| ()),
        Capability::PartitionDelete => books.delete_partition(1).await,
        Capability::ReadWriteTime => {
            books.get::<Row>(1).with_meta().await.map(|row| row.map(nothing).unwrap_or_default())
        }
        Capability::PerWriteTtl => books.put(&row).ttl(Duration::from_secs(9)).await,
        Capability::CompareAndPut => books.compare_and_put(&row).await.map(|_| ()),
        Capability::AtomicReplace => books.put(&row).replace().await,
        Capability::RowMarker => books.put(&Row::new().with("id", 1_i64)).await,
        Capability::ConsistencyLevel => books.put(&row).consistency(Consistency::One).await,
        Capability::Truncate => fixture.client().truncate_table(books.spec().name()).await,
        Capability::Salt => {
            let salted = fixture.books().salt(Salt::Buckets(4)).build().ok()?;
            let created = fixture.client().create_table(&salted).await;
            if created.is_ok() {
                fixture.client().drop_table(salted.name()).await.ok()?;
            }
            created
        }
        Capability::Counters => {
            let counters = fixture.table().partition("id", Type::I64).column("n", Type::Counter).build().ok()?;
            let created = fixture.client().create_table(&counters).await;
            if created.is_ok() {
                fixture.client().drop_table(counters.name()).await.ok()?;
            }
            created
        }
        _ => return None,
    })
}

async fn sizes_over_the_limit_are_refused(fixture: &Fixture) {
    let limits = fixture.client().capabilities().limits().clone();
    let table = fixture.table().partition("k", Type::Blob).column("v", Type::Blob);
    fixture
        .with_table(table, |table| async move {
            let row = |key: usize, value: usize| Row::new().with("k", vec![1_u8; key]).with("v", vec![2_u8; value]);
            refused(table.put(&row(limits.partition_key_bytes + 1, 1)).await, ErrorKind::TooLarge, "partition key of");
            refused(table.put(&row(1, limits.value_bytes + 1)).await, ErrorKind::TooLarge, "column v");
            table.put(&row(limits.partition_key_bytes, 1)).await.expect("the limit itself is allowed");
            let long = vec![1_u8; limits.partition_key_bytes];
            assert_eq!(table.get((long,)).await.unwrap(), Some(row(limits.partition_key_bytes, 1)));
        })
        .await;
}

async fn impossible_times_are_refused(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let row = Row::new().with("id", 1_i64).with("title", "x");
            let invalid = ErrorKind::InvalidArgument;
            let now = books.client().next_write_time().as_micros();
            let future = WriteTime::from_micros(now + 7_200_000_000).unwrap();
            refused(books.put(&row).write_time(future).await, invalid, "an hour ahead");
            refused(books.put(&row).ttl(Duration::ZERO).await, invalid, "time to live of 0");
            refused(books.put(&row).ttl(Duration::from_secs(630_720_001)).await, invalid, "20 years");
            if books.client().capabilities().has(Capability::PerWriteTtl) {
                refused(books.put(&row).ttl(Duration::from_secs(630_720_000)).await, invalid, "2038");
            }
            assert_eq!(books.get::<Row>(1).await.unwrap(), None);
        })
        .await;
}

async fn an_empty_partition_key_is_refused(fixture: &Fixture) {
    let table = fixture.table().partition("k", Type::Text).column("v", Type::I32);
    fixture
        .with_table(table, |table| async move {
            let put = table.put(&Row::new().with("k", "").with("v", 1)).await;
            refused(put, ErrorKind::InvalidArgument, "partition key k is empty");
            refused(table.get::<Row>("").await, ErrorKind::InvalidArgument, "partition key k is empty");
        })
        .await;
    let table = fixture.table().partition("a", Type::Text).partition("b", Type::Text).column("v", Type::I32);
    fixture
        .with_table(table, |table| async move {
            let row = Row::new().with("a", "").with("b", "").with("v", 1);
            table.put(&row).await.expect("parts of a composite partition key may be empty");
            assert_eq!(table.get(("", "")).await.unwrap(), Some(row));
        })
        .await;
}

async fn a_deadline_in_the_past_ends_at_once(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let late: Result<Option<Row>> = books.get(1).timeout(Duration::ZERO).await;
            let in_time = |error: &Error| matches!(error.kind(), ErrorKind::Timeout(_));
            assert!(late.as_ref().map_or_else(in_time, Option::is_none), "{late:?}");
        })
        .await;
}
