use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use futures::future::join_all;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

use super::testing::{Scripted, id, polled, row, spec};
use super::*;
use crate::client::Client;
use crate::layers::recorder::recorded;
use crate::memory::MemoryBackend;
use crate::model::{Row, Value};

fn paused() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

fn count(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

fn error(kind: ErrorKind) -> Error {
    Error::new(kind, "as the script says")
}

fn figures(report: &StreamReport) -> (u64, u64, u64, u64) {
    (report.added, report.applied, report.failed, report.unknown)
}

/// Never answers.
fn stalled() -> Scripted {
    Scripted::new(1, |_, _| std::future::pending())
}

#[tokio::test(start_paused = true)]
async fn while_the_wire_is_free_a_row_goes_at_once_and_while_it_is_busy_requests_fill_up() {
    let backend = Scripted::slow(1, 10);
    let streamer = backend.table().await.streamer().rows_per_request(count(4)).open();
    let start = Instant::now();
    let first = streamer.add(&row(0, 0)).await.unwrap();
    first.await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(10));
    for id in 1..=7 {
        streamer.add(&row(id, 0)).await.unwrap();
        tokio::task::yield_now().await;
    }
    streamer.close().await.unwrap().into_result().unwrap();
    assert_eq!(backend.calls(), [vec![0], vec![1], vec![2, 3, 4, 5], vec![6, 7]]);
    assert_eq!(start.elapsed(), Duration::from_millis(30), "full requests go beside others, the last one behind them");
}

