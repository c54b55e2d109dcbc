use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use proptest::prelude::*;
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt;

use super::*;
use crate::error::{Outcome, TimeoutPhase};
use crate::layers::testing::{Mock, ids, increment, ok, put, put_all};
use crate::layers::{Budget, DeadlineLayer};

fn lost() -> Error {
    Error::new(ErrorKind::ConnectionLost, "the connection broke")
}

fn refused() -> Error {
    Error::new(ErrorKind::Unavailable, "no node")
}

async fn send(mock: &Mock, request: Request) -> Result<Response> {
    RetryLayer::new(RetryPolicy::default()).layer(mock.clone()).oneshot(request).await
}

#[tokio::test(start_paused = true)]
async fn what_is_idempotent_is_sent_until_it_succeeds() {
    let mock = Mock::failing(vec![lost(), refused(), lost()]);
    assert!(send(&mock, put()).await.is_ok());
    assert_eq!(mock.count(), 4);
    assert!(mock.calls().iter().all(|request| *request == put()), "write times stay");
}

#[tokio::test(start_paused = true)]
async fn the_final_error_has_every_attempt_and_every_doubt() {
    let mock = Mock::failing(vec![lost(), refused(), refused(), refused()]);
    let error = send(&mock, put()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unavailable, Outcome::Unknown));
    let causes: Vec<_> = error.attempts().iter().map(|attempt| attempt.cause.as_str()).collect();
    assert_eq!(causes, ["the connection broke", "no node", "no node", "no node"]);
}

#[tokio::test(start_paused = true)]
async fn a_doubtful_increment_is_sent_once_and_a_refused_one_again() {
    let mock = Mock::failing(vec![lost()]);
    let error = send(&mock, increment()).await.unwrap_err();
    assert_eq!((error.outcome(), mock.count()), (Outcome::Unknown, 1));
    assert!(error.attempts().is_empty(), "one attempt is the error itself: {error}");

    let mock = Mock::failing(vec![refused(), lost(), refused()]);
    let error = send(&mock, increment()).await.unwrap_err();
    assert_eq!((error.outcome(), mock.count(), error.attempts().len()), (Outcome::Unknown, 2, 2));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_help_is_not_tried_again() {
    for kind in [ErrorKind::NotFound, ErrorKind::TooLarge, ErrorKind::PermissionDenied, ErrorKind::Closed] {
        let mock = Mock::failing(vec![Error::new(kind, "")]);
        assert_eq!(send(&mock, put()).await.unwrap_err().kind(), kind);
        assert_eq!(mock.count(), 1);
    }
}

/// Rows 1 and 3 fail twice and then succeed, row 4 fails for good.
#[tokio::test(start_paused = true)]
async fn only_failed_rows_are_sent_again_and_outcomes_keep_their_places() {
    let mock = Mock::new(|number, request| async move {
        let outcome = |id| match id {
            1 | 3 if number < 2 => Err(refused()),
            4 => Err(Error::new(ErrorKind::TooLarge, "row 4")),
            _ => Ok(()),
        };
        Ok(Response::Outcomes(ids(&request).into_iter().map(outcome).collect()))
    });
    let outcomes = send(&mock, put_all(0..6)).await.unwrap().into_outcomes().unwrap();
    let sent: Vec<_> = mock.calls().iter().map(ids).collect();
    assert_eq!(sent, [vec![0, 1, 2, 3, 4, 5], vec![1, 3], vec![1, 3]]);
    let failed: Vec<_> =
        outcomes.iter().enumerate().filter(|(_, outcome)| outcome.is_err()).map(|(at, _)| at).collect();
    assert_eq!(failed, [4]);
}

#[tokio::test(start_paused = true)]
async fn a_row_tells_its_own_attempts_whatever_failed_around_it() {
    let mock = Mock::new(|number, request| async move {
        match number {
            0 => Err(lost()),
            1 => Ok(Response::Outcomes(vec![Ok(()), Err(refused()), Ok(())])),
            2 => Err(Error::new(ErrorKind::Overloaded, "busy").with_outcome(Outcome::NotApplied)),
            _ => Ok(Response::Outcomes(ids(&request).iter().map(|_| Err(refused())).collect())),
        }
    });
    let outcomes = send(&mock, put_all(0..3)).await.unwrap().into_outcomes().unwrap();
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
    let error = outcomes[1].as_ref().unwrap_err();
    let causes: Vec<_> = error.attempts().iter().map(|attempt| attempt.cause.as_str()).collect();
    assert_eq!(causes, ["the connection broke", "no node", "busy", "no node"]);
    assert_eq!(error.outcome(), Outcome::Unknown);
}

#[tokio::test(start_paused = true)]
async fn no_pause_runs_past_the_deadline_and_the_error_stays() {
    let mock = Mock::new(|_, _| async {
        sleep(Duration::from_millis(100)).await;
        Err(refused())
    });
    let policy = RetryPolicy::default().attempts(100).pauses(Duration::from_secs(3_600), Duration::from_secs(3_600));
    let retry = RetryLayer::new(policy).layer(mock.clone());
    let start = Instant::now();
    let error = DeadlineLayer::new(Duration::from_millis(250)).layer(retry).oneshot(put()).await.unwrap_err();
    assert_eq!((error.kind(), mock.count(), start.elapsed()), (ErrorKind::Unavailable, 1, Duration::from_millis(100)));
}

#[tokio::test(start_paused = true)]
async fn at_the_deadline_the_rows_that_are_done_are_told() {
    let mock = Mock::new(|number, _| async move {
        if number > 0 { std::future::pending().await } else { Ok(Response::Outcomes(vec![Ok(()), Err(refused())])) }
    });
    let service = RetryLayer::new(RetryPolicy::default()).layer(mock.clone());
    let service = DeadlineLayer::new(Duration::from_secs(1)).layer(service);
    let outcomes = service.oneshot(put_all(0..2)).await.unwrap().into_outcomes().unwrap();
    assert!(outcomes[0].is_ok());
    let error = outcomes[1].as_ref().unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Timeout(TimeoutPhase::Deadline), Outcome::Unknown));
    assert_eq!(error.attempts().len(), 2);

    let hanging =
        Mock::new(|number, _| async move { if number > 0 { std::future::pending().await } else { Err(refused()) } });
    let service = RetryLayer::new(RetryPolicy::default()).layer(hanging);
    let error = DeadlineLayer::new(Duration::from_secs(1)).layer(service).oneshot(put()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts().len()), (ErrorKind::Timeout(TimeoutPhase::Deadline), 2));
}

