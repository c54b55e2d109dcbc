//! Queries of one partition.

use std::cmp::Ordering;
use std::ops::Bound;

use futures::TryStreamExt;

use super::cases;
use crate::model::{Order, Row, Timestamp, Type, Value};
use crate::table::{QueryBuilder, Table};
use crate::testkit::Fixture;

cases! {
    a_range_has_its_start_and_lacks_its_end;
    a_range_runs_by_value_in_a_descending_column;
    a_limit_is_exact;
    a_prefix_narrows_before_the_range;
    a_query_sees_one_partition;
    an_empty_range_has_no_rows;
    pages_go_on_behind_each_row_in_mixed_orders;
    pages_go_on_behind_a_deleted_row;
    a_query_projects_columns;
}

async fn read(query: QueryBuilder) -> Vec<Row> {
    query.rows().try_collect().await.unwrap()
}

fn day(day: i64) -> Row {
    Row::new().with("group", "g").with("name", "a_0").with("date", Timestamp(day)).with("value", format!("v{day}"))
}

/// The table of a service that keeps dated properties of things.
async fn with_property<F: Future<Output = ()>>(fixture: &Fixture, case: impl FnOnce(Table) -> F) {
    let table = fixture.table().partition("group", Type::Text).partition("name", Type::Text);
    let table = table.clustering("date", Type::Timestamp, Order::Descending).column("value", Type::Text);
    fixture
        .with_table(table, |property| async move {
            property.put_all((0..50).map(day)).await.unwrap().into_result().unwrap();
            case(property).await;
        })
        .await;
}

fn days(range: impl Iterator<Item = i64>) -> Vec<Row> {
    range.map(day).collect()
}

async fn a_range_has_its_start_and_lacks_its_end(fixture: &Fixture) {
    with_property(fixture, |property| async move {
        let rows = read(property.query(("g", "a_0")).range(10..15)).await;
        assert_eq!(rows, days((10..15).rev()));
        let rows = read(property.query(("g", "a_0")).range(10..=15)).await;
        assert_eq!(rows, days((10..=15).rev()));
        let open = (Bound::Excluded(10), Bound::Unbounded);
        assert_eq!(read(property.query(("g", "a_0")).range(open)).await, days((11..50).rev()));
    })
    .await;
}

async fn a_range_runs_by_value_in_a_descending_column(fixture: &Fixture) {
    with_property(fixture, |property| async move {
        assert_eq!(read(property.query(("g", "a_0")).range(40..).reverse()).await, days(40..50));
        assert_eq!(read(property.query(("g", "a_0")).range(..3)).await, days((0..3).rev()));
    })
    .await;
}

async fn a_limit_is_exact(fixture: &Fixture) {
    with_property(fixture, |property| async move {
        for limit in [0, 1, 7, 50, 51] {
            let rows = read(property.query(("g", "a_0")).limit(limit).page_size(7)).await;
            assert_eq!(rows, days((0..50).rev().take(limit)), "limit {limit}");
        }
    })
    .await;
}

async fn a_query_sees_one_partition(fixture: &Fixture) {
    with_property(fixture, |property| async move {
        property.put(&day(7).with("name", "a_1")).await.unwrap();
        assert_eq!(read(property.query(("g", "a_1"))).await, [day(7).with("name", "a_1")]);
        assert_eq!(read(property.query(("g", "a"))).await, []);
        assert_eq!(read(property.query(("g", "a_0"))).await.len(), 50);
    })
    .await;
}

async fn an_empty_range_has_no_rows(fixture: &Fixture) {
    with_property(fixture, |property| async move {
        for (lower, upper) in [(10, 10), (20, 10), (100, 200)] {
            assert_eq!(read(property.query(("g", "a_0")).range(lower..upper)).await, [], "{lower}..{upper}");
        }
        let excluded = (Bound::Excluded(10), Bound::Excluded(11));
        assert_eq!(read(property.query(("g", "a_0")).range(excluded)).await, []);
    })
    .await;
}

