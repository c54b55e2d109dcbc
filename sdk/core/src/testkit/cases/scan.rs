//! Scans of a whole table.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use futures::TryStreamExt;

use super::cases;
use crate::model::{Order, Row, Type};
use crate::table::{ScanBuilder, Table};
use crate::testkit::Fixture;

cases! {
    a_scan_returns_every_row_once;
    a_parallel_scan_returns_every_row_once;
    a_scan_keeps_the_rows_of_a_partition_together_and_in_order;
    a_scan_stops_at_its_limit;
    a_scan_goes_on_behind_a_token_in_another_process;
    a_scan_in_key_order_is_sorted: OrderedScan;
    a_scan_of_nothing_is_empty;
}

async fn read(scan: ScanBuilder) -> Vec<Row> {
    scan.rows().try_collect().await.unwrap()
}

const PARTITIONS: i64 = 20;
const ROWS: i64 = 5;

fn row(pk: i64, c: i64) -> Row {
    Row::new().with("pk", pk).with("c", c).with("v", format!("{pk}/{c}"))
}

async fn with_rows<F: Future<Output = ()>>(fixture: &Fixture, case: impl FnOnce(Table) -> F) {
    let table = fixture.table().partition("pk", Type::I64).clustering("c", Type::I64, Order::Descending);
    fixture
        .with_table(table.column("v", Type::Text), |table| async move {
            let rows = (0..PARTITIONS).flat_map(|pk| (0..ROWS).map(move |c| row(pk - 10, c)));
            table.put_all(rows).await.unwrap().into_result().unwrap();
            case(table).await;
        })
        .await;
}

fn number(row: &Row, column: &str) -> i64 {
    i64::try_from(row.get(column).unwrap().clone()).unwrap()
}

/// Checks that these are all the rows, each once.
fn assert_complete(rows: &[Row], what: &str) {
    let mut seen = BTreeMap::new();
    for row in rows {
        *seen.entry((number(row, "pk"), number(row, "c"))).or_insert(0) += 1;
    }
    assert!(seen.values().all(|times| *times == 1), "{what}: a row came twice");
    assert_eq!(seen.len(), usize::try_from(PARTITIONS * ROWS).unwrap(), "{what}");
}

async fn a_scan_returns_every_row_once(fixture: &Fixture) {
    with_rows(fixture, |table| async move {
        for page_size in [1, 3, 7, 100, 1000] {
            assert_complete(&read(table.scan().page_size(page_size)).await, &format!("pages of {page_size}"));
        }
        let values = read(table.scan()).await;
        assert!(values.iter().all(|found| *found == row(number(found, "pk"), number(found, "c"))));
    })
    .await;
}

async fn a_parallel_scan_returns_every_row_once(fixture: &Fixture) {
    with_rows(fixture, |table| async move {
        for ranges in [2, 8] {
            let scan = table.scan().parallel(NonZeroUsize::new(ranges).unwrap()).page_size(3);
            assert_complete(&read(scan).await, &format!("{ranges} ranges"));
        }
    })
    .await;
}

async fn a_scan_keeps_the_rows_of_a_partition_together_and_in_order(fixture: &Fixture) {
    with_rows(fixture, |table| async move {
        let rows = read(table.scan().page_size(7)).await;
        let keys: Vec<(i64, i64)> = rows.iter().map(|row| (number(row, "pk"), number(row, "c"))).collect();
        for partition in keys.chunks(usize::try_from(ROWS).unwrap()) {
            let expected: Vec<_> = (0..ROWS).rev().map(|c| (partition[0].0, c)).collect();
            assert_eq!(partition, expected);
        }
    })
    .await;
}

async fn a_scan_stops_at_its_limit(fixture: &Fixture) {
    with_rows(fixture, |table| async move {
        for limit in [0, 1, 50] {
            assert_eq!(read(table.scan().limit(limit).page_size(7)).await.len(), limit);
            let parallel = table.scan().limit(limit).parallel(NonZeroUsize::new(4).unwrap());
            assert_eq!(read(parallel).await.len(), limit);
        }
    })
    .await;
}

async fn a_scan_goes_on_behind_a_token_in_another_process(fixture: &Fixture) {
    with_rows(fixture, |table| async move {
        let mut rows = Vec::new();
        let mut token = None;
        loop {
            let page = table.scan().page_size(9).page::<Row>(token.as_ref()).await.unwrap();
            rows.extend(page.rows);
            match page.next {
                Some(next) => token = Some(next.to_string().parse().unwrap()),
                None => break,
            }
        }
        assert_complete(&rows, "by tokens");
    })
    .await;
}

async fn a_scan_in_key_order_is_sorted(fixture: &Fixture) {
    with_rows(fixture, |table| async move {
        let rows = read(table.scan().key_order().page_size(7)).await;
        let keys: Vec<(i64, i64)> = rows.iter().map(|row| (number(row, "pk"), -number(row, "c"))).collect();
        assert!(keys.is_sorted(), "{keys:?}");
        assert_complete(&rows, "in key order");
    })
    .await;
}

async fn a_scan_of_nothing_is_empty(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            assert_eq!(read(books.scan()).await, []);
            books.put(&Row::new().with("id", 1_i64).with("title", "x")).await.unwrap();
            books.delete(1).await.unwrap();
            assert_eq!(read(books.scan()).await, []);
            let page = books.scan().page::<Row>(None).await.unwrap();
            assert_eq!((page.rows, page.next), (Vec::<Row>::new(), None));
        })
        .await;
}
