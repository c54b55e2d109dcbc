//! Tables made, described and removed.

use std::time::Duration;

use super::cases;
use crate::error::ErrorKind;
use crate::model::{Order, Row, TableSpec, Type};
use crate::request::Replication;
use crate::testkit::Fixture;

cases! {
    a_table_is_described_as_it_was_declared: Introspection;
    an_introspected_table_reads_and_writes: Introspection;
    a_second_create_is_refused_unless_it_may_exist;
    a_dropped_table_is_gone_and_can_be_made_again;
    a_truncated_table_is_empty: Truncate;
    a_namespace_may_exist;
    a_table_that_differs_is_refused: Introspection;
    a_declaration_may_have_fewer_columns_in_another_order;
    a_missing_table_is_named;
}

async fn a_table_is_described_as_it_was_declared(fixture: &Fixture) {
    let mut table = fixture.table().partition("p1", Type::Text).partition("p2", Type::I64);
    table = table.clustering("c1", Type::TimeUuid, Order::Descending).clustering("c2", Type::Inet, Order::Ascending);
    for ty in Type::ALL.into_iter().filter(|ty| *ty != Type::Counter) {
        table = table.column(format!("v_{ty}"), ty);
    }
    fixture
        .with_table(table.default_ttl(Duration::from_secs(1000)), |table| async move {
            let live = fixture.client().describe_table(table.spec().name()).await.unwrap().unwrap();
            assert_eq!(live.primary_key(), table.spec().primary_key());
            assert_eq!(live.default_ttl(), table.spec().default_ttl());
            let sorted = |spec: &TableSpec| {
                let mut columns = spec.value_columns().to_vec();
                columns.sort_by(|a, b| a.name.cmp(&b.name));
                columns
            };
            assert_eq!(sorted(&live), sorted(table.spec()));
        })
        .await;
}

async fn an_introspected_table_reads_and_writes(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |declared| async move {
            let live = fixture.client().introspect(declared.spec().name()).await.unwrap();
            let row = Row::new().with("id", 1_i64).with("pages", 5_i64);
            live.put(&row).await.unwrap();
            assert_eq!(declared.get(1).await.unwrap(), Some(row));
        })
        .await;
}

async fn a_second_create_is_refused_unless_it_may_exist(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let error = fixture.client().create_table(books.spec()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
            fixture.client().create_table_if_absent(books.spec()).await.unwrap();
        })
        .await;
}

async fn a_dropped_table_is_gone_and_can_be_made_again(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let (client, name) = (fixture.client(), books.spec().name());
            let row = Row::new().with("id", 1_i64).with("title", "x");
            books.put(&row).await.unwrap();
            client.drop_table(name).await.unwrap();
            let error = client.drop_table(name).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            client.drop_table_if_present(name).await.unwrap();
            client.create_table(books.spec()).await.unwrap();
            let books = client.table(books.spec().clone()).await.unwrap();
            assert_eq!(books.get::<Row>(1).await.unwrap(), None);
            books.put(&row).await.unwrap();
            assert_eq!(books.get(1).await.unwrap(), Some(row));
        })
        .await;
}

async fn a_truncated_table_is_empty(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let row = Row::new().with("id", 1_i64).with("title", "x");
            books.put(&row).await.unwrap();
            fixture.client().truncate_table(books.spec().name()).await.unwrap();
            assert_eq!(books.get::<Row>(1).await.unwrap(), None);
            books.put(&row).await.unwrap();
            assert_eq!(books.get(1).await.unwrap(), Some(row));
        })
        .await;
}

async fn a_namespace_may_exist(fixture: &Fixture) {
    fixture.client().create_namespace(Replication::default()).await.unwrap();
}

async fn a_table_that_differs_is_refused(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let name = books.spec().name();
            let narrower = TableSpec::builder(name.clone()).partition("id", Type::I64).column("pages", Type::I64);
            fixture.client().table(narrower.build().unwrap()).await.expect("fewer value columns are no difference");
            let other = TableSpec::builder(name.clone()).partition("id", Type::Text).column("colour", Type::I64);
            let error = fixture.client().table(other.build().unwrap()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
            let message = error.to_string();
            assert!(
                message.contains("column id is i64, not text") && message.contains("column colour is missing"),
                "{message}"
            );
        })
        .await;
}

async fn a_missing_table_is_named(fixture: &Fixture) {
    let spec = fixture.books().build().unwrap();
    let missing = crate::table::Table::new(fixture.client().clone(), spec.clone().into());
    let mut errors = vec![
        missing.put(&Row::new().with("id", 1_i64).with("pages", 1_i64)).await.unwrap_err(),
        missing.get::<Row>(1).await.unwrap_err(),
        missing.scan().page::<Row>(None).await.unwrap_err(),
    ];
    if fixture.client().capabilities().has(crate::Capability::Introspection) {
        errors.push(fixture.client().table(spec.clone()).await.unwrap_err());
    }
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}");
        assert!(error.to_string().contains(&**spec.name()), "{error}");
        assert_eq!(error.outcome(), crate::Outcome::NotApplied);
    }
}

async fn a_declaration_may_have_fewer_columns_in_another_order(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let whole = Row::new().with("id", 1_i64).with("title", "x").with("pages", 5_i64).with("note", vec![1_u8]);
            books.put(&whole).await.unwrap();
            let spec = TableSpec::builder(books.spec().name().clone()).partition("id", Type::I64);
            let spec = spec.column("note", Type::Blob).column("title", Type::Text).build().unwrap();
            let narrow = fixture.client().table(spec).await.unwrap();
            let part = Row::new().with("id", 1_i64).with("note", vec![1_u8]).with("title", "x");
            assert_eq!(narrow.get(1).await.unwrap(), Some(part.clone()));
            assert_eq!(narrow.scan().page::<Row>(None).await.unwrap().rows, [part]);
            narrow.put(&Row::new().with("id", 1_i64).with("title", "y")).await.unwrap();
            narrow.delete(1).columns(["note"]).await.unwrap();
            let expected = Row::new().with("id", 1_i64).with("title", "y").with("pages", 5_i64);
            assert_eq!(books.get(1).await.unwrap(), Some(expected));
        })
        .await;
}
