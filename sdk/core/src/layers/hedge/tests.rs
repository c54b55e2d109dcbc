use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use super::*;
use crate::error::ErrorKind;
use crate::layers::testing::{Mock, get, increment, ok, put};

const DELAY: Duration = Duration::from_millis(10);

/// Answers after so many milliseconds, by the number of the call; 0 is an error at once.
fn times(millis: &'static [u64]) -> Mock {
    Mock::new(move |number, request| async move {
        sleep(Duration::from_millis(millis[number])).await;
        if millis[number] % 2 == 1 {
            Err(Error::new(ErrorKind::Unavailable, format!("{number}")))
        } else {
            ok(&request)
        }
    })
}

async fn timed(mock: &Mock, request: Request) -> (Result<Response>, u64, usize) {
    let start = Instant::now();
    let answer = HedgeLayer::new(DELAY).layer(mock.clone()).oneshot(request).await;
    (answer, u64::try_from(start.elapsed().as_millis()).unwrap(), mock.count())
}

#[tokio::test(start_paused = true)]
async fn a_slow_read_is_overtaken_by_its_second() {
    let (answer, millis, calls) = timed(&times(&[1_000, 2]), get()).await;
    assert!(answer.is_ok());
    assert_eq!((millis, calls), (12, 2));
    let (answer, millis, calls) = timed(&times(&[14, 100]), get()).await;
    assert!(answer.is_ok());
    assert_eq!((millis, calls), (14, 2));
}

#[tokio::test(start_paused = true)]
async fn a_fast_answer_or_error_is_the_only_one() {
    assert_eq!(timed(&times(&[8]), get()).await.2, 1);
    let (answer, millis, calls) = timed(&times(&[7]), get()).await;
    assert!(answer.is_err());
    assert_eq!((millis, calls), (7, 1));
}

#[tokio::test(start_paused = true)]
async fn one_error_waits_for_the_other_and_the_first_is_told() {
    let (answer, millis, _) = timed(&times(&[15, 10]), get()).await;
    assert!(answer.is_ok());
    assert_eq!(millis, 20);
    let (answer, millis, _) = timed(&times(&[50, 1]), get()).await;
    assert!(answer.is_ok());
    assert_eq!(millis, 50);
    let (answer, millis, _) = timed(&times(&[15, 9]), get()).await;
    assert_eq!((answer.unwrap_err().message(), millis), ("0", 19));
}

#[tokio::test(start_paused = true)]
async fn a_write_is_never_sent_twice() {
    for request in [put(), increment()] {
        let (answer, millis, calls) = timed(&times(&[1_000, 2]), request).await;
        assert!(answer.is_ok());
        assert_eq!((millis, calls), (1_000, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_spends_the_budget_and_no_more() {
    let hanging = Mock::new(|_, request| async move {
        sleep(DELAY * 10).await;
        drop(request);
        Err(Error::new(ErrorKind::Unavailable, "down"))
    });
    let service = HedgeLayer::with_budget(DELAY, Budget::new(7, 0.05)).layer(hanging.clone());
    for _ in 0..50 {
        assert!(service.clone().oneshot(get()).await.is_err());
    }
    assert_eq!(hanging.count(), 50 + 7);
}

#[tokio::test(start_paused = true)]
async fn the_one_that_lost_and_those_of_a_dropped_caller_are_dropped() {
    struct Alive(Arc<AtomicUsize>);
    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let alive = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&alive);
    let mock = Mock::new(move |number, request| {
        counted.fetch_add(1, Ordering::SeqCst);
        let guard = Alive(Arc::clone(&counted));
        async move {
            let _guard = guard;
            sleep(DELAY * if number == 1 { 1 } else { 100 }).await;
            ok(&request)
        }
    });
    let mut service = HedgeLayer::new(DELAY).layer(mock);
    let mut kept = Box::pin(service.call(get()));
    assert!(kept.as_mut().await.is_ok());
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    let dropped = tokio::time::timeout(DELAY * 3, service.call(get())).await;
    assert!(dropped.is_err());
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}
