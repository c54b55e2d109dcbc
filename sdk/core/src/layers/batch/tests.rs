use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use super::*;
use crate::error::{Outcome, TimeoutPhase};
use crate::layers::DeadlineLayer;
use crate::layers::testing::{self, Mock, ids, increment, ok, put_all};
use crate::memory::MemoryBackend;
use crate::model::{Key, StoredRow, TableSpec, Ttl, Type, Value, WriteTime};
use crate::request::{Action, Consistency, Mutation, Projection, Read, Write};
use crate::streamer::testing::{Scripted, polled};

fn count(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

/// Three owners, told by the id modulo three.
fn owners() -> Arc<dyn Backend> {
    Arc::new(Scripted::slow(3, 0))
}

fn layer(grouping: Grouping) -> BatchLayer {
    BatchLayer::new(grouping, owners()).under_way(NonZeroUsize::MIN)
}

fn table() -> Arc<TableSpec> {
    Arc::new(
        TableSpec::builder("t")
            .partition("id", Type::I64)
            .column("v", Type::I64)
            .column("w", Type::Blob)
            .build()
            .unwrap(),
    )
}

fn key(id: i64) -> Key {
    Key::new(vec![Value::from(id)])
}

fn put(table: &Arc<TableSpec>, id: i64) -> Request {
    let put = Mutation::put(key(id), WriteTime::MIN, vec![(1, Value::from(id))], Ttl::TableDefault);
    Request::write(Arc::clone(table), Write::Apply(put))
}

fn get(table: &Arc<TableSpec>, id: i64) -> Request {
    Request::read(Arc::clone(table), Read::Get { key: key(id), columns: Projection::default() })
}

#[expect(clippy::unnecessary_wraps, reason = "a row as reads give it")]
fn row(key: &Key) -> Option<StoredRow> {
    Some(StoredRow { values: key.values().iter().cloned().map(Some).collect(), meta: Vec::new() })
}

/// What each request was asked: the ids of its rows, in order; reads as negative numbers.
fn asked(mock: &Mock) -> Vec<Vec<i64>> {
    let id = |key: &Key| if let [Value::I64(id)] = key.values() { *id } else { i64::MIN };
    let of = |request: &Request| match &request.action {
        Action::Write { write: Write::Apply(mutation), .. } => vec![id(&mutation.key)],
        Action::Write { .. } => ids(request),
        Action::Read { read: Read::Get { key, .. }, .. } => vec![-id(key)],
        Action::Read { read: Read::GetAll { keys, .. }, .. } => keys.iter().map(|key| -id(key)).collect(),
        other => panic!("{other:?}"),
    };
    mock.calls().iter().map(of).collect()
}

/// Answers reads with the keys as rows.
fn answer(request: &Request) -> Result<Response> {
    match &request.action {
        Action::Read { read: Read::Get { key, .. }, .. } => Ok(Response::Row(row(key))),
        Action::Read { read: Read::GetAll { keys, .. }, .. } => Ok(Response::Rows(keys.iter().map(row).collect())),
        _ => ok(request),
    }
}

fn slow() -> Mock {
    Mock::new(|_, request| async move {
        sleep(Duration::from_millis(10)).await;
        answer(&request)
    })
}

async fn all(service: &Batch<Mock>, requests: impl IntoIterator<Item = Request>) -> Vec<Result<Response>> {
    join_all(requests.into_iter().map(|request| service.clone().oneshot(request))).await
}

#[tokio::test(start_paused = true)]
async fn a_free_wire_is_used_at_once_and_a_busy_one_gathers_what_comes() {
    let (table, mock) = (table(), slow());
    let service = layer(Grouping::Owner).rows(count(3)).layer(mock.clone());
    let start = Instant::now();
    let answers = all(&service, [3, 6, 9, 12, 15, 1, 4].map(|id| put(&table, id))).await;
    assert!(answers.into_iter().all(|answer| matches!(answer, Ok(Response::Done))));
    assert_eq!(asked(&mock), [vec![3], vec![1], vec![6, 9, 12], vec![4], vec![15]]);
    assert_eq!(start.elapsed(), Duration::from_millis(30));
    assert!(service.queues.unwrap().is_idle());
}

#[tokio::test(start_paused = true)]
async fn gets_are_joined_too_and_each_caller_gets_its_own_row() {
    let (table, mock) = (table(), slow());
    let service = layer(Grouping::Owner).layer(mock.clone());
    let answers = all(&service, [3, 6, 9, 6].map(|id| get(&table, id))).await;
    let rows: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().into_row().unwrap()).collect();
    assert_eq!(rows, [3, 6, 9, 6].map(|id| row(&key(id))));
    assert_eq!(asked(&mock), [vec![-3], vec![-6, -9, -6]]);
}

