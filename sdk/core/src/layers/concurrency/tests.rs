use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use proptest::prelude::*;
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt;

use super::*;
use crate::error::{ErrorKind, Outcome, TimeoutPhase};
use crate::layers::testing::{Mock, get, ok, put};

fn layer(requests: usize, queue: usize) -> (ConcurrencyLayer, Arc<Limit>) {
    let layer = ConcurrencyLayer::with_queue(NonZeroUsize::new(requests).unwrap(), queue);
    let limit = Arc::clone(layer.limit.as_ref().unwrap());
    (layer, limit)
}

/// Answers after this many milliseconds.
fn slow(millis: u64) -> Mock {
    Mock::new(move |_, request| async move {
        sleep(Duration::from_millis(millis)).await;
        ok(&request)
    })
}

#[tokio::test(start_paused = true)]
async fn those_over_the_limit_wait_and_those_over_the_queue_are_refused() {
    let mock = slow(10);
    let (layer, limit) = layer(2, 3);
    let service = layer.layer(mock.clone());
    let start = Instant::now();
    let answers = join_all((0..7).map(|_| service.clone().oneshot(put()))).await;
    let refused: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert_eq!((refused.len(), mock.count(), start.elapsed()), (2, 5, Duration::from_millis(30)));
    for error in refused {
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Overloaded, Outcome::NotApplied), "{error}");
    }
    assert_eq!((limit.free(), limit.waiting()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_ready_and_never_calls_holds_nothing() {
    let (layer, limit) = layer(1, 0);
    let service = layer.layer(slow(1));
    let mut idle = service.clone();
    idle.ready().await.unwrap();
    assert_eq!(limit.free(), 1);
    service.oneshot(get()).await.unwrap();
    drop(idle.call(get()));
    assert_eq!(limit.free(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_poll_ready_works() {
    let mut service = layer(1, 0).0.layer(slow(1));
    assert!(service.call(get()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_answered_future_that_is_kept_holds_no_permit() {
    let failing = Mock::new(|number, request| async move {
        if number == 0 { Err(Error::new(ErrorKind::ConnectionLost, "gone")) } else { ok(&request) }
    });
    let (layer, limit) = layer(1, 0);
    let mut service = layer.layer(failing);
    let mut kept: Vec<_> = (0..2).map(|_| Box::pin(service.call(get()))).collect();
    assert!(kept[0].as_mut().await.is_err());
    assert_eq!(limit.free(), 1);
    assert!(kept[1].as_mut().await.is_ok());
    assert_eq!(limit.free(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_dropped_in_flight_or_in_the_queue_gives_its_place_back() {
    let mock = slow(1_000);
    let (layer, limit) = layer(1, 1);
    let service = layer.layer(mock.clone());
    let mut running = Box::pin(service.clone().oneshot(get()));
    assert!(running.as_mut().now_or_never().is_none());
    let mut queued = Box::pin(service.clone().oneshot(get()));
    assert!(queued.as_mut().now_or_never().is_none());
    assert_eq!((limit.free(), limit.waiting()), (0, 1));
    drop(queued);
    assert_eq!((limit.free(), limit.waiting()), (0, 0));
    drop(running);
    assert_eq!((limit.free(), mock.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn queueing_counts_and_what_was_not_sent_says_so() {
    let mock = slow(1_000);
    let service = layer(1, 9).0.layer(mock.clone());
    let service = crate::layers::DeadlineLayer::new(Duration::from_millis(400)).layer(service);
    let (sent, queued) = futures::join!(service.clone().oneshot(put()), service.clone().oneshot(put()));
    let (sent, queued) = (sent.unwrap_err(), queued.unwrap_err());
    assert_eq!((sent.kind(), sent.outcome()), (ErrorKind::Timeout(TimeoutPhase::Deadline), Outcome::Unknown));
    assert_eq!((queued.kind(), queued.outcome()), (ErrorKind::Timeout(TimeoutPhase::Queue), Outcome::NotApplied));
    assert!(queued.to_string().contains("one of 1 permits"), "{queued}");
    assert_eq!(mock.count(), 1);
}

/// A semaphore also says that it isn't ready when a task has done enough for one turn; that is no reason to refuse.
#[tokio::test]
async fn a_task_that_has_used_up_its_turn_is_not_refused() {
    let service = layer(1, 1).0.layer(Mock::new(|_, request| async move { ok(&request) }));
    tokio::spawn(async move {
        for _ in 0..1_000 {
            assert!(service.clone().oneshot(get()).await.is_ok());
        }
    })
    .await
    .unwrap();
}

/// A stream that holds a page while the same task writes: a permit per page, not per scan.
#[tokio::test(start_paused = true)]
async fn one_task_can_write_between_pages_at_a_limit_of_one() {
    let service = layer(1, 1).0.layer(slow(1));
    for _ in 0..3 {
        let page = service.clone().oneshot(get()).await.unwrap();
        service.clone().oneshot(put()).await.unwrap();
        drop(page);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is dropped, and when: the limit holds, and all permits come back.
    #[test]
    fn permits_are_conserved(
        limit in 1..4_usize,
        queue in 0..6_usize,
        calls in prop::collection::vec((0..30_u64, 0..40_u64, any::<bool>()), 1..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let under_way = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&under_way);
            let mock = Mock::new(move |number, request| {
                let counted = Arc::clone(&counted);
                async move {
                    assert!(counted.fetch_add(1, Ordering::SeqCst) < limit);
                    let _leave = Leave(counted);
                    sleep(Duration::from_millis(number as u64 % 7)).await;
                    if number % 3 == 0 { Err(Error::invalid("third")) } else { ok(&request) }
                }
            });
            let (layer, permits) = layer(limit, queue);
            let service = layer.layer(mock);
            let calls = calls.iter().map(|(start, patience, polled)| {
                let call = service.clone().oneshot(get());
                async move {
                    sleep(Duration::from_millis(*start)).await;
                    if *polled { drop(timeout(Duration::from_millis(*patience), call).await) }
                }
            });
            join_all(calls).await;
            assert_eq!((permits.free(), permits.waiting(), under_way.load(Ordering::SeqCst)), (limit, 0, 0));
        });
    }
}

struct Leave(Arc<AtomicUsize>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