#[tokio::test(start_paused = true)]
async fn requests_have_rows_of_one_owner_and_a_stalled_owner_holds_up_no_other() {
    let backend = Scripted::new(3, |_, mutations| async move {
        if id(&mutations[0]) % 3 == 0 {
            std::future::pending().await
        } else {
            Ok(mutations.iter().map(|_| Ok(())).collect())
        }
    });
    let streamer = backend.table().await.streamer().timeout(Duration::from_secs(1)).open();
    let mut receipts = Vec::new();
    for id in 0..60 {
        receipts.push(streamer.add(&row(id, 0)).await.unwrap());
    }
    let others = receipts.into_iter().filter(|receipt| receipt.place() % 3 != 0);
    assert!(join_all(others).await.iter().all(Result::is_ok));
    for call in backend.calls() {
        assert!(call.iter().all(|id| id % 3 == call[0] % 3), "{call:?}");
    }
    assert!(backend.calls().len() < 30);
    assert!(streamer.close().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn without_grouping_rows_go_as_they_come_and_by_partition_alone() {
    for (grouping, calls) in [(Grouping::Off, 3), (Grouping::Partition, 7)] {
        let backend = Scripted::slow(3, 10);
        let streamer = backend.table().await.streamer().grouping(grouping).rows_per_request(count(3)).open();
        for id in 0..7 {
            streamer.add(&row(id, 0)).await.unwrap();
            tokio::task::yield_now().await;
        }
        streamer.close().await.unwrap().into_result().unwrap();
        assert_eq!(backend.calls().len(), calls, "{:?}", backend.calls());
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_streamer_gives_the_row_back_and_stays_within_its_bounds() {
    let table = stalled().table().await;
    for (rows, bytes, fits) in [(10, 1 << 20, 10), (1_000, 160, 10)] {
        let streamer = table.streamer().max_rows(rows).max_bytes(bytes).open();
        let refused = (0..100_000).filter(|id| match streamer.try_add(row(*id, 0)) {
            Ok(_) => false,
            Err(rejected) => {
                assert_eq!(rejected.row, row(*id, 0));
                assert_eq!(
                    (rejected.error.kind(), rejected.error.outcome()),
                    (ErrorKind::Overloaded, Outcome::NotApplied)
                );
                true
            }
        });
        assert_eq!(100_000 - refused.count(), fits);
        assert!(streamer.add(&row(0, 0)).now_or_never().is_none(), "it waits");
        assert_eq!(streamer.report().unfinished(), u64::try_from(fits).unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_that_never_fits_is_refused() {
    let streamer = stalled().table().await.streamer().max_bytes(100).open();
    let large = row(1, 1).with("w", vec![0_u8; 100]);
    assert_eq!(streamer.add(&large).await.unwrap_err().kind(), ErrorKind::TooLarge);
    let wrong = Row::new().with("v", 1_i64);
    assert_eq!(streamer.add(&wrong).await.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let zero = stalled().table().await.streamer().ttl(Duration::ZERO).open();
    assert_eq!(zero.add(&row(1, 1)).await.unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(streamer.report().added, 0);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_room_get_it_as_rows_end() {
    let backend = Scripted::slow(1, 10);
    let streamer = backend.table().await.streamer().max_rows(2).open();
    let adds = join_all((0..10).map(|id| streamer.add_owned(id))).await;
    assert!(adds.iter().all(Result::is_ok));
    assert_eq!(figures(&streamer.close().await.unwrap()), (10, 10, 0, 0));
}

impl Streamer {
    async fn add_owned(&self, id: i64) -> Result<Receipt> {
        self.add(&row(id, 0)).await
    }
}

/// Two requests at a time, and the first takes longest: order must not come from luck.
#[tokio::test(start_paused = true)]
async fn a_row_is_not_sent_while_an_earlier_write_of_it_is_under_way() {
    let under_way = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&under_way);
    let backend = Scripted::new(1, move |number, mutations| {
        let seen = Arc::clone(&seen);
        async move {
            let ids: Vec<i64> = mutations.iter().map(id).collect();
            for id in &ids {
                let mut seen = seen.lock().unwrap();
                assert!(!seen.contains(id), "{id} is under way");
                seen.push(*id);
            }
            sleep(Duration::from_millis(if number == 0 { 50 } else { 5 })).await;
            seen.lock().unwrap().retain(|id| !ids.contains(id));
            Ok(mutations.iter().map(|_| Ok(())).collect())
        }
    });
    let streamer = backend.table().await.streamer().rows_per_request(count(2)).open();
    let hot = streamer.add(&row(1, 1)).await.unwrap();
    tokio::task::yield_now().await;
    let again = [streamer.add(&row(1, 2)).await.unwrap(), streamer.add(&row(1, 3)).await.unwrap()];
    let start = Instant::now();
    let others = [streamer.add(&row(2, 0)).await.unwrap(), streamer.add(&row(3, 0)).await.unwrap()];
    assert!(join_all(others).await.iter().all(Result::is_ok));
    assert_eq!(start.elapsed(), Duration::from_millis(5), "others overtake a hot row");
    hot.await.unwrap();
    assert!(join_all(again).await.iter().all(Result::is_ok));
    assert_eq!(backend.calls(), [vec![1], vec![2, 3], vec![1]], "what waited was folded");
}

#[tokio::test]
async fn puts_and_deletes_of_a_row_happen_in_their_order() {
    let client = Client::builder(MemoryBackend::new()).build();
    client.create_table(&spec()).await.unwrap();
    let table = client.table(spec()).await.unwrap();
    let streamer = table.streamer().rows_per_request(count(3)).open();
    for id in 0..50 {
        streamer.add(&row(id, 1)).await.unwrap();
        streamer.delete(id).await.unwrap();
        streamer.add(&Row::new().with("id", id).with("w", vec![7_u8])).await.unwrap();
        if id % 2 == 0 {
            streamer.delete(id).await.unwrap();
        }
        if id % 7 == 0 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(figures(&streamer.close().await.unwrap()), (175, 175, 0, 0));
    for id in 0..50 {
        let row: Option<Row> = table.get(id).await.unwrap();
        let found = row.map(|row| (row.get("v").cloned(), row.get("w").cloned()));
        let expected = (id % 2 == 1).then(|| (None, Some(Value::from(vec![7_u8]))));
        assert_eq!(found, expected, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flush_waits_for_what_was_added_before_it_and_for_nothing_else() {
    let backend = Scripted::new(1, |_, mutations| async move {
        let wait = if id(&mutations[0]) == 9 { Duration::from_secs(9) } else { Duration::from_millis(10) };
        sleep(wait).await;
        Ok(mutations.iter().map(|_| Ok(())).collect())
    });
    let streamer = backend.table().await.streamer().rows_per_request(NonZeroUsize::MIN).open();
    for id in 0..5 {
        streamer.add(&row(id, 0)).await.unwrap();
    }
    let (start, flush) = (Instant::now(), streamer.flush());
    let mut flush = Box::pin(flush);
    assert!(flush.as_mut().now_or_never().is_none());
    streamer.add(&row(9, 0)).await.unwrap();
    assert_eq!(figures(&flush.await.unwrap()), (6, 5, 0, 0));
    assert_eq!(start.elapsed(), Duration::from_millis(10));
    assert_eq!(figures(&streamer.close().await.unwrap()), (6, 6, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn failures_reach_receipt_listener_and_every_report() {
    let backend = Scripted::new(1, |number, mutations| async move {
        match number {
            0 => Err(error(ErrorKind::Unavailable)),
            1 => Err(error(ErrorKind::ConnectionLost)),
            2 => Ok(vec![]),
            _ => Ok(mutations
                .iter()
                .map(|mutation| if id(mutation) == 7 { Err(error(ErrorKind::TooLarge)) } else { Ok(()) })
                .collect()),
        }
    });
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&heard);
    let listener = move |place, error: &Error| ear.lock().unwrap().push((place, error.kind()));
    let streamer = backend.table().await.streamer().rows_per_request(count(2)).on_failure(listener).open();
    let mut outcomes = Vec::new();
    for ids in [vec![0], vec![1], vec![2], vec![6, 7, 8]] {
        let mut receipts = Vec::new();
        for id in ids {
            receipts.push(streamer.try_add(row(id, 0)).unwrap());
        }
        outcomes.extend(join_all(receipts).await.into_iter().map(|outcome| outcome.err().map(|error| error.kind())));
    }
    let kinds = [ErrorKind::Unavailable, ErrorKind::ConnectionLost, ErrorKind::Internal, ErrorKind::TooLarge];
    let failed: Vec<_> = [0, 1, 2, 4].into_iter().zip(kinds).collect();
    assert_eq!(outcomes, [Some(kinds[0]), Some(kinds[1]), Some(kinds[2]), None, Some(kinds[3]), None]);
    assert_eq!(*heard.lock().unwrap(), failed);
    for report in [streamer.flush().await, streamer.close().await, streamer.close().await] {
        let report = report.unwrap();
        assert_eq!(figures(&report), (6, 2, 2, 2));
        let listed: Vec<_> = report.failures.iter().map(|failure| (failure.place, failure.error.kind())).collect();
        assert_eq!(listed, failed);
        assert_eq!(report.into_result().unwrap_err().outcome(), Outcome::Unknown, "the doubtful one first");
    }
}

#[tokio::test(start_paused = true)]
async fn more_failures_than_a_report_lists_are_counted() {
    let backend = Scripted::new(1, |_, _| async { Err(error(ErrorKind::Unavailable)) });
    let streamer = backend.table().await.streamer().open();
    for id in 0..1_500 {
        streamer.add(&row(id, 0)).await.unwrap();
    }
    let report = streamer.close().await.unwrap();
    assert_eq!((report.failed, report.failures.len()), (1_500, 1_000));
}

#[tokio::test(start_paused = true)]
async fn a_closed_streamer_takes_no_rows_whoever_waits() {
    let backend = Scripted::slow(1, 10);
    let streamer = backend.table().await.streamer().max_rows(1).open();
    streamer.add(&row(0, 0)).await.unwrap();
    let start = Instant::now();
    let (waiting, report) = futures::join!(streamer.add_owned(1), streamer.close());
    assert_eq!(waiting.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!((figures(&report.unwrap()), start.elapsed()), ((1, 1, 0, 0), Duration::from_millis(10)));
    assert_eq!(streamer.add(&row(2, 0)).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(streamer.try_add(row(2, 0)).unwrap_err().error.kind(), ErrorKind::Closed);
    assert_eq!(figures(&streamer.close().await.unwrap()), (1, 1, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_flush_and_a_close_end_in_their_time_and_what_waited_is_not_applied() {
    let backend = stalled();
    let client = backend.builder().deadline(Duration::from_secs(5)).build();
    let table = client.table(spec()).await.unwrap();
    let streamer = table.streamer().rows_per_request(count(2)).timeout(Duration::from_secs(1)).open();
    let mut receipts = Vec::new();
    for id in 0..2 {
        receipts.push(streamer.add(&row(id, 0)).await.unwrap());
        tokio::task::yield_now().await;
    }
    let start = Instant::now();
    assert_eq!(streamer.flush().await.unwrap_err().kind(), ErrorKind::Timeout(TimeoutPhase::Deadline));
    let error = streamer.close().await.unwrap_err();
    assert!(error.to_string().starts_with("close on t: rows have no outcome after 1s"), "{error}");
    assert_eq!((figures(&streamer.report()), start.elapsed()), ((2, 0, 1, 0), Duration::from_secs(2)));
    let outcomes: Vec<_> = join_all(receipts).await.into_iter().map(|outcome| outcome.unwrap_err().outcome()).collect();
    assert_eq!(outcomes, [Outcome::Unknown, Outcome::NotApplied]);
    assert_eq!(figures(&streamer.close().await.unwrap()), (2, 0, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_row_whose_receipt_is_dropped_is_written() {
    let backend = Scripted::slow(1, 10);
    let streamer = backend.table().await.streamer().open();
    drop(streamer.add(&row(5, 0)).await.unwrap());
    assert_eq!(figures(&streamer.close().await.unwrap()), (1, 1, 0, 0));
    assert_eq!(backend.calls(), [[5]]);
}

#[test]
fn one_dropped_without_close_is_counted_and_goes_on() {
    let backend = Scripted::slow(1, 10);
    let seen = backend.clone();
    let kept = recorded(|| async move {
        let streamer = backend.table().await.streamer().rows_per_request(NonZeroUsize::MIN).open();
        let mut receipts = Vec::new();
        for id in 0..5 {
            receipts.push(streamer.add(&row(id, 0)).await.unwrap());
        }
        drop(streamer);
        drop(backend.table().await.streamer().open());
        assert!(join_all(receipts).await.iter().all(Result::is_ok));
    });
    assert_eq!(kept.values("session.streamer.unclosed{}"), [1.0], "one without rows leaves nobody in doubt");
    assert_eq!(kept.values("session.streamer.abandoned-rows{}"), [5.0]);
    assert_eq!(seen.calls().len(), 5);
}

#[test]
fn when_the_runtime_ends_every_row_has_an_outcome() {
    let runtime = paused();
    let (streamer, receipts) = runtime.block_on(async {
        let streamer = stalled().table().await.streamer().rows_per_request(count(2)).open();
        let mut receipts = Vec::new();
        for id in 0..4 {
            receipts.push(streamer.add(&row(id, 0)).await.unwrap());
            tokio::task::yield_now().await;
        }
        (streamer, receipts)
    });
    drop(runtime);
    paused().block_on(async {
        let kinds: Vec<_> =
            join_all(receipts).await.into_iter().map(|outcome| outcome.unwrap_err().outcome()).collect();
        use Outcome::{NotApplied, Unknown};
        assert_eq!(kinds, [Unknown, Unknown, Unknown, NotApplied]);
        let late = streamer.add(&row(9, 0)).await.unwrap();
        assert_eq!(late.await.unwrap_err().outcome(), NotApplied);
        assert_eq!(figures(&streamer.close().await.unwrap()), (5, 0, 2, 3));
    });
}

#[tokio::test(start_paused = true)]
async fn a_panic_below_takes_its_own_rows_and_no_others() {
    let backend = Scripted::new(1, |number, mutations| async move {
        assert!(number > 0, "as the script says");
        Ok(mutations.iter().map(|_| Ok(())).collect())
    });
    let streamer = backend.table().await.streamer().open();
    for id in 0..5 {
        streamer.add(&row(id, 0)).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(figures(&streamer.close().await.unwrap()), (5, 4, 0, 1));
}

/// What the model's backend wrote, and what it saw that it must not see.
#[derive(Default)]
struct Truth {
    written: HashMap<i64, i64>,
    under_way: Vec<i64>,
    /// Requests that must not be. Kept for the end: a panic in a task of the streamer would be an outcome like others.
    wrong: Vec<Vec<i64>>,
}

/// Applies, fails, forgets and delays by chance; a request with an unknown outcome is applied or not.
fn chaos(seed: u64, owners: i64, most: usize, truth: &Arc<Mutex<Truth>>) -> Scripted {
    let (truth, dice) = (Arc::clone(truth), Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))));
    Scripted::new(owners, move |_, mutations| {
        let (truth, dice) = (Arc::clone(&truth), Arc::clone(&dice));
        async move {
            let ids: Vec<i64> = mutations.iter().map(id).collect();
            {
                let mut truth = truth.lock().unwrap();
                for (place, id) in ids.iter().enumerate() {
                    if place >= most || truth.under_way.contains(id) || id % owners != ids[0] % owners {
                        truth.wrong.push(ids.clone());
                    }
                    truth.under_way.push(*id);
                }
            }
            let (delay, fate) = {
                let mut dice = dice.lock().unwrap();
                (dice.u64(0..4), dice.u8(0..12))
            };
            if delay > 0 {
                sleep(Duration::from_millis(delay)).await;
            }
            let mut truth = truth.lock().unwrap();
            truth.under_way.retain(|id| !ids.contains(id));
            let mut outcomes = Vec::new();
            for (place, mutation) in mutations.into_iter().enumerate() {
                let refused = fate == 2 && place % 2 == 0;
                if fate > 1 && !refused {
                    let value = mutation.cells.first().map(|cell| &cell.write);
                    if let Some(crate::request::CellWrite::Put(Value::I64(value), _)) = value {
                        truth.written.insert(id(&mutation), *value);
                    }
                }
                outcomes.push(if refused { Err(error(ErrorKind::TooLarge)) } else { Ok(()) });
            }
            match fate {
                0 => Err(error(ErrorKind::Unavailable)),
                1 | 3 => Err(error(ErrorKind::ConnectionLost)),
                4 => {
                    outcomes.pop();
                    Ok(outcomes)
                }
                _ => Ok(outcomes),
            }
        }
    })
}

/// One producer of the model: adds, gives up adding at some poll, drops receipts or keeps them, flushes and gives that up.
async fn produce(
    streamer: &Streamer,
    mut dice: fastrand::Rng,
    values: &AtomicUsize,
) -> Vec<(i64, i64, Option<Receipt>)> {
    let mut added = Vec::new();
    for _ in 0..dice.usize(1..8) {
        let id = dice.i64(0..5);
        let value = i64::try_from(values.fetch_add(1, Ordering::SeqCst)).unwrap();
        let answer = match dice.u8(0..4) {
            0 => polled(dice.usize(0..3), streamer.add(&row(id, value))).await.and_then(Result::ok),
            1 => streamer.try_add(row(id, value)).ok(),
            2 => streamer.add(&row(id, value)).await.ok(),
            _ => {
                drop(polled(dice.usize(0..3), streamer.flush()).await);
                sleep(Duration::from_millis(dice.u64(0..3))).await;
                None
            }
        };
        if let Some(receipt) = answer {
            added.push((id, value, dice.bool().then_some(receipt)));
        }
    }
    added
}

async fn model(seed: u64) {
    let mut dice = fastrand::Rng::with_seed(seed);
    let (max_rows, requests, rows) = (dice.usize(1..12), dice.usize(1..5), dice.usize(1..5));
    let grouping = [Grouping::Off, Grouping::Partition, Grouping::Owner][dice.usize(0..3)];
    let truth = Arc::new(Mutex::new(Truth::default()));
    // Without grouping all rows are as if of one owner.
    let owners = if grouping == Grouping::Off { 1 } else { dice.i64(1..4) };
    let backend = chaos(seed, owners, rows, &truth);
    let builder = backend.table().await.streamer().max_rows(max_rows).grouping(grouping);
    let streamer = builder.concurrency(count(requests)).rows_per_request(count(rows)).open();
    let values = AtomicUsize::new(0);
    let producers: Vec<_> = (0..dice.usize(1..4)).map(|_| produce(&streamer, dice.fork(), &values)).collect();
    let bound = async {
        loop {
            assert!(streamer.report().unfinished() <= u64::try_from(max_rows).unwrap());
            sleep(Duration::from_micros(500)).await;
        }
    };
    let added = futures::future::select(Box::pin(join_all(producers)), Box::pin(bound)).await;
    let futures::future::Either::Left((added, _)) = added;
    for _ in 0..dice.usize(0..3) {
        drop(polled(dice.usize(1..3), streamer.close()).await);
    }
    let report = streamer.close().await.unwrap();
    let added: Vec<_> = added.into_iter().flatten().collect();
    assert_eq!((report.added, report.unfinished()), (u64::try_from(added.len()).unwrap(), 0));
    let listed =
        report.failures.iter().map(|failure| (failure.place, failure.error.outcome())).collect::<HashMap<_, _>>();
    assert_eq!(listed.len(), report.failures.len(), "no row ends twice");
    let truth = std::mem::take(&mut *truth.lock().unwrap());
    assert_eq!(truth.wrong, Vec::<Vec<i64>>::new());
    for (id, value, receipt) in added {
        let Some(receipt) = receipt else { continue };
        let place = receipt.place();
        let outcome = receipt.await;
        assert_eq!(outcome.as_ref().err().map(Error::outcome), listed.get(&place).copied());
        let is_written = truth.written.get(&id) == Some(&value);
        let is_refused = matches!(&outcome, Err(error) if error.outcome() == Outcome::NotApplied);
        assert!(!(is_written && is_refused), "row {id} was not applied, and is there");
    }
}

/// added = applied + failed + unknown, at every receipt the truth, and the bound kept: whatever fails, and wherever callers give up.
#[test]
fn every_row_is_accounted_for_whatever_fails_and_whoever_gives_up() {
    for seed in 0..10_000 {
        let runtime = paused();
        let run = std::panic::AssertUnwindSafe(|| runtime.block_on(model(seed)));
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// The last write of a row that was applied is the one that is there.
#[tokio::test(start_paused = true)]
async fn of_several_writes_of_a_row_the_last_one_wins() {
    let client = Client::builder(MemoryBackend::new()).build();
    client.create_table(&spec()).await.unwrap();
    let table = client.table(spec()).await.unwrap();
    let streamer = table.streamer().rows_per_request(count(2)).concurrency(count(3)).open();
    for value in 0..500 {
        streamer.add(&row(value % 3, value)).await.unwrap();
        if value % 5 == 0 {
            tokio::task::yield_now().await;
        }
    }
    streamer.close().await.unwrap().into_result().unwrap();
    for (id, value) in [(0, 498), (1, 499), (2, 497)] {
        let found: Option<Row> = table.get(id).await.unwrap();
        assert_eq!(found, Some(row(id, value)));
    }
}
