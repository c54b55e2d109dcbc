//! Many rows at a time.

use std::num::NonZeroUsize;

use futures::StreamExt;
use futures::future::join_all;

use super::cases;
use crate::error::{ErrorKind, Outcome};
use crate::model::{Order, Row, Type};
use crate::testkit::Fixture;

cases! {
    put_all_applies_every_row;
    put_all_takes_rows_of_one_partition_and_of_many;
    put_all_keeps_the_last_write_of_a_row;
    put_all_merges_columns_of_a_row_in_order;
    put_all_reports_each_row_at_its_place;
    put_all_of_nothing_is_done;
    large_rows_are_split_over_requests;
    get_all_answers_in_the_order_of_the_keys;
    get_all_takes_more_keys_than_one_request_does;
    put_stream_applies_every_row;
    a_streamer_applies_every_row_and_accounts_for_it;
    a_streamer_keeps_the_order_of_puts_and_deletes_of_a_row;
    a_streamer_tells_of_rows_that_are_refused_and_writes_the_others;
    what_many_callers_do_at_once_each_of_them_sees;
}

fn titled(id: i64, title: &str) -> Row {
    Row::new().with("id", id).with("title", title)
}

async fn put_all_applies_every_row(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let rows: Vec<Row> = (0..500).map(|id| titled(id, &format!("title {id}"))).collect();
            let report = books.put_all(rows.clone()).await.unwrap();
            assert_eq!(report.applied(), 500, "{:?}", report.failures().next());
            for id in [0, 1, 63, 64, 65, 499] {
                assert_eq!(books.get(id).await.unwrap(), Some(rows[usize::try_from(id).unwrap()].clone()));
            }
        })
        .await;
}

async fn put_all_takes_rows_of_one_partition_and_of_many(fixture: &Fixture) {
    let table = fixture.table().partition("pk", Type::I64).clustering("c", Type::I64, Order::Ascending);
    fixture
        .with_table(table.column("v", Type::Text), |table| async move {
            let row = |place: i64| Row::new().with("pk", place % 7).with("c", place).with("v", "x");
            let report =
                table.put_all((0..200).map(row)).rows_per_request(NonZeroUsize::new(50).unwrap()).await.unwrap();
            report.into_result().unwrap();
            for place in 0..200 {
                assert_eq!(table.get((place % 7, place)).await.unwrap(), Some(row(place)));
            }
        })
        .await;
}

async fn put_all_keeps_the_last_write_of_a_row(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let titles = ["zz", "a", "mm", "b"];
            let report = books.put_all(titles.map(|title| titled(1, title))).await.unwrap();
            assert_eq!(report.outcomes.len(), 4);
            assert_eq!(books.get(1).await.unwrap(), Some(titled(1, "b")));
        })
        .await;
}

async fn put_all_merges_columns_of_a_row_in_order(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let rows = [
                titled(1, "a").with("pages", 1_i64),
                Row::new().with("id", 1_i64).with("pages", 2_i64),
                Row::new().with("id", 1_i64).with("note", vec![3_u8]),
            ];
            books.put_all(rows).await.unwrap().into_result().unwrap();
            let merged = titled(1, "a").with("pages", 2_i64).with("note", vec![3_u8]);
            assert_eq!(books.get(1).await.unwrap(), Some(merged));
        })
        .await;
}

async fn put_all_reports_each_row_at_its_place(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let wrong = Row::new().with("id", 2_i64).with("colour", "x");
            let empty = Row::new().with("id", 4_i64);
            let rows = [titled(1, "a"), wrong, titled(3, "c"), empty, titled(5, "e")];
            let report = books.put_all(rows).await.unwrap();
            let failed: Vec<usize> = report.failures().map(|(place, _)| place).collect();
            let expected: &[usize] =
                if fixture.client().capabilities().has(crate::Capability::RowMarker) { &[1] } else { &[1, 3] };
            assert_eq!(failed, expected);
            assert!(report.failures().all(|(_, error)| error.outcome() == Outcome::NotApplied));
            assert!(report.outcomes[1].as_ref().unwrap_err().to_string().contains("colour"));
            for id in [1, 3, 5] {
                assert!(books.get::<Row>(id).await.unwrap().is_some(), "row {id} is there");
            }
        })
        .await;
}

async fn put_all_of_nothing_is_done(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            assert_eq!(books.put_all(Vec::<Row>::new()).await.unwrap().outcomes.len(), 0);
            assert_eq!(books.get_all::<Row>(Vec::<i64>::new()).await.unwrap(), Vec::new());
        })
        .await;
}

async fn large_rows_are_split_over_requests(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let row = |id: i64| Row::new().with("id", id).with("note", vec![u8::try_from(id).unwrap(); 100_000]);
            let report = books.put_all((0..40).map(row)).await.unwrap();
            report.into_result().unwrap();
            for id in [0, 17, 39] {
                assert_eq!(books.get(id).await.unwrap(), Some(row(id)));
            }
        })
        .await;
}

