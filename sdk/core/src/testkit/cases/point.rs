//! Single rows: put, get, delete.

use super::cases;
use crate::model::{Decimal, Order, Row, StoredRow, Type, Value, WriteTime};
use crate::testkit::{Fixture, values};

cases! {
    a_row_reads_back_as_it_was_put;
    every_type_is_a_value;
    every_type_is_a_partition_key;
    every_type_is_a_clustering_column;
    an_absent_row_is_none;
    a_put_leaves_other_columns_alone;
    an_empty_value_is_not_an_absent_one;
    absent_columns_are_never_written: ReadWriteTime;
    a_row_with_no_column_left_does_not_exist;
    a_table_without_value_columns_keeps_its_rows;
    a_deleted_row_is_gone_and_can_be_put_again;
    deletes_of_what_is_not_there_succeed;
    a_delete_of_columns_leaves_the_others;
    a_delete_of_a_partition_takes_its_rows_alone: PartitionDelete;
    a_delete_then_a_put_in_one_instant_leaves_the_put;
    a_replace_leaves_its_own_columns_alone: AtomicReplace;
    an_older_write_never_wins;
    at_equal_times_a_delete_wins;
    a_write_after_a_delete_at_the_next_microsecond_shows;
    a_late_older_write_stays_behind_a_delete;
    partitions_differ_by_bytes_and_clusterings_by_value;
    a_projection_returns_what_it_names;
    write_times_read_back: ReadWriteTime;
}

fn book(id: i64) -> Row {
    Row::new().with("id", id).with("title", "Dune").with("pages", 412_i64).with("note", vec![0_u8, 255])
}

async fn a_row_reads_back_as_it_was_put(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            books.put(&book(1)).await.unwrap();
            assert_eq!(books.get(1).await.unwrap(), Some(book(1)));
            assert_eq!(books.get::<(i64, String, i64, Vec<u8>)>(1).await.unwrap().unwrap().1, "Dune");
        })
        .await;
}

async fn every_type_is_a_value(fixture: &Fixture) {
    for ty in Type::ALL.into_iter().filter(|ty| *ty != Type::Counter) {
        let table = fixture.table().partition("id", Type::I64).column("v", ty);
        fixture
            .with_table(table, |table| async move {
                for (id, value) in (0_i64..).zip(values::of(ty)) {
                    let row = Row::new().with("id", id).with("v", value.clone());
                    table.put(&row).await.unwrap();
                    let read: Row = table.get(id).await.unwrap().unwrap();
                    assert!(values::same(read.get("v").unwrap(), &value), "{ty}: {value} came back as {read:?}");
                }
            })
            .await;
    }
}

async fn every_type_is_a_partition_key(fixture: &Fixture) {
    for ty in Type::ALL.into_iter().filter(|ty| *ty != Type::Counter) {
        let table = fixture.table().partition("k", ty).column("v", Type::I32);
        fixture
            .with_table(table, |table| async move {
                let keys: Vec<Value> = values::of(ty).into_iter().filter(|key| key.size() > 0).collect();
                for (v, key) in (0_i32..).zip(&keys) {
                    table.put(&Row::new().with("k", key.clone()).with("v", v)).await.unwrap();
                }
                for (v, key) in (0_i32..).zip(&keys) {
                    let row: Row = table.get(Row::new().with("k", key.clone())).await.unwrap().unwrap();
                    assert_eq!(row.get("v"), Some(&Value::from(v)), "{ty} {key}");
                    assert!(values::same(row.get("k").unwrap(), key), "{ty} {key}");
                }
            })
            .await;
    }
}

async fn every_type_is_a_clustering_column(fixture: &Fixture) {
    for ty in Type::ALL.into_iter().filter(|ty| *ty != Type::Counter) {
        let table = fixture.table().partition("id", Type::I64).clustering("c", ty, Order::Descending);
        fixture
            .with_table(table.column("v", Type::I32), |table| async move {
                for (v, value) in (0_i32..).zip(values::of(ty)) {
                    let row = Row::new().with("id", 1_i64).with("c", value.clone()).with("v", v);
                    table.put(&row).await.unwrap();
                    let read: Row = table.get(row.clone()).await.unwrap().unwrap();
                    assert_eq!(read.get("v"), Some(&Value::from(v)), "{ty} {value}");
                }
            })
            .await;
    }
}

async fn an_absent_row_is_none(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move { assert_eq!(books.get::<Row>(1).await.unwrap(), None) })
        .await;
}

