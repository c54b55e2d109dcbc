use std::time::Duration;

use futures::future::join_all;
use proptest::prelude::*;
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt;

use super::*;
use crate::error::{ErrorKind, Outcome, TimeoutPhase};
use crate::layers::testing::{Mock, get, get_all, ok, put_all};

fn limited(rate: u32) -> (Mock, RateLimit<Mock>) {
    let mock = Mock::new(|_, request| async move { ok(&request) });
    (mock.clone(), RateLimitLayer::new(NonZeroU32::new(rate).unwrap()).layer(mock))
}

/// When, and how many rows, for every request that passed.
async fn passed(rate: u32, sizes: &[i64], clients: usize, time: Duration) -> Vec<(Duration, u32)> {
    let start = Instant::now();
    let (_, service) = limited(rate);
    let client = |number: usize| {
        let (service, sizes) = (service.clone(), sizes.to_vec());
        async move {
            let mut passed = Vec::new();
            for turn in number.. {
                let rows = sizes[turn % sizes.len()];
                service.clone().oneshot(get_all(rows)).await.unwrap();
                if start.elapsed() >= time {
                    return passed;
                }
                passed.push((start.elapsed(), u32::try_from(rows).unwrap()));
            }
            passed
        }
    };
    let mut all: Vec<_> = join_all((0..clients).map(client)).await.into_iter().flatten().collect();
    all.sort_unstable();
    all
}

#[tokio::test(start_paused = true)]
async fn the_rate_is_right_within_a_hundredth_over_all_clones() {
    for (rate, sizes) in [(100, &[1][..]), (1_000, &[1]), (1_000, &[64]), (5_000, &[1, 7, 200]), (20_000, &[64, 1])] {
        let time = Duration::from_secs(10);
        let rows: u32 = passed(rate, sizes, 8, time).await.iter().map(|(_, rows)| rows).sum();
        let expected = f64::from(rate) * time.as_secs_f64();
        let ratio = f64::from(rows) / expected;
        // A request in the middle of its instalments when the time ends hasn't passed.
        let tolerance = 0.01 + f64::from(u32::try_from(*sizes.iter().max().unwrap()).unwrap() - 1) / expected;
        assert!((1.0 - tolerance..=1.01).contains(&ratio), "{rate} with {sizes:?}: {ratio}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_edge_lets_a_double_burst_through() {
    let passed = passed(1_000, &[1, 3], 6, Duration::from_secs(5)).await;
    for (number, (from, _)) in passed.iter().enumerate() {
        let rows: u32 = passed[number..]
            .iter()
            .take_while(|(at, _)| *at < *from + Duration::from_millis(100))
            .map(|(_, rows)| rows)
            .sum();
        // 100 ms at the rate, the burst of 11, and a millisecond of the timer.
        assert!(rows <= 100 + 11 + 3, "{rows} rows within 100 ms of {from:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_request_is_not_starved_by_small_ones() {
    let (mock, service) = limited(100);
    let start = Instant::now();
    let small = (0..400).map(|number| {
        let service = service.clone();
        async move {
            sleep(Duration::from_millis(5 * number)).await;
            service.oneshot(get()).await.map(|_| Duration::ZERO)
        }
    });
    let large = async {
        sleep(Duration::from_millis(2)).await;
        service.clone().oneshot(put_all(0..50)).await.map(|_| start.elapsed())
    };
    let (times, large) = futures::join!(join_all(small), large);
    assert!(times.iter().all(Result::is_ok));
    assert!(large.unwrap() < Duration::from_millis(700));
    assert_eq!(mock.count(), 401);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_before_or_while_it_waits_sends_nothing_and_holds_up_nobody() {
    let (mock, service) = limited(1);
    drop(service.clone().oneshot(get()));
    for _ in 0..2 {
        service.clone().oneshot(get()).await.unwrap();
    }
    let mut waiting = Box::pin(service.clone().oneshot(get()));
    assert!(timeout(Duration::from_millis(100), &mut waiting).await.is_err());
    assert_eq!(mock.count(), 2);
    drop(waiting);
    let start = Instant::now();
    service.oneshot(get()).await.unwrap();
    assert!(start.elapsed() <= Duration::from_secs(1) && mock.count() == 3);
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_time_is_over_in_the_queue_was_not_sent() {
    let (mock, service) = limited(1);
    for _ in 0..2 {
        service.clone().oneshot(get()).await.unwrap();
    }
    let service = crate::layers::DeadlineLayer::new(Duration::from_millis(300)).layer(service);
    let error = service.oneshot(put_all(0..3)).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Timeout(TimeoutPhase::Queue), Outcome::NotApplied));
    assert_eq!(mock.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_everything_passes_at_once() {
    let mock = Mock::new(|_, request| async move { ok(&request) });
    let service = RateLimitLayer::off().layer(mock.clone());
    let start = Instant::now();
    for _ in 0..1_000 {
        service.clone().oneshot(get_all(1_000)).await.unwrap();
    }
    assert_eq!((start.elapsed(), mock.count()), (Duration::ZERO, 1_000));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is asked for and dropped, the rate holds and nothing is stuck.
    #[test]
    fn cancels_never_raise_the_rate_or_stop_it(steps in prop::collection::vec((1..40_i64, 0..60_u64), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (mock, service) = limited(500);
            let start = Instant::now();
            let calls = steps.iter().map(|(rows, patience)| {
                timeout(Duration::from_millis(*patience), service.clone().oneshot(get_all(*rows)))
            });
            join_all(calls).await;
            let rows: usize = mock.calls().iter().map(Request::rows).sum();
            #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
            let rows = rows as f64;
            assert!(rows <= 500.0 * start.elapsed().as_secs_f64() + 8.0, "{rows}");
            timeout(Duration::from_secs(1), service.oneshot(get())).await.unwrap().unwrap();
        });
    }
}
