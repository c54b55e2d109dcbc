use std::time::Duration;

use futures::FutureExt;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use super::*;
use crate::error::{ErrorKind, Outcome};
use crate::layers::testing::{Mock, get, ids, ok, put, put_all};

fn faulty(plan: FaultPlan) -> (Mock, Faulty<Mock>) {
    let mock = Mock::new(|_, request| async move { ok(&request) });
    (mock.clone(), FaultLayer::new(plan).layer(mock))
}

#[tokio::test(start_paused = true)]
async fn the_call_that_is_named_meets_its_fault() {
    let kind = ErrorKind::ConnectionLost;
    for (fault, outcome, calls) in
        [(Fault::FailBefore(kind), Outcome::NotApplied, 2), (Fault::FailAfter(kind), Outcome::Unknown, 3)]
    {
        let (mock, service) = faulty(FaultPlan::seeded(1).fault(When::Calls(1..2), fault));
        assert!(service.clone().oneshot(put()).await.is_ok());
        let error = service.clone().oneshot(put()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (kind, outcome));
        assert!(service.oneshot(put()).await.is_ok());
        assert_eq!(mock.count(), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_calls_and_dropped_answers_differ_in_what_was_done() {
    for (fault, calls) in [(Fault::Hang, 0), (Fault::DropAnswer, 1)] {
        let (mock, service) = faulty(FaultPlan::seeded(1).fault(When::Calls(0..1), fault));
        let call = tokio::time::timeout(Duration::from_secs(9), service.oneshot(put()));
        assert!(call.await.is_err());
        assert_eq!(mock.count(), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn a_delayed_call_is_sent_late_or_not_at_all() {
    let (mock, service) = faulty(FaultPlan::seeded(1).fault(When::Share(1.0), Fault::Delay(Duration::from_secs(2))));
    let start = Instant::now();
    assert!(service.clone().oneshot(put()).await.is_ok());
    assert_eq!((start.elapsed(), mock.count()), (Duration::from_secs(2), 1));
    assert!(service.oneshot(put()).now_or_never().is_none());
    sleep(Duration::from_secs(3)).await;
    assert_eq!(mock.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_partial_write_tells_each_row_what_became_of_it() {
    let (mock, service) = faulty(FaultPlan::seeded(3).fault_of("put_all", When::Share(1.0), Fault::Partial(0.5)));
    let outcomes = service.clone().oneshot(put_all(0..64)).await.unwrap().into_outcomes().unwrap();
    let applied: Vec<i64> = (0..64).zip(&outcomes).filter(|(_, outcome)| outcome.is_ok()).map(|(id, _)| id).collect();
    assert_eq!(applied, ids(&mock.calls()[0]));
    assert!((10..54).contains(&applied.len()), "{applied:?}");
    assert!(outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).all(|e| e.outcome() == Outcome::NotApplied));
    assert!(service.oneshot(put()).await.is_ok());

    let (mock, service) = faulty(FaultPlan::seeded(3).fault(When::Share(1.0), Fault::Partial(1.0)));
    let outcomes = service.oneshot(put_all(0..3)).await.unwrap().into_outcomes().unwrap();
    assert_eq!((outcomes.iter().filter(|outcome| outcome.is_err()).count(), mock.count()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_seed_gives_the_same_faults_again() {
    let run = async |seed| {
        let kind = ErrorKind::Overloaded;
        let plan = FaultPlan::seeded(seed).fault(When::Share(0.3), Fault::FailBefore(kind));
        let service = faulty(plan).1;
        let mut failed = Vec::new();
        for _ in 0..200 {
            failed.push(service.clone().oneshot(get()).await.is_err());
        }
        failed
    };
    let first = run(5).await;
    assert_eq!(first, run(5).await);
    assert_ne!(first, run(6).await);
    assert!((35..85).contains(&first.iter().filter(|failed| **failed).count()));
}
