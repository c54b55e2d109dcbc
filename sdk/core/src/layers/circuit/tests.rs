use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use futures::future::join_all;
use tokio::time::{advance, sleep};
use tower::ServiceExt;

use super::*;
use crate::error::Outcome;
use crate::layers::testing::{Mock, get, ok, put_all};

/// An endpoint that is well or not, and takes 10 ms to tell.
fn endpoint() -> (Mock, Arc<AtomicBool>, Circuit<Mock>) {
    let well = Arc::new(AtomicBool::new(true));
    let told = Arc::clone(&well);
    let mock = Mock::new(move |_, request| {
        let told = Arc::clone(&told);
        async move {
            sleep(Duration::from_millis(10)).await;
            if told.load(Ordering::SeqCst) { ok(&request) } else { Err(Error::new(ErrorKind::Overloaded, "busy")) }
        }
    });
    let service = CircuitLayer::new("h1:9042", CircuitPolicy::default()).layer(mock.clone());
    (mock, well, service)
}

async fn send(service: &Circuit<Mock>, times: usize) -> Vec<Result<Response>> {
    join_all((0..times).map(|_| service.clone().oneshot(get()))).await
}

#[tokio::test(start_paused = true)]
async fn it_opens_at_a_share_of_failures_and_sends_nothing_then() {
    let (mock, well, service) = endpoint();
    send(&service, 30).await;
    well.store(false, Ordering::SeqCst);
    send(&service, 29).await;
    assert!(send(&service, 1).await[0].as_ref().is_err_and(|error| error.kind() == ErrorKind::Overloaded));
    let calls = mock.count();
    for error in send(&service, 5).await.into_iter().map(Result::unwrap_err) {
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unavailable, Outcome::NotApplied));
        assert!(error.to_string().contains("h1:9042"), "{error}");
    }
    assert_eq!(mock.count(), calls);
}

#[tokio::test(start_paused = true)]
async fn after_a_pause_a_few_probes_close_it() {
    let (mock, well, service) = endpoint();
    well.store(false, Ordering::SeqCst);
    send(&service, 20).await;
    well.store(true, Ordering::SeqCst);
    advance(Duration::from_secs(1)).await;
    let answers = send(&service, 9).await;
    assert_eq!((answers.iter().filter(|answer| answer.is_ok()).count(), mock.count()), (3, 23));
    assert!(send(&service, 50).await.iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_opens_it_for_longer() {
    let (mock, well, service) = endpoint();
    well.store(false, Ordering::SeqCst);
    send(&service, 20).await;
    for (pause, calls) in [(1, 23), (2, 26), (4, 29)] {
        advance(Duration::from_millis(pause * 1_000 - 50)).await;
        send(&service, 9).await;
        assert_eq!(mock.count(), calls - 3, "{pause}");
        advance(Duration::from_millis(50)).await;
        send(&service, 9).await;
        assert_eq!(mock.count(), calls, "{pause}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_probe_says_nothing_and_makes_room_for_another() {
    let (_, well, service) = endpoint();
    well.store(false, Ordering::SeqCst);
    send(&service, 20).await;
    well.store(true, Ordering::SeqCst);
    advance(Duration::from_secs(1)).await;
    for _ in 0..20 {
        let mut probe = Box::pin(service.clone().oneshot(get()));
        assert!(probe.as_mut().now_or_never().is_none());
        let mut unpolled = service.clone();
        drop(unpolled.call(get()));
    }
    assert!(send(&service, 3).await.iter().all(Result::is_ok));
    assert!(send(&service, 30).await.iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn late_answers_of_an_earlier_phase_do_not_count() {
    let slow = Mock::new(|number, request| async move {
        sleep(Duration::from_millis(if number < 20 { 1 } else { 1_500 })).await;
        if number < 40 { Err(Error::new(ErrorKind::ConnectionLost, "gone")) } else { ok(&request) }
    });
    let service = CircuitLayer::new("h", CircuitPolicy::default()).layer(slow);
    let late = tokio::spawn({
        let service = service.clone();
        async move { send(&service, 40).await }
    });
    sleep(Duration::from_millis(1_400)).await;
    // Half open; the twenty that fail at 1.5 s were asked for before.
    assert!(send(&service, 3).await.iter().all(Result::is_ok));
    assert!(late.await.unwrap().iter().all(Result::is_err));
    assert!(send(&service, 9).await.iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn wrong_requests_and_single_rows_open_nothing() {
    let mock = Mock::new(|number, _| async move {
        if number % 2 == 0 {
            return Err(Error::new(ErrorKind::NotFound, "no table"));
        }
        Ok(Response::Outcomes(vec![Ok(()), Err(Error::new(ErrorKind::ConnectionLost, "one row"))]))
    });
    let service = CircuitLayer::new("h", CircuitPolicy::default()).layer(mock.clone());
    join_all((0..100).map(|_| service.clone().oneshot(put_all(0..2)))).await;
    assert_eq!(mock.count(), 100);
}

#[tokio::test(start_paused = true)]
async fn failures_of_long_ago_do_not_count() {
    let (mock, well, service) = endpoint();
    well.store(false, Ordering::SeqCst);
    for _ in 0..10 {
        send(&service, 15).await;
        advance(Duration::from_secs(11)).await;
    }
    assert_eq!(mock.count(), 150);
}