#[tokio::test(start_paused = true)]
async fn what_differs_in_table_direction_or_options_is_never_joined() {
    let (one, two, mock) = (table(), table(), slow());
    let service = layer(Grouping::Owner).layer(mock.clone());
    let mut careful = put(&one, 6);
    careful.options.consistency = Some(Consistency::All);
    let mut hasty = put(&one, 9);
    hasty.options.attempt_timeout = Some(Duration::from_secs(1));
    let some = Projection { columns: Some([1].into()), ..Projection::default() };
    let narrow = Request::read(Arc::clone(&one), Read::Get { key: key(3), columns: some });
    let delete = Mutation::delete_partition(Key::default(), WriteTime::MIN);
    let other = [increment(), put_all([3, 6]), Request::write(Arc::clone(&one), Write::Apply(delete))];
    let requests = [put(&one, 3), careful, hasty, put(&two, 3), get(&one, 3), narrow].into_iter().chain(other);
    let start = Instant::now();
    assert!(all(&service, requests).await.iter().all(Result::is_ok));
    assert_eq!((mock.count(), start.elapsed()), (9, Duration::from_millis(10)), "each in a group of its own");
}

#[tokio::test(start_paused = true)]
async fn two_writes_of_a_row_keep_their_write_times_and_hold_up_no_other_row() {
    let (table, mock) = (table(), slow());
    let service = layer(Grouping::Owner).layer(mock.clone());
    assert!(all(&service, [3, 6, 6, 9, 6].map(|id| put(&table, id))).await.iter().all(Result::is_ok));
    assert_eq!(asked(&mock), [vec![3], vec![6, 9], vec![6], vec![6]]);
}

#[tokio::test(start_paused = true)]
async fn by_partition_only_rows_of_one_partition_are_joined() {
    let (table, mock) = (table(), slow());
    let service = BatchLayer::new(Grouping::Partition, owners()).layer(mock.clone());
    assert!(all(&service, [3, 6, 3, 3, 6].map(|id| get(&table, id))).await.iter().all(Result::is_ok));
    assert_eq!(asked(&mock), [vec![-3], vec![-6], vec![-3, -3], vec![-6]]);
}

#[tokio::test(start_paused = true)]
async fn requests_keep_below_the_limits_of_bytes_and_partitions() {
    let (table, mock) = (table(), slow());
    let large = |id: i64, bytes: usize| {
        let put = Mutation::put(key(id), WriteTime::MIN, vec![(2, Value::from(vec![0_u8; bytes]))], Ttl::TableDefault);
        Request::write(Arc::clone(&table), Write::Apply(put))
    };
    let service = layer(Grouping::Owner).bytes(count(100)).layer(mock.clone());
    let sizes = [(0, 1), (3, 40), (6, 40), (9, 500), (12, 92), (15, 1)];
    assert!(all(&service, sizes.map(|(id, bytes)| large(id, bytes))).await.iter().all(Result::is_ok));
    assert_eq!(asked(&mock), [vec![0], vec![3, 6], vec![9], vec![12], vec![15]]);

    let mock = slow();
    let service = layer(Grouping::Owner).partitions(count(2)).layer(mock.clone());
    assert!(all(&service, [0, 3, 6, 9, 12].map(|id| put(&table, id))).await.iter().all(Result::is_ok));
    assert_eq!(asked(&mock), [vec![0], vec![3, 6], vec![9, 12]]);
}