async fn a_put_leaves_other_columns_alone(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            books.put(&book(1)).await.unwrap();
            books.put(&Row::new().with("id", 1_i64).with("pages", 600_i64)).await.unwrap();
            assert_eq!(books.get(1).await.unwrap(), Some(book(1).with("pages", 600_i64)));
        })
        .await;
}

async fn an_empty_value_is_not_an_absent_one(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let row = Row::new().with("id", 1_i64).with("title", "").with("note", Vec::new());
            books.put(&row).await.unwrap();
            assert_eq!(books.get(1).await.unwrap(), Some(row));
        })
        .await;
}

async fn absent_columns_are_never_written(fixture: &Fixture) {
    #[derive(serde::Serialize)]
    struct Book {
        id: i64,
        title: Option<&'static str>,
        pages: Option<i64>,
    }
    fixture
        .with_table(fixture.books(), |books| async move {
            let early = books.client().next_write_time();
            books.put(&Book { id: 1, title: Some("Dune"), pages: None }).await.unwrap();
            // A null would have left a tombstone that hides this older write.
            books.put(&Book { id: 1, title: None, pages: Some(7) }).write_time(early).await.unwrap();
            let read: Row = books.get(1).await.unwrap().unwrap();
            assert_eq!(read, Row::new().with("id", 1_i64).with("title", "Dune").with("pages", 7_i64));
        })
        .await;
}

async fn a_row_with_no_column_left_does_not_exist(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            books.put(&book(1)).await.unwrap();
            books.delete(1).columns(["title", "pages", "note"]).await.unwrap();
            assert_eq!(books.get::<Row>(1).await.unwrap(), None);
        })
        .await;
}

async fn a_table_without_value_columns_keeps_its_rows(fixture: &Fixture) {
    let table = fixture.table().partition("id", Type::I64).clustering("c", Type::Text, Order::Ascending);
    fixture
        .with_table(table, |table| async move {
            let row = Row::new().with("id", 1_i64).with("c", "x");
            table.put(&row).await.unwrap();
            assert_eq!(table.get((1, "x")).await.unwrap(), Some(row));
            table.delete((1, "x")).await.unwrap();
            assert_eq!(table.get::<Row>((1, "x")).await.unwrap(), None);
        })
        .await;
}

async fn a_deleted_row_is_gone_and_can_be_put_again(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            books.put(&book(1)).await.unwrap();
            books.delete(1).await.unwrap();
            assert_eq!(books.get::<Row>(1).await.unwrap(), None);
            let again = Row::new().with("id", 1_i64).with("pages", 1_i64);
            books.put(&again).await.unwrap();
            assert_eq!(books.get(1).await.unwrap(), Some(again));
        })
        .await;
}

async fn deletes_of_what_is_not_there_succeed(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            books.delete(1).await.unwrap();
            books.delete(1).columns(["title"]).await.unwrap();
            assert_eq!(books.get::<Row>(1).await.unwrap(), None);
        })
        .await;
}

async fn a_delete_of_columns_leaves_the_others(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            books.put(&book(1)).await.unwrap();
            books.delete(1).columns(["title", "note"]).await.unwrap();
            let left = Row::new().with("id", 1_i64).with("pages", 412_i64);
            assert_eq!(books.get(1).await.unwrap(), Some(left));
        })
        .await;
}

async fn a_delete_of_a_partition_takes_its_rows_alone(fixture: &Fixture) {
    fixture
        .with_table(fixture.mixed_order(), |table| async move {
            let row = |pk: &str, a: i32| {
                Row::new().with("pk", pk).with("a", a).with("b", "b").with("c", 1_i64).with("v", vec![1_u8])
            };
            for (pk, a) in [("p", 1), ("p", 2), ("q", 1)] {
                table.put(&row(pk, a)).await.unwrap();
            }
            table.delete_partition("p").await.unwrap();
            assert_eq!(table.get::<Row>(("p", 1, "b", 1)).await.unwrap(), None);
            assert_eq!(table.get::<Row>(("p", 2, "b", 1)).await.unwrap(), None);
            assert_eq!(table.get(("q", 1, "b", 1)).await.unwrap(), Some(row("q", 1)));
            table.put(&row("p", 2)).await.unwrap();
            assert_eq!(table.get(("p", 2, "b", 1)).await.unwrap(), Some(row("p", 2)));
        })
        .await;
}

async fn a_delete_then_a_put_in_one_instant_leaves_the_put(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            for id in 0..100 {
                books.put(&book(id)).await.unwrap();
                books.delete(id).await.unwrap();
                books.put(&book(id)).await.unwrap();
                assert_eq!(books.get(id).await.unwrap(), Some(book(id)), "round {id}");
            }
        })
        .await;
}

