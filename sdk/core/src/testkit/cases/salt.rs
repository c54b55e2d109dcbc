//! Salted tables.

use futures::TryStreamExt;

use super::cases;
use crate::error::ErrorKind;
use crate::model::{Order, Row, Salt, TableBuilder, Type};
use crate::table::Table;
use crate::testkit::Fixture;

cases! {
    a_salted_table_reads_and_writes_as_one_without: Salt;
    buckets_are_scanned_in_key_order_with_limit_and_token: Salt;
    every_row_of_a_salted_table_is_scanned_once: Salt;
    a_table_with_another_salt_is_refused: Salt, Introspection;
}

const SALTS: [Salt; 2] = [Salt::MIDDLE_BYTES, Salt::Buckets(5)];

fn events(fixture: &Fixture, salt: Salt) -> TableBuilder {
    let table = fixture.table().partition("device", Type::Text).clustering("at", Type::I64, Order::Descending);
    table.column("v", Type::I64).column("note", Type::Text).salt(salt)
}

fn event(device: i64, at: i64) -> Row {
    Row::new().with("device", format!("d{device}")).with("at", at).with("v", device * 100 + at)
}

async fn with_events<F: Future<Output = ()>>(fixture: &Fixture, salt: Salt, case: impl FnOnce(Table) -> F) {
    fixture
        .with_table(events(fixture, salt), |table| async move {
            let rows = (0..12).flat_map(|device| (0..4).map(move |at| event(device, at)));
            table.put_all(rows).await.unwrap().into_result().unwrap();
            case(table).await;
        })
        .await;
}

fn place(row: &Row) -> (String, i64) {
    let at = i64::try_from(row.get("at").unwrap().clone()).unwrap();
    (String::try_from(row.get("device").unwrap().clone()).unwrap(), -at)
}

async fn a_salted_table_reads_and_writes_as_one_without(fixture: &Fixture) {
    for salt in SALTS {
        with_events(fixture, salt, |table| async move {
            assert_eq!(table.get(("d3", 2_i64)).await.unwrap(), Some(event(3, 2)));
            table.put(&event(3, 2).with("note", "new")).await.unwrap();
            table.delete(("d3", 1_i64)).await.unwrap();
            let found: Vec<Option<Row>> = table.get_all([("d3", 2_i64), ("d3", 1), ("d9", 0)]).await.unwrap();
            assert_eq!(found, [Some(event(3, 2).with("note", "new")), None, Some(event(9, 0))]);
            let rows: Vec<Row> = table.query("d3").range(0_i64..3).rows().try_collect().await.unwrap();
            assert_eq!(rows, [event(3, 2).with("note", "new"), event(3, 0)]);
            let last: Vec<Row> = table.query("d4").reverse().limit(2).page_size(1).rows().try_collect().await.unwrap();
            assert_eq!(last, [event(4, 0), event(4, 1)]);
            let notes: Option<Row> = table.get(("d3", 2_i64)).columns(["note"]).await.unwrap();
            assert_eq!(notes.unwrap().get("note"), Some(&"new".into()));
        })
        .await;
    }
}

async fn buckets_are_scanned_in_key_order_with_limit_and_token(fixture: &Fixture) {
    with_events(fixture, Salt::Buckets(5), |table| async move {
        for page_size in [1, 5, 48, 1000] {
            let rows: Vec<Row> = table.scan().key_order().page_size(page_size).rows().try_collect().await.unwrap();
            assert_eq!(rows.len(), 48, "pages of {page_size}");
            assert!(rows.iter().map(place).is_sorted(), "pages of {page_size}");
        }
        let some: Vec<Row> = table.scan().key_order().page_size(3).limit(7).rows().try_collect().await.unwrap();
        assert_eq!(some.last(), Some(&event(1, 1)));
        let page = table.scan().key_order().page_size(6).page::<Row>(None).await.unwrap();
        let token = page.next.unwrap().to_string().parse().unwrap();
        let next = table.scan().key_order().page_size(3).page::<Row>(Some(&token)).await.unwrap();
        assert_eq!(next.rows, [event(1, 1), event(1, 0), event(10, 3)]);
    })
    .await;
}

async fn every_row_of_a_salted_table_is_scanned_once(fixture: &Fixture) {
    for salt in SALTS {
        with_events(fixture, salt, |table| async move {
            let mut rows: Vec<Row> = table.scan().page_size(7).rows().try_collect().await.unwrap();
            rows.sort_by_key(place);
            rows.dedup();
            assert_eq!(rows.len(), 48, "{salt:?}");
            assert_eq!(rows.first(), Some(&event(0, 3)));
        })
        .await;
    }
}

async fn a_table_with_another_salt_is_refused(fixture: &Fixture) {
    for salt in SALTS {
        let spec = events(fixture, salt).build().unwrap();
        fixture.client().create_table(&spec).await.unwrap();
        let live = fixture.client().describe_table(spec.name()).await.unwrap().unwrap();
        assert_eq!((live.primary_key(), live.salt()), (spec.primary_key(), Some(salt)));
        let declare = || {
            let table = crate::model::TableSpec::builder(spec.name().clone()).partition("device", Type::Text);
            table.clustering("at", Type::I64, Order::Descending).column("v", Type::I64)
        };
        for other in [declare(), declare().salt(Salt::Buckets(7))] {
            let error = fixture.client().table(other.build().unwrap()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{error}");
            assert!(error.to_string().contains("salt"), "{error}");
        }
        fixture.client().drop_table(spec.name()).await.unwrap();
    }
}