#[tokio::test(start_paused = true)]
async fn each_caller_gets_the_outcome_of_its_own_row() {
    let table = table();
    let mock = Mock::new(|number, request| async move {
        sleep(Duration::from_millis(10)).await;
        let fate = |id: i64| match id {
            6 => Err(Error::new(ErrorKind::TooLarge, "six")),
            12 => Err(Error::new(ErrorKind::ConnectionLost, "twelve")),
            _ => Ok(()),
        };
        match number {
            0 => ok(&request),
            _ => Ok(Response::Outcomes(ids(&request).into_iter().map(fate).collect())),
        }
    });
    let service = layer(Grouping::Owner).layer(mock);
    let answers = all(&service, [3, 6, 9, 12].map(|id| put(&table, id))).await;
    let kinds: Vec<_> = answers.into_iter().map(|answer| answer.err().map(|error| error.kind())).collect();
    assert_eq!(kinds, [None, Some(ErrorKind::TooLarge), None, Some(ErrorKind::ConnectionLost)]);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_whole_is_that_of_each_caller_and_a_short_answer_is_unknown() {
    let table = table();
    let mock = Mock::new(|number, request| async move {
        sleep(Duration::from_millis(10)).await;
        match number {
            0 | 2 => ok(&request),
            1 => Err(Error::new(ErrorKind::Unavailable, "no node")),
            _ => Ok(Response::Outcomes(Vec::new())),
        }
    });
    let service = layer(Grouping::Owner).layer(mock.clone());
    for outcome in [Outcome::NotApplied, Outcome::Unknown] {
        let answers = all(&service, [3, 6, 9].map(|id| put(&table, id))).await;
        let outcomes: Vec<_> = answers.into_iter().map(|answer| answer.err().map(|error| error.outcome())).collect();
        assert_eq!(outcomes, [None, Some(outcome), Some(outcome)]);
    }
    let answers = all(&service, [3, 6, 9].map(|id| get(&table, id))).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), 2, "not rows where rows are due");
}

#[tokio::test(start_paused = true)]
async fn a_poisonous_row_is_found_and_takes_no_other_with_it() {
    let table = table();
    for poison in [vec![9], vec![3, 24], vec![]] {
        let bad = poison.clone();
        let mock = Mock::new(move |_, request| {
            let ids = match &request.action {
                Action::Write { write: Write::ApplyAll(_), .. } => ids(&request),
                Action::Write { write: Write::Apply(mutation), .. } => {
                    vec![if let [Value::I64(id)] = mutation.key.values() { *id } else { 0 }]
                }
                other => panic!("{other:?}"),
            };
            let refused = ids.iter().any(|id| bad.contains(id));
            async move {
                sleep(Duration::from_millis(10)).await;
                if refused { Err(Error::invalid("one of these")) } else { ok(&request) }
            }
        });
        let service = layer(Grouping::Owner).layer(mock.clone());
        let answers = all(&service, (0..10).map(|id| put(&table, 3 * id))).await;
        let failed: Vec<_> = (0..10).map(|id| 3 * id).zip(&answers).filter(|(_, answer)| answer.is_err()).collect();
        assert_eq!(failed.iter().map(|(id, _)| *id).collect::<Vec<_>>(), poison);
        assert!(mock.count() <= 2 + 8 * poison.len());
    }
}

