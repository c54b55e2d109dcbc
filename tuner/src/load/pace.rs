//! Intended starts in open loop: requests begin when the schedule says so, not when an answer makes room.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::stats::{real, whole};

/// The longest sleep of the thread that keeps the pace, so that it sees the end.
const NAP: Duration = Duration::from_millis(20);

/// A schedule of starts that all workers share: their number has no part in the rate.
#[derive(Debug)]
pub(crate) struct Pace {
    origin: Instant,
    rate: f64,
    /// Starts that are due and not taken. What waits here is a number, so it needs no bound.
    due: Semaphore,
    next: AtomicU64,
}

impl Pace {
    /// Starts at `rate` per second from `origin` on.
    pub(crate) fn new(origin: Instant, rate: f64) -> Self {
        Self { origin, rate, due: Semaphore::new(0), next: AtomicU64::new(0) }
    }

    /// When the start of this number is intended. It follows from the number, so that no rounding adds up.
    fn intended(&self, number: u64) -> Instant {
        self.origin + Duration::try_from_secs_f64(real(number) / self.rate).unwrap_or(Duration::MAX / 2)
    }

    /// How many starts are intended before an instant.
    fn before(&self, instant: Instant) -> u64 {
        whole((instant.saturating_duration_since(self.origin).as_secs_f64() * self.rate).ceil())
    }

    /// How many are intended from one instant to another.
    pub(crate) fn between(&self, from: Instant, to: Instant) -> u64 {
        self.before(to) - self.before(from)
    }

    /// Waits for the next start and returns when it was intended; `None` when the schedule has ended. A start that is taken
    /// late was late by its own fault: the wait counts.
    pub(crate) async fn start(&self) -> Option<Instant> {
        self.due.acquire().await.ok()?.forget();
        Some(self.intended(self.next.fetch_add(1, Ordering::Relaxed)))
    }

    /// Keeps the pace in a thread of its own until `stop` is set: timers of the runtime are coarser than a thread's sleep.
    pub(crate) fn keep(self: &Arc<Self>, stop: Arc<AtomicBool>) -> std::io::Result<JoinHandle<()>> {
        let pace = Arc::clone(self);
        std::thread::Builder::new().name("tuner-pace".into()).spawn(move || {
            let mut given = 0;
            while !stop.load(Ordering::Relaxed) {
                let due = pace.before(Instant::now());
                pace.due
                    .add_permits(usize::try_from(due - given).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS / 2));
                given = due;
                std::thread::sleep(pace.intended(given).saturating_duration_since(Instant::now()).min(NAP));
            }
            pace.due.close();
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_right_for_any_rate() {
        let origin = Instant::now();
        for rate in [0.5, 7.0, 100.0, 300.0, 999.9, 33_333.0, 1e6] {
            let pace = Pace::new(origin, rate);
            for seconds in [10_u64, 3600] {
                let starts = pace.between(origin, origin + Duration::from_secs(seconds));
                let error = real(starts) / (rate * real(seconds)) - 1.0;
                assert!(error.abs() < 0.01, "{rate} for {seconds} s: {starts}");
            }
        }
    }

    #[test]
    fn starts_lie_evenly_and_do_not_drift() {
        let origin = Instant::now();
        let pace = Pace::new(origin, 3.0);
        let third = |number: u64| (pace.intended(number) - origin).as_secs_f64();
        assert!((third(1) - 1.0 / 3.0).abs() < 1e-9 && (third(3_000_000) - 1e6).abs() < 1e-6);
        assert_eq!(pace.between(origin, origin + Duration::from_millis(1500)), 5);
    }

    #[tokio::test]
    async fn after_a_standstill_what_is_overdue_is_caught_up_with_by_the_workers_alone_and_its_wait_counts() {
        // Nobody took a start for five seconds: 5000 are due at once.
        let origin = Instant::now().checked_sub(Duration::from_secs(5)).unwrap();
        let pace = Arc::new(Pace::new(origin, 1000.0));
        let stop = Arc::new(AtomicBool::new(false));
        let keeper = pace.keep(Arc::clone(&stop)).unwrap();
        let (now, most, taken) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let worker = || async {
            for _ in 0..100 {
                let intended = pace.start().await.unwrap();
                assert!(intended.elapsed() > Duration::from_secs(3), "a late start keeps the time that was intended");
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                taken.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::Relaxed);
            }
        };
        futures_of_four(worker).await;
        assert_eq!((most.into_inner(), taken.into_inner()), (4, 400));
        // The others stay due; at the end of the window they are dropped, and counted as that.
        assert!(pace.between(origin, Instant::now()) >= 5000);
        stop.store(true, Ordering::Relaxed);
        keeper.join().unwrap();
    }

    async fn futures_of_four<F: Future<Output = ()>>(worker: impl Fn() -> F) {
        tokio::join!(worker(), worker(), worker(), worker());
    }

    #[tokio::test]
    async fn starts_are_given_out_in_order_and_end_with_the_schedule() {
        let origin = Instant::now();
        let pace = Arc::new(Pace::new(origin, 1000.0));
        let stop = Arc::new(AtomicBool::new(false));
        let keeper = pace.keep(Arc::clone(&stop)).unwrap();
        for number in 0..20 {
            assert_eq!(pace.start().await, Some(pace.intended(number)));
        }
        stop.store(true, Ordering::Relaxed);
        keeper.join().unwrap();
        while pace.start().await.is_some() {}
    }
}
