//! Times to live.

use std::time::Duration;

use super::cases;
use crate::model::{Row, StoredRow, Value};
use crate::testkit::Fixture;

cases! {
    a_row_expires: PerWriteTtl;
    columns_expire_on_their_own: PerWriteTtl;
    the_tables_default_holds_unless_a_write_says_otherwise: PerWriteTtl;
    a_later_write_outlives_an_expiring_one: PerWriteTtl;
    an_expired_row_does_not_uncover_an_older_value: PerWriteTtl;
    times_to_live_read_back: PerWriteTtl, ReadTtl;
}

const SECOND: Duration = Duration::from_secs(1);

fn titled(title: &str) -> Row {
    Row::new().with("id", 1_i64).with("title", title)
}

async fn a_row_expires(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            books.put(&titled("x")).ttl(2 * SECOND).await.unwrap();
            assert_eq!(books.get(1).await.unwrap(), Some(titled("x")));
            fixture.pass(Duration::from_millis(2_100)).await;
            assert_eq!(books.get::<Row>(1).await.unwrap(), None);
        })
        .await;
}

async fn columns_expire_on_their_own(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            books.put(&titled("x")).ttl(2 * SECOND).await.unwrap();
            let lasting = Row::new().with("id", 1_i64).with("pages", 7_i64);
            books.put(&lasting).await.unwrap();
            fixture.pass(Duration::from_millis(2_100)).await;
            assert_eq!(books.get(1).await.unwrap(), Some(lasting));
        })
        .await;
}

async fn the_tables_default_holds_unless_a_write_says_otherwise(fixture: &Fixture) {
    fixture
        .with_table(fixture.books().default_ttl(2 * SECOND), |books| async move {
            let row = |id: i64| titled("x").with("id", id);
            books.put(&row(1)).await.unwrap();
            books.put(&row(2)).ttl(1000 * SECOND).await.unwrap();
            books.put(&row(3)).no_ttl().await.unwrap();
            books.put_all([row(4)]).await.unwrap().into_result().unwrap();
            fixture.pass(Duration::from_millis(2_100)).await;
            let there = books.get_all::<Row>([1, 2, 3, 4]).await.unwrap().into_iter().map(|row| row.is_some());
            assert_eq!(there.collect::<Vec<_>>(), [false, true, true, false]);
        })
        .await;
}

async fn a_later_write_outlives_an_expiring_one(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            books.put(&titled("brief")).ttl(2 * SECOND).await.unwrap();
            books.put(&titled("lasting")).await.unwrap();
            fixture.pass(Duration::from_millis(2_100)).await;
            assert_eq!(books.get(1).await.unwrap(), Some(titled("lasting")));
        })
        .await;
}

async fn an_expired_row_does_not_uncover_an_older_value(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            books.put(&titled("lasting")).await.unwrap();
            books.put(&titled("brief")).ttl(2 * SECOND).await.unwrap();
            fixture.pass(Duration::from_millis(2_100)).await;
            assert_eq!(books.get::<Row>(1).await.unwrap(), None);
        })
        .await;
}

async fn times_to_live_read_back(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            books.put(&titled("x")).ttl(1000 * SECOND).await.unwrap();
            books.put(&Row::new().with("id", 1_i64).with("pages", 7_i64)).await.unwrap();
            let row: StoredRow = books.get(1).with_meta().await.unwrap().unwrap();
            let left = row.meta[1].ttl.expect("the title expires").get();
            assert!((900..=1000).contains(&left), "{left}");
            assert_eq!((row.meta[2].ttl, row.values[2].clone()), (None, Some(Value::from(7_i64))));
        })
        .await;
}
