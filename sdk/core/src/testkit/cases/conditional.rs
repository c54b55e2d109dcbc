//! Conditional puts.

use futures::future::join_all;

use super::cases;
use crate::model::{Row, Value};
use crate::testkit::Fixture;

cases! {
    only_the_first_put_of_an_absent_row_is_applied: CompareAndPut;
    a_put_is_applied_where_the_column_equals: CompareAndPut;
    a_put_is_applied_where_the_column_is_absent: CompareAndPut;
    a_refused_put_tells_what_is_there: CompareAndPut;
    no_two_concurrent_puts_win: CompareAndPut;
}

fn pages(pages: i64) -> Row {
    Row::new().with("id", 1_i64).with("pages", pages)
}

async fn only_the_first_put_of_an_absent_row_is_applied(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            assert!(books.compare_and_put(&pages(1)).if_absent().await.unwrap().applied);
            assert!(!books.compare_and_put(&pages(2)).await.unwrap().applied);
            assert_eq!(books.get(1).await.unwrap(), Some(pages(1)));
        })
        .await;
}

async fn a_put_is_applied_where_the_column_equals(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let absent = books.compare_and_put(&pages(2)).if_equals("pages", &1).await.unwrap();
            assert!(!absent.applied, "an absent row equals nothing");
            assert!(books.compare_and_put(&pages(1)).await.unwrap().applied);
            assert!(!books.compare_and_put(&pages(3)).if_equals("pages", &2).await.unwrap().applied);
            assert!(books.compare_and_put(&pages(2)).if_equals("pages", &1).await.unwrap().applied);
            assert_eq!(books.get(1).await.unwrap(), Some(pages(2)));
        })
        .await;
}

async fn a_put_is_applied_where_the_column_is_absent(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let title = Row::new().with("id", 1_i64).with("title", "x");
            assert!(books.compare_and_put(&title).if_column_absent("title").await.unwrap().applied, "no row");
            assert!(!books.compare_and_put(&title).if_column_absent("title").await.unwrap().applied);
            assert!(
                books.compare_and_put(&pages(1)).if_column_absent("pages").await.unwrap().applied,
                "a row without it"
            );
            assert_eq!(books.get(1).await.unwrap(), Some(title.with("pages", 1_i64)));
        })
        .await;
}

async fn a_refused_put_tells_what_is_there(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            assert!(books.compare_and_put(&pages(7)).await.unwrap().applied);
            let refused = books.compare_and_put(&pages(8)).if_equals("pages", &1).await.unwrap();
            assert_eq!(refused.current.unwrap().get("pages"), Some(&Value::from(7_i64)));
        })
        .await;
}

async fn no_two_concurrent_puts_win(fixture: &Fixture) {
    fixture
        .with_table(fixture.books(), |books| async move {
            let puts = (0..16).map(|pages_read| {
                let books = books.clone();
                async move { books.compare_and_put(&pages(pages_read)).await }
            });
            let outcomes = join_all(puts).await;
            let winners =
                outcomes.iter().filter(|outcome| outcome.as_ref().is_ok_and(|outcome| outcome.applied)).count();
            let doubtful = outcomes.iter().filter(|outcome| outcome.is_err()).count();
            assert!(winners <= 1 && winners + doubtful >= 1, "{outcomes:?}");
            assert!(books.get::<Row>(1).await.unwrap().is_some());
        })
        .await;
}
