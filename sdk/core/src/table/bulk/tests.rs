use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::*;
use crate::client::Client;
use crate::error::ErrorKind;
use crate::layers::RetryPolicy;
use crate::memory::MemoryBackend;
use crate::model::{Row, Value};
use crate::streamer::testing::{Scripted, id, polled, row, spec};

fn count(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

fn sorted(mut calls: Vec<Vec<i64>>) -> Vec<Vec<i64>> {
    calls.sort();
    calls
}

#[tokio::test(start_paused = true)]
async fn rows_are_grouped_before_they_are_cut() {
    let by_owner = vec![vec![0, 3, 6, 9], vec![1, 4, 7, 10], vec![2, 5, 8]];
    let as_they_come = vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9, 10]];
    let alone: Vec<_> = (0..11).map(|id| vec![id]).collect();
    for (grouping, calls) in [(Grouping::Owner, by_owner), (Grouping::Off, as_they_come), (Grouping::Partition, alone)]
    {
        let backend = Scripted::slow(3, 10);
        let table = backend.builder().batch_rows(count(4)).batch(grouping).build().table(spec()).await.unwrap();
        let report = table.put_all((0..11).map(|id| row(id, 0))).await.unwrap();
        assert_eq!((report.applied(), sorted(backend.calls())), (11, calls));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_several_owners_goes_together_where_that_is_as_good() {
    let backend = Scripted::slow(3, 10).joining();
    let table = backend.builder().batch_rows(count(4)).build().table(spec()).await.unwrap();
    let report = table.put_all((0..17).map(|id| row(id, 0))).await.unwrap();
    let mut calls = sorted(backend.calls());
    assert_eq!((report.applied(), calls.len()), (17, 5), "{calls:?}");
    assert_eq!(calls.remove(0), [0, 3, 6, 9], "full ones have one owner");
    let keys: Vec<Key> = (0..17_i64).map(|id| Key::new(vec![Value::from(id)])).collect();
    let requests: Vec<usize> = requests(&table, keys, 4).iter().map(|(places, _)| places.len()).collect();
    assert_eq!(requests, [4, 4, 4, 4, 1]);
}

#[tokio::test(start_paused = true)]
async fn requests_stay_below_the_limit_of_bytes_and_a_larger_row_goes_alone() {
    let backend = Scripted::slow(1, 10);
    let rows = [(0, 400), (1, 400), (2, 300), (3, 2_000), (4, 1)];
    let row = |(id, kib): (i64, usize)| row(id, 0).with("w", vec![0_u8; kib << 10]);
    let table = backend.table().await;
    assert_eq!(table.put_all(rows.map(row)).concurrency(count(1)).await.unwrap().applied(), 5);
    assert_eq!(backend.calls(), [vec![0, 1], vec![2], vec![3], vec![4]]);
}

#[tokio::test(start_paused = true)]
async fn so_many_requests_run_at_a_time() {
    let backend = Scripted::slow(1, 10);
    let start = Instant::now();
    let put = backend
        .table()
        .await
        .put_all((0..60).map(|id| row(id, 0)))
        .rows_per_request(count(10))
        .concurrency(count(2))
        .await;
    assert_eq!((put.unwrap().applied(), backend.calls().len(), start.elapsed()), (60, 6, Duration::from_millis(30)));
}

#[tokio::test(start_paused = true)]
async fn each_outcome_is_at_the_place_of_its_row_and_only_failed_rows_are_sent_again() {
    let backend = Scripted::new(2, |number, mutations| async move {
        let fate = |id: i64| match (id % 10, number < 4) {
            (3, _) => Err(Error::new(ErrorKind::TooLarge, id.to_string())),
            (5, true) => Err(Error::new(ErrorKind::Unavailable, id.to_string())),
            (6, true) => Err(Error::new(ErrorKind::ConnectionLost, id.to_string())),
            _ => Ok(()),
        };
        Ok(mutations.iter().map(|mutation| fate(id(mutation))).collect())
    });
    let client = backend.builder().retry(RetryPolicy::default()).build();
    let table = client.table(spec()).await.unwrap();
    let mut rows: Vec<Row> = (0..40).map(|id| row(id, 0)).collect();
    rows.insert(7, Row::new().with("v", 1_i64));
    let report = table.put_all(&rows).rows_per_request(count(10)).await.unwrap();
    let failed: Vec<_> = report.failures().map(|(place, error)| (place, error.message().to_owned())).collect();
    let expected = [(3, "3"), (14, "13"), (24, "23"), (34, "33")].map(|(place, id)| (place, id.to_owned()));
    assert_eq!(failed.iter().filter(|(place, _)| *place != 7).cloned().collect::<Vec<_>>(), expected);
    assert!(failed.iter().any(|(place, message)| *place == 7 && message.contains("id")), "{failed:?}");
    let again: Vec<Vec<i64>> = sorted(backend.calls().split_off(4));
    assert_eq!(again.concat().len(), 8, "{again:?}");
    assert!(again.concat().iter().all(|id| [5, 6].contains(&(id % 10))));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_request_is_that_of_its_rows() {
    let backend = Scripted::new(1, |number, mutations| async move {
        if number == 1 {
            Err(Error::new(ErrorKind::ConnectionLost, "gone"))
        } else {
            Ok(mutations.iter().map(|_| Ok(())).collect())
        }
    });
    let table = backend.table().await;
    let report =
        table.put_all((0..6).map(|id| row(id, 0))).rows_per_request(count(2)).concurrency(count(1)).await.unwrap();
    assert_eq!(report.failures().map(|(place, _)| place).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(report.into_result().unwrap_err().outcome(), Outcome::Unknown);
}

#[tokio::test(start_paused = true)]
async fn rows_are_taken_as_there_is_room_for_them() {
    // By partition no request is ever full; else it is no use to take more than those that can be sent.
    for (grouping, most) in [(Grouping::Partition, MAX_ROWS), (Grouping::Owner, 17 * 64)] {
        let backend = Scripted::new(1, |_, _| std::future::pending());
        let taken = Arc::new(AtomicI64::new(0));
        let counted = Arc::clone(&taken);
        let table = backend.table().await;
        let endless = (0..).map(move |id| row(counted.fetch_add(1, Ordering::SeqCst), id));
        let put = table.put_all(endless).grouping(grouping).into_future();
        assert!(tokio::time::timeout(Duration::from_secs(1), put).await.is_err());
        let most = i64::try_from(most).unwrap();
        assert!((most..=most + 64).contains(&taken.load(Ordering::SeqCst)), "{grouping:?}: {taken:?}");
    }
}

/// Of two writes of a row that aren't in the window at the same time, too.
#[tokio::test]
async fn the_last_write_of_a_row_wins_wherever_the_others_are() {
    let client = Client::builder(MemoryBackend::new()).build();
    client.create_table(&spec()).await.unwrap();
    let table = client.table(spec()).await.unwrap();
    let report = table.put_all((0..150_000).map(|v| row(v % 7, v))).rows_per_request(count(3)).await.unwrap();
    assert_eq!(report.applied(), 150_000);
    let rows: Vec<Option<Row>> = table.get_all(0..7_i64).await.unwrap();
    let newest = |row: Option<Row>| row.and_then(|row| row.get("v").cloned());
    let expected: Vec<_> = (0..7).map(|id| (0..150_000_i64).rev().find(|v| v % 7 == id).map(Value::from)).collect();
    assert_eq!(rows.into_iter().map(newest).collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn the_rows_of_a_stream_are_put_as_it_gives_them() {
    let backend = Scripted::slow(1, 10);
    let table = backend.table().await;
    let slow = stream::iter(0..10).then(|id| async move {
        sleep(Duration::from_millis(1)).await;
        row(id, 0)
    });
    let start = Instant::now();
    let report = table.put_stream(slow).rows_per_request(count(4)).await.unwrap();
    assert_eq!(report.applied(), 10);
    assert_eq!(backend.calls(), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
    assert!(start.elapsed() < Duration::from_millis(30), "full requests go while the stream goes on");
    assert!(table.put_stream(stream::empty::<Row>()).await.unwrap().outcomes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_sends_nothing_further() {
    for polls in 1..6 {
        let backend = Scripted::slow(1, 10);
        let table = backend.table().await;
        let put = table.put_all((0..100).map(|id| row(id, 0))).rows_per_request(count(10)).concurrency(count(2));
        assert!(polled(polls, put.into_future()).await.is_none());
        let sent = backend.calls().len();
        sleep(Duration::from_secs(1)).await;
        assert!(sent <= 2 * polls && backend.calls().len() == sent);
    }
}

#[tokio::test]
async fn gets_come_back_in_the_order_of_their_keys_however_they_are_grouped() {
    let client = Client::builder(MemoryBackend::new()).batch(Grouping::Partition).batch_rows(count(2)).build();
    client.create_table(&spec()).await.unwrap();
    let table = client.table(spec()).await.unwrap();
    table.put_all((0..5).map(|id| row(id, 10 * id))).await.unwrap().into_result().unwrap();
    let keys = [4_i64, 9, 0, 4, 4, 2];
    let rows: Vec<Option<Row>> = table.get_all(keys).await.unwrap();
    let expected: Vec<_> = keys.iter().map(|id| (*id < 5).then(|| row(*id, 10 * id))).collect();
    assert_eq!(rows, expected);
}
