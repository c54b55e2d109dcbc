//! The order of clustering columns.

use futures::TryStreamExt;

use super::cases;
use crate::model::{Order, Row, Type, Value};
use crate::table::Table;
use crate::testkit::{Fixture, values};

cases! {
    rows_come_in_the_order_of_each_type;
    ranges_split_each_type_where_its_order_says;
}

async fn filled(table: &Table, ty: Type) -> Vec<Value> {
    let rising = values::of(ty);
    for value in rising.iter().rev() {
        table.put(&Row::new().with("id", 1_i64).with("c", value.clone()).with("v", 0_i32)).await.unwrap();
    }
    rising
}

async fn read(query: crate::table::QueryBuilder) -> Vec<Value> {
    let rows: Vec<Row> = query.rows().try_collect().await.unwrap();
    rows.into_iter().map(|row| row.get("c").unwrap().clone()).collect()
}

fn assert_same(read: &[Value], expected: &[Value], what: &str) {
    let same = read.len() == expected.len() && read.iter().zip(expected).all(|(a, b)| values::same(a, b));
    assert!(same, "{what}: read {read:?}, expected {expected:?}");
}

async fn rows_come_in_the_order_of_each_type(fixture: &Fixture) {
    for ty in Type::ALL.into_iter().filter(|ty| *ty != Type::Counter) {
        for order in [Order::Ascending, Order::Descending] {
            let table = fixture.table().partition("id", Type::I64).clustering("c", ty, order).column("v", Type::I32);
            fixture
                .with_table(table, |table| async move {
                    let mut expected = filled(&table, ty).await;
                    if order == Order::Descending {
                        expected.reverse();
                    }
                    assert_same(&read(table.query(1)).await, &expected, &format!("{ty} {order:?}"));
                    expected.reverse();
                    assert_same(&read(table.query(1).reverse()).await, &expected, &format!("{ty} {order:?} reverse"));
                })
                .await;
        }
    }
}

async fn ranges_split_each_type_where_its_order_says(fixture: &Fixture) {
    for ty in Type::ALL.into_iter().filter(|ty| *ty != Type::Counter) {
        let table = fixture.table().partition("id", Type::I64).clustering("c", ty, Order::Ascending);
        fixture
            .with_table(table.column("v", Type::I32), |table| async move {
                let rising = filled(&table, ty).await;
                for (place, edge) in rising.iter().enumerate() {
                    let (below, from) = rising.split_at(place);
                    assert_same(&read(table.query(1).range(..edge.clone())).await, below, &format!("{ty} < {edge}"));
                    assert_same(&read(table.query(1).range(edge.clone()..)).await, from, &format!("{ty} >= {edge}"));
                }
            })
            .await;
    }
}
