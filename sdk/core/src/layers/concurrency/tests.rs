use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use proptest::prelude::*;
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt;

use super::limit::Limit;
use super::*;
use crate::error::{ErrorKind, Outcome, TimeoutPhase};
use crate::layers::testing::{Mock, get, ok, put};

fn layer(requests: usize, queue: usize) -> (ConcurrencyLayer, Arc<Limit>) {
    let layer = ConcurrencyLayer::with_queue(NonZeroUsize::new(requests).unwrap(), queue);
    let limit = Arc::clone(layer.limits.as_ref().unwrap().of(None));
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

/// A server by the Universal Scalability Law, in virtual time: each answer takes as long as those under way make it.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn usl(contention: f64, coherency: f64, capacity: Arc<AtomicUsize>) -> (Mock, Arc<AtomicUsize>) {
    let under_way = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&under_way);
    let dice = std::sync::Mutex::new(fastrand::Rng::with_seed(5));
    let dice = Arc::new(dice);
    let mock = Mock::new(move |_, request| {
        let (counted, dice, capacity) = (Arc::clone(&counted), Arc::clone(&dice), Arc::clone(&capacity));
        async move {
            let n = u32::try_from(counted.fetch_add(1, Ordering::SeqCst) + 1).unwrap();
            let _leave = Leave(counted);
            let n = f64::from(n) / (capacity.load(Ordering::SeqCst) as f64 / 100.0);
            let millis = 10.0 * (1.0 + contention * (n - 1.0) + coherency * n * (n - 1.0)).max(1.0);
            let spread = 0.5 + dice.lock().unwrap().f64();
            sleep(Duration::from_secs_f64(millis * spread / 1_000.0)).await;
            ok(&request)
        }
    });
    (mock, under_way)
}

/// Callers without end, for so long; gives the mean limit, and the answers per second.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
async fn drive(layer: &ConcurrencyLayer, limit: &Limit, mock: &Mock, seconds: u64) -> (f64, f64) {
    let end = Instant::now() + Duration::from_secs(seconds);
    let service = layer.layer(mock.clone());
    let done = AtomicUsize::new(0);
    let callers = (0..150).map(|_| {
        let (mut service, done) = (service.clone(), &done);
        async move {
            while Instant::now() < end {
                service.call(get()).await.unwrap();
                done.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let mut limits = Vec::new();
    let watch = async {
        while Instant::now() < end {
            limits.push(limit.requests() as f64);
            sleep(Duration::from_millis(100)).await;
        }
    };
    futures::join!(join_all(callers), watch);
    (limits.iter().sum::<f64>() / limits.len() as f64, done.load(Ordering::SeqCst) as f64 / seconds as f64)
}

/// Its peak is at 7 under way for each unit of capacity, and 2 % less are done by 5.5.
#[tokio::test(start_paused = true)]
async fn the_autopilot_finds_the_knee_and_follows_it() {
    let capacity = Arc::new(AtomicUsize::new(200));
    let (mock, under_way) = usl(0.05, 0.02, Arc::clone(&capacity));
    let layer = ConcurrencyLayer::autopilot(Autopilot::default().range(1, 100));
    let limit = Arc::clone(layer.limits.as_ref().unwrap().of(None));
    let best = |n: f64, capacity: f64| {
        let m = n / capacity;
        capacity * 100.0 * m / (1.0 + 0.05 * (m - 1.0) + 0.02 * m * (m - 1.0))
    };
    for (percent, knee) in [(200, 11.0), (100, 5.5), (200, 11.0)] {
        capacity.store(percent, Ordering::SeqCst);
        drive(&layer, &limit, &mock, 30).await;
        let (mean, rate) = drive(&layer, &limit, &mock, 30).await;
        let capacity = f64::from(u32::try_from(percent).unwrap()) / 100.0;
        let most = (1..100).map(|n| best(f64::from(n), capacity)).fold(0.0, f64::max);
        assert!(rate > 0.9 * most, "{percent}: {rate} of {most} at {mean}");
        assert!((0.7 * knee..1.7 * knee).contains(&mean), "{percent}: {mean} around {knee}");
    }
    assert_eq!(under_way.load(Ordering::SeqCst), 0);
    assert_eq!((limit.free(), limit.waiting()), (limit.requests(), 0), "no permit is lost, and none is owed");
}

#[tokio::test(start_paused = true)]
async fn the_autopilot_keeps_permits_while_callers_go_away() {
    let layer = ConcurrencyLayer::autopilot(Autopilot::default().start(8).range(2, 16));
    let limit = Arc::clone(layer.limits.as_ref().unwrap().of(None));
    let under_way = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&under_way);
    let mock = Mock::new(move |number, request| {
        let counted = Arc::clone(&counted);
        async move {
            assert!(counted.fetch_add(1, Ordering::SeqCst) < 16);
            let _leave = Leave(counted);
            sleep(Duration::from_millis(20 + number as u64 % 30)).await;
            if number % 50 == 0 { Err(Error::new(ErrorKind::Overloaded, "busy")) } else { ok(&request) }
        }
    });
    let service = layer.layer(mock);
    let callers = (0..40_u64).map(|caller| {
        let service = service.clone();
        async move {
            for call in 0..200 {
                let patience = Duration::from_millis(1 + (caller * 37 + call * 11) % 90);
                drop(timeout(patience, service.clone().oneshot(get())).await);
            }
        }
    });
    join_all(callers).await;
    assert_eq!(under_way.load(Ordering::SeqCst), 0);
    assert_eq!((limit.free(), limit.waiting()), (limit.requests(), 0));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_ran_into_its_deadline_tells_of_load_and_one_that_was_given_up_of_nothing() {
    let flight = |deadline: Option<Duration>| {
        let deadline = deadline.map(|after| (Instant::now() + after).into_std());
        steering::Flight::new(1, crate::request::RequestOptions { deadline, ..Default::default() })
    };
    let (late, early) = (flight(Some(Duration::from_millis(5))), flight(None));
    sleep(Duration::from_millis(10)).await;
    assert!(late.dropped().is_some() && early.dropped().is_none());
}