#[tokio::test(start_paused = true)]
async fn the_budget_bounds_what_an_outage_adds() {
    let down = Mock::new(|_, _| async { Err(refused()) });
    let policy = RetryPolicy::default().budget(Budget::new(20, 0.1));
    let layer = RetryLayer::new(policy);
    // Two services of one layer, and clones of both, share the budget.
    let services = [layer.layer(down.clone()), layer.layer(down.clone())];
    join_all((0..1_000).map(|number| services[number % 2].clone().oneshot(put()))).await;
    assert_eq!(down.count(), 1_000 + 20);
}

#[tokio::test(start_paused = true)]
async fn one_dropped_before_or_during_an_attempt_or_a_pause_sends_nothing_more() {
    let mock = Mock::failing((0..9).map(|_| lost()).collect());
    let policy = RetryPolicy::default().pauses(Duration::from_secs(60), Duration::from_secs(60));
    let service = RetryLayer::new(policy).layer(mock.clone());
    drop(service.clone().oneshot(put()));
    assert_eq!(mock.count(), 0);
    assert!(service.oneshot(put()).now_or_never().is_none());
    sleep(Duration::from_secs(300)).await;
    assert_eq!(mock.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn off_is_one_attempt() {
    for layer in [RetryLayer::off(), RetryLayer::new(RetryPolicy::default().attempts(1))] {
        let mock = Mock::failing(vec![refused()]);
        assert!(layer.layer(mock.clone()).oneshot(put()).await.is_err());
        assert_eq!(mock.count(), 1);
    }
}

/// Counts how often each increment takes effect on a server that loses requests and answers.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Answered,
    Refused,
    AppliedAndLost,
    Lost,
    Slow,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is lost, late or cancelled: an increment takes effect at most once, and once if it is told so.
    #[test]
    fn no_increment_is_applied_twice(
        fates in prop::collection::vec(prop::sample::select(vec![
            Fate::Answered, Fate::Refused, Fate::AppliedAndLost, Fate::Lost, Fate::Slow,
        ]), 40),
        calls in prop::collection::vec(0..400_u64, 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let next = AtomicUsize::new(0);
            let next = Arc::new(next);
            let call = |patience: u64| {
                let (applied, next, fates) = (Arc::new(AtomicI64::new(0)), Arc::clone(&next), fates.clone());
                let counter = Arc::clone(&applied);
                let mock = Mock::new(move |_, request| {
                    let (counter, fate) = (Arc::clone(&counter), fates[next.fetch_add(1, Ordering::SeqCst) % fates.len()]);
                    async move {
                        if matches!(fate, Fate::Slow) { sleep(Duration::from_millis(150)).await }
                        match fate {
                            Fate::Refused => return Err(refused()),
                            Fate::Lost => return Err(lost()),
                            _ => counter.fetch_add(1, Ordering::SeqCst),
                        };
                        if matches!(fate, Fate::AppliedAndLost) { Err(lost()) } else { ok(&request) }
                    }
                });
                async move {
                    let answer = timeout(Duration::from_millis(patience), send(&mock, increment())).await;
                    let applied = applied.load(Ordering::SeqCst);
                    match answer {
                        Ok(Ok(_)) => assert_eq!(applied, 1),
                        Ok(Err(error)) if error.outcome() == Outcome::NotApplied => assert_eq!(applied, 0, "{error}"),
                        _ => assert!(applied <= 1),
                    }
                }
            };
            join_all(calls.iter().map(|patience| call(*patience))).await;
        });
    }

    /// Whatever fails in whatever round, each row's outcome is that of the last attempt that had it.
    #[test]
    fn outcomes_are_those_of_the_rows_at_their_places(
        rounds in prop::collection::vec(prop::collection::vec(0..4_u8, 8), 4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let script = rounds.clone();
        let mock = Mock::new(move |number, request| {
            let round = script[number].clone();
            async move {
                let fate = |id: i64| match round[usize::try_from(id).unwrap()] {
                    0 => Err(Error::new(ErrorKind::TooLarge, format!("{id} for good"))),
                    1 => Err(Error::new(ErrorKind::Unavailable, format!("{id}"))),
                    _ => Ok(()),
                };
                Ok(Response::Outcomes(ids(&request).into_iter().map(fate).collect()))
            }
        });
        let outcomes = runtime.block_on(send(&mock, put_all(0..8))).unwrap().into_outcomes().unwrap();
        for (id, outcome) in outcomes.iter().enumerate() {
            let fates: Vec<u8> = rounds.iter().map(|round| round[id]).collect();
            let last = fates.iter().find(|fate| **fate != 1);
            prop_assert_eq!(outcome.is_ok(), matches!(last, Some(2..)));
            if let Err(error) = outcome {
                prop_assert!(error.message().starts_with(&id.to_string()));
            }
        }
    }
}