#[tokio::test(start_paused = true)]
async fn who_gave_up_in_the_queue_is_not_sent_and_takes_nobody_with_it() {
    let (table, mock) = (table(), slow());
    let service = layer(Grouping::Owner).layer(mock.clone());
    let mut first = Box::pin(service.clone().oneshot(put(&table, 3)));
    assert!(first.as_mut().now_or_never().is_none());
    let mut others: Vec<_> = [6, 9, 12].map(|id| Box::pin(service.clone().oneshot(put(&table, id)))).into();
    for other in &mut others {
        assert!(other.as_mut().now_or_never().is_none());
    }
    drop(others.remove(1));
    first.await.unwrap();
    sleep(Duration::from_millis(1)).await;
    drop(others.remove(0));
    others.remove(0).await.unwrap();
    assert_eq!(asked(&mock), [vec![3], vec![6, 12]], "what was sent goes on without its caller");
    assert!(service.queues.unwrap().is_idle());
}

#[tokio::test(start_paused = true)]
async fn one_that_goes_directly_and_is_dropped_lets_the_others_go() {
    let (table, mock) = (
        table(),
        Mock::new(
            |number, request| async move { if number == 0 { std::future::pending().await } else { ok(&request) } },
        ),
    );
    let service = layer(Grouping::Owner).layer(mock.clone());
    let mut first = Box::pin(service.clone().oneshot(put(&table, 3)));
    let mut others = Box::pin(all(&service, [6, 9].map(|id| put(&table, id))));
    assert!(first.as_mut().now_or_never().is_none() && others.as_mut().now_or_never().is_none());
    drop(first);
    assert!(others.await.iter().all(Result::is_ok));
    assert_eq!(asked(&mock), [vec![3], vec![6, 9]]);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_in_the_queue_says_that_nothing_was_sent_and_one_in_flight_that_nobody_knows() {
    let (table, mock) = (
        table(),
        Mock::new(|_, request| async move {
            sleep(Duration::from_millis(100)).await;
            ok(&request)
        }),
    );
    let service = DeadlineLayer::new(Duration::from_secs(9)).layer(layer(Grouping::Owner).layer(mock.clone()));
    let within = |id, millis| {
        let mut request = put(&table, id);
        request.options.deadline = Some((Instant::now() + Duration::from_millis(millis)).into_std());
        service.clone().oneshot(request)
    };
    let requests = [within(3, 500), within(6, 50), within(9, 150), within(12, 500)];
    let answers = join_all(requests).await;
    let kinds: Vec<_> =
        answers.iter().map(|answer| answer.as_ref().err().map(|error| (error.kind(), error.outcome()))).collect();
    let queued = (ErrorKind::Timeout(TimeoutPhase::Queue), Outcome::NotApplied);
    let sent = (ErrorKind::Timeout(TimeoutPhase::Deadline), Outcome::Unknown);
    assert_eq!(kinds, [None, Some(queued), Some(sent), None], "the patient one isn't cut short");
    assert_eq!(asked(&mock), [vec![3], vec![9, 12]]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_below_takes_its_own_callers_and_the_others_go_on() {
    let (table, mock) = (
        table(),
        Mock::new(|number, request| async move {
            sleep(Duration::from_millis(10)).await;
            assert!(number != 1, "as the script says");
            ok(&request)
        }),
    );
    let service = layer(Grouping::Owner).rows(count(2)).layer(mock);
    let answers = all(&service, [3, 6, 9, 12].map(|id| put(&table, id))).await;
    let outcomes: Vec<_> = answers.into_iter().map(|answer| answer.err().map(|error| error.outcome())).collect();
    assert_eq!(outcomes, [None, Some(Outcome::Unknown), Some(Outcome::Unknown), None]);
    assert!(service.queues.unwrap().is_idle());
}

#[test]
fn when_the_runtime_ends_nobody_waits_for_ever() {
    let table = table();
    let service = layer(Grouping::Owner).rows(count(2)).layer(Mock::new(|_, _| std::future::pending()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let waiting = runtime.block_on(async {
        let mut calls: Vec<_> = (0..4).map(|id| Box::pin(service.clone().oneshot(put(&table, 3 * id)))).collect();
        for call in &mut calls {
            assert!(call.as_mut().now_or_never().is_none());
        }
        drop(calls.remove(0));
        tokio::task::yield_now().await;
        calls
    });
    drop(runtime);
    let outcomes: Vec<_> =
        waiting.into_iter().map(|call| call.now_or_never().unwrap().unwrap_err().outcome()).collect();
    assert_eq!(outcomes, [Outcome::Unknown, Outcome::Unknown, Outcome::NotApplied]);
}

#[tokio::test]
async fn off_and_without_a_grouping_everything_passes() {
    for layer in [BatchLayer::off(), BatchLayer::new(Grouping::Off, Arc::new(MemoryBackend::new()))] {
        let mock = slow();
        let service = layer.layer(mock.clone());
        assert!(all(&service, (0..5).map(|_| testing::put())).await.iter().all(Result::is_ok));
        assert_eq!(mock.count(), 5);
    }
}

/// Whoever gives up at whatever poll: each answer is that of the caller's own row, what was answered was sent once, what is sent
/// twice is nothing, and nothing is left behind.
#[test]
fn callers_get_their_own_answers_whoever_gives_up() {
    for seed in 0..3_000 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(random(seed));
    }
}

async fn random(seed: u64) {
    let mut dice = fastrand::Rng::with_seed(seed);
    let (table, sent) = (table(), Arc::new(Mutex::new(HashMap::<i64, u32>::new())));
    let (counted, fate) = (Arc::clone(&sent), Arc::new(Mutex::new(dice.fork())));
    let mock = Mock::new(move |_, request| {
        let (counted, wait) = (Arc::clone(&counted), fate.lock().unwrap().u64(0..4));
        async move {
            sleep(Duration::from_millis(wait)).await;
            let written = match &request.action {
                Action::Write { write: Write::Apply(mutation), .. } => vec![mutation.key.clone()],
                Action::Write { write: Write::ApplyAll(all), .. } => all.iter().map(|one| one.key.clone()).collect(),
                _ => return answer(&request),
            };
            let mut outcomes = Vec::new();
            for key in written {
                let [Value::I64(id)] = key.values() else { panic!() };
                *counted.lock().unwrap().entry(*id).or_default() += 1;
                outcomes.push(if id % 5 == 0 { Err(Error::new(ErrorKind::TooLarge, id.to_string())) } else { Ok(()) });
            }
            if outcomes.len() == 1 {
                outcomes.remove(0).map(|()| Response::Done)
            } else {
                Ok(Response::Outcomes(outcomes))
            }
        }
    });
    let grouping = if dice.bool() { Grouping::Owner } else { Grouping::Partition };
    let layer = BatchLayer::new(grouping, owners()).under_way(count(dice.usize(1..3))).rows(count(dice.usize(1..6)));
    let service = layer.layer(mock);
    let calls = (0..dice.i64(1..20)).map(|id| {
        let (start, polls, is_read) = (dice.u64(0..4), dice.usize(1..5), dice.u8(0..4) == 0);
        let request = if is_read { get(&table, id % 7) } else { put(&table, id) };
        let service = service.clone();
        async move {
            sleep(Duration::from_millis(start)).await;
            let answer = polled(polls, service.oneshot(request)).await;
            match (is_read, answer) {
                (true, Some(found)) => assert_eq!(found.unwrap().into_row().unwrap(), row(&key(id % 7))),
                (false, Some(Ok(_))) => assert!(id % 5 != 0),
                (false, Some(Err(error))) => assert_eq!((id % 5, error.message()), (0, &*id.to_string())),
                (_, None) => return None,
            }
            (!is_read).then_some(id)
        }
    });
    let answered: Vec<i64> = join_all(calls).await.into_iter().flatten().collect();
    sleep(Duration::from_secs(1)).await;
    let sent = sent.lock().unwrap();
    assert!(answered.iter().all(|id| sent.get(id) == Some(&1)), "{seed}: {sent:?}");
    assert!(sent.values().all(|times| *times == 1), "{seed}: {sent:?}");
    assert!(service.queues.unwrap().is_idle(), "{seed}");
}