async fn a_replace_leaves_its_own_columns_alone(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            books.put(&book(1)).await.unwrap();
            let new = Row::new().with("id", 1_i64).with("title", "Emma");
            books.put(&new).replace().await.unwrap();
            assert_eq!(books.get(1).await.unwrap(), Some(new));
        })
        .await;
}

fn titled(title: &str) -> Row {
    Row::new().with("id", 1_i64).with("title", title)
}

fn shifted(time: WriteTime, micros: i64) -> WriteTime {
    WriteTime::from_micros(time.as_micros() + micros).unwrap()
}

async fn an_older_write_never_wins(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let time = books.client().next_write_time();
            books.put(&titled("newer")).write_time(time).await.unwrap();
            books.put(&titled("older")).write_time(shifted(time, -1)).await.unwrap();
            assert_eq!(books.get(1).await.unwrap(), Some(titled("newer")));
            books.delete(1).write_time(shifted(time, -1)).await.unwrap();
            assert_eq!(books.get(1).await.unwrap(), Some(titled("newer")));
        })
        .await;
}

async fn at_equal_times_a_delete_wins(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let time = books.client().next_write_time();
            books.put(&titled("x")).write_time(time).await.unwrap();
            books.delete(1).write_time(time).await.unwrap();
            assert_eq!(books.get::<Row>(1).await.unwrap(), None, "put, then delete");
            books.put(&titled("y")).write_time(time).await.unwrap();
            assert_eq!(books.get::<Row>(1).await.unwrap(), None, "delete, then put");
        })
        .await;
}

async fn a_write_after_a_delete_at_the_next_microsecond_shows(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let time = books.client().next_write_time();
            books.delete(1).write_time(time).await.unwrap();
            books.put(&titled("x")).write_time(shifted(time, 1)).await.unwrap();
            assert_eq!(books.get(1).await.unwrap(), Some(titled("x")));
        })
        .await;
}

async fn a_late_older_write_stays_behind_a_delete(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let time = books.client().next_write_time();
            books.put(&titled("x")).write_time(shifted(time, -9)).await.unwrap();
            books.delete(1).columns(["title"]).write_time(time).await.unwrap();
            books.put(&titled("late")).write_time(shifted(time, -1)).await.unwrap();
            assert_eq!(books.get::<Row>(1).await.unwrap(), None);
        })
        .await;
}

async fn partitions_differ_by_bytes_and_clusterings_by_value(fixture: &Fixture) {
    let [one, same] = ["1.0", "1.00"].map(|text| text.parse::<Decimal>().unwrap());
    let table = fixture.table().partition("pk", Type::Decimal).clustering("c", Type::Decimal, Order::Ascending);
    fixture
        .with_table(table.column("v", Type::I32), |table| async move {
            let row =
                |pk: &Decimal, c: &Decimal, v: i32| Row::new().with("pk", pk.clone()).with("c", c.clone()).with("v", v);
            table.put(&row(&one, &one, 1)).await.unwrap();
            table.put(&row(&same, &one, 2)).await.unwrap();
            table.put(&row(&one, &same, 3)).await.unwrap();
            let read: Row = table.get((&one, &one)).await.unwrap().unwrap();
            assert_eq!(read.get("v"), Some(&Value::from(3)));
            let read: Row = table.get((&same, &same)).await.unwrap().unwrap();
            assert_eq!((read.get("pk"), read.get("v")), (Some(&same.into()), Some(&Value::from(2))));
        })
        .await;
}

async fn a_projection_returns_what_it_names(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            books.put(&book(1)).await.unwrap();
            let named = Row::new().with("id", 1_i64).with("pages", 412_i64);
            assert_eq!(books.get(1).columns(["pages"]).await.unwrap(), Some(named));
            books.delete(1).columns(["title"]).await.unwrap();
            let bare = Row::new().with("id", 1_i64);
            assert_eq!(books.get(1).columns(["title"]).await.unwrap(), Some(bare), "the row exists");
        })
        .await;
}

async fn write_times_read_back(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let time = books.client().next_write_time();
            books.put(&titled("x")).write_time(time).await.unwrap();
            let row: StoredRow = books.get(1).with_meta().await.unwrap().unwrap();
            assert_eq!(row.meta[1].write_time, Some(time));
            assert_eq!((row.meta[1].ttl, row.meta[2].write_time), (None, None));
        })
        .await;
}