async fn get_all_answers_in_the_order_of_the_keys(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            books.put_all((0..10).map(|id| titled(id, "x"))).await.unwrap().into_result().unwrap();
            let keys = [7, 99, 3, 7, 0, -1];
            let expected = keys.map(|id| (0..10).contains(&id).then(|| titled(id, "x")));
            assert_eq!(books.get_all::<Row>(keys).await.unwrap(), expected);
            let error = books.get_all::<Row>(["x"]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        })
        .await;
}

async fn get_all_takes_more_keys_than_one_request_does(fixture: &Fixture) {
    let table = fixture.table().partition("pk", Type::I64).clustering("c", Type::I64, Order::Descending);
    fixture
        .with_table(table.column("v", Type::I64), |table| async move {
            let row = |place: i64| Row::new().with("pk", place % 3).with("c", place).with("v", place);
            table.put_all((0..300).map(row)).await.unwrap().into_result().unwrap();
            let keys = (0..300).rev().map(|place| (place % 3, place));
            let expected: Vec<Option<Row>> = (0..300).rev().map(|place| Some(row(place))).collect();
            assert_eq!(table.get_all::<Row>(keys).await.unwrap(), expected);
        })
        .await;
}

async fn put_stream_applies_every_row(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let rows = futures::stream::iter(0..300).map(|id| titled(id, "streamed"));
            let report = books.put_stream(rows).await.unwrap();
            assert_eq!((report.applied(), report.outcomes.len()), (300, 300));
            assert_eq!(books.get(299).await.unwrap(), Some(titled(299, "streamed")));
        })
        .await;
}

async fn a_streamer_applies_every_row_and_accounts_for_it(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let streamer = books.streamer().max_rows(100).open();
            for id in 0..1_000 {
                streamer.add(&titled(id, &format!("title {id}"))).await.unwrap();
            }
            let receipt = streamer.add(&titled(1_000, "the last")).await.unwrap();
            let flushed = streamer.flush().await.unwrap();
            assert_eq!((flushed.applied, flushed.unfinished()), (1_001, 0), "{:?}", flushed.failures.first());
            assert_eq!(books.get(1_000).await.unwrap(), Some(titled(1_000, "the last")));
            receipt.await.unwrap();
            let report = streamer.close().await.unwrap();
            assert_eq!((report.added, report.applied, report.failed, report.unknown), (1_001, 1_001, 0, 0));
            for id in [0, 63, 64, 500, 999] {
                assert_eq!(books.get(id).await.unwrap(), Some(titled(id, &format!("title {id}"))));
            }
        })
        .await;
}

async fn a_streamer_keeps_the_order_of_puts_and_deletes_of_a_row(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let streamer = books.streamer().rows_per_request(NonZeroUsize::new(3).unwrap()).open();
            for id in 0..40_i64 {
                streamer.add(&titled(id, "first")).await.unwrap();
                streamer.delete(id).await.unwrap();
                streamer.add(&Row::new().with("id", id).with("pages", 7_i64)).await.unwrap();
                if id % 2 == 0 {
                    streamer.delete(id).await.unwrap();
                }
            }
            streamer.close().await.unwrap().into_result().unwrap();
            for id in 0..40_i64 {
                let expected = (id % 2 == 1).then(|| Row::new().with("id", id).with("pages", 7_i64));
                assert_eq!(books.get(id).await.unwrap(), expected, "{id}");
            }
        })
        .await;
}

async fn a_streamer_tells_of_rows_that_are_refused_and_writes_the_others(fixture: &Fixture) {
    let most = fixture.client().capabilities().limits().value_bytes;
    fixture
        .with_table(fixture.books(), |books| async move {
            let streamer = books.streamer().max_bytes(4 * most).open();
            streamer.add(&titled(1, "one")).await.unwrap();
            let large = titled(2, "two").with("note", vec![0_u8; most + 1]);
            let refused = streamer.add(&large).await.unwrap();
            streamer.add(&titled(3, "three")).await.unwrap();
            let error = refused.await.unwrap_err();
            assert_eq!((error.kind(), error.outcome()), (ErrorKind::TooLarge, Outcome::NotApplied), "{error}");
            let report = streamer.close().await.unwrap();
            assert_eq!((report.applied, report.failed, report.failures[0].place), (2, 1, 1));
            assert_eq!(books.get(3).await.unwrap(), Some(titled(3, "three")));
        })
        .await;
}

/// What a batch layer joins, and what it must keep apart.
async fn what_many_callers_do_at_once_each_of_them_sees(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let books = &books;
            let callers = (0..60).map(|id| async move {
                books.put(&titled(id, &format!("title {id}"))).await.unwrap();
                assert_eq!(books.get(id).await.unwrap(), Some(titled(id, &format!("title {id}"))));
                if id % 3 == 0 {
                    books.delete(id).await.unwrap();
                }
                let left = (id % 3 != 0).then(|| titled(id, &format!("title {id}")));
                assert_eq!(books.get(id).await.unwrap(), left);
            });
            join_all(callers).await;
        })
        .await;
}