async fn a_query_projects_columns(fixture: &Fixture) {
    let table = fixture.table().partition("id", Type::I64).clustering("c", Type::I64, Order::Ascending);
    fixture
        .with_table(table.column("v", Type::I64).column("w", Type::I64), |table| async move {
            let row = Row::new().with("id", 1_i64).with("c", 1_i64).with("v", 2_i64);
            table.put(&row.clone().with("w", 3_i64)).await.unwrap();
            assert_eq!(read(table.query(1).columns(["v"])).await, [row]);
        })
        .await;
}

fn mixed(a: i32, b: &str, c: i64) -> Row {
    Row::new().with("pk", "p").with("a", a).with("b", b).with("c", c).with("v", vec![1_u8])
}

/// Rows of `a` ascending, `b` descending, `c` ascending, in the order of the table.
fn mixed_rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for a in [-1, 0, 1] {
        for b in ["y", "xy", "x", ""] {
            rows.extend([-5, 0, 7].map(|c| mixed(a, b, c)));
        }
    }
    rows
}

async fn with_mixed<F: Future<Output = ()>>(fixture: &Fixture, case: impl FnOnce(Table) -> F) {
    fixture
        .with_table(fixture.mixed_order(), |table| async move {
            table.put_all(mixed_rows().into_iter().rev()).await.unwrap().into_result().unwrap();
            case(table).await;
        })
        .await;
}

async fn a_prefix_narrows_before_the_range(fixture: &Fixture) {
    with_mixed(fixture, |table| async move {
        let get = |row: &Row, name: &str| row.get(name).unwrap().clone();
        let filtered = |keep: &dyn Fn(&Row) -> bool| mixed_rows().into_iter().filter(keep).collect::<Vec<_>>();
        let zero = filtered(&|row| get(row, "a") == Value::from(0));
        assert_eq!(read(table.query("p").prefix(0)).await, zero);
        let texts = filtered(&|row| {
            get(row, "a") == Value::from(0) && get(row, "b").cluster_cmp(&"x".into()) != Ordering::Less
        });
        assert_eq!(read(table.query("p").prefix(0).range("x".to_owned()..)).await, texts);
        let numbers = vec![mixed(1, "xy", 0), mixed(1, "xy", 7)];
        assert_eq!(read(table.query("p").prefix((1, "xy")).range(-4..)).await, numbers);
        assert_eq!(read(table.query("p").prefix((1, "xy", 7))).await, [mixed(1, "xy", 7)]);
        let above = filtered(&|row| get(row, "a") != Value::from(-1));
        assert_eq!(read(table.query("p").range(0..)).await, above, "a range of a column that isn't the last");
    })
    .await;
}

async fn pages_go_on_behind_each_row_in_mixed_orders(fixture: &Fixture) {
    with_mixed(fixture, |table| async move {
        for page_size in [1, 2, 5, 36, 100] {
            for reverse in [false, true] {
                let mut expected = mixed_rows();
                let mut query = table.query("p").page_size(page_size);
                if reverse {
                    expected.reverse();
                    query = query.reverse();
                }
                assert_eq!(read(query).await, expected, "pages of {page_size}, reverse {reverse}");
            }
        }
        let bounded = read(table.query("p").range(0..).page_size(4)).await;
        assert_eq!(bounded, mixed_rows()[12..].to_vec(), "pages within a range");
        let prefixed = read(table.query("p").prefix(0).range("x".to_owned()..).page_size(2).reverse()).await;
        assert_eq!(prefixed, mixed_rows()[12..21].iter().rev().cloned().collect::<Vec<_>>());
    })
    .await;
}

async fn pages_go_on_behind_a_deleted_row(fixture: &Fixture) {
    with_mixed(fixture, |table| async move {
        let first = table.query("p").page_size(10).page::<Row>(None).await.unwrap();
        assert_eq!(first.rows, mixed_rows()[..10]);
        table.delete(&mixed_rows()[9]).await.unwrap();
        let token = first.next.unwrap().to_string().parse().unwrap();
        let second = table.query("p").page_size(10).page::<Row>(Some(&token)).await.unwrap();
        assert_eq!(second.rows, mixed_rows()[10..20]);
        let mut token = second.next;
        let mut rest = Vec::new();
        while let Some(next) = token {
            let page = table.query("p").page_size(10).page::<Row>(Some(&next)).await.unwrap();
            rest.extend(page.rows);
            token = page.next;
        }
        assert_eq!(rest, mixed_rows()[20..]);
    })
    .await;
}
