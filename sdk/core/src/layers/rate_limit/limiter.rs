//! Tokens that come at a steady rate, given out in turn.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::sync::Semaphore;
use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Limiter {
    bucket: RateLimiter<NotKeyed, InMemoryState, RuntimeClock, NoOpMiddleware<Duration>>,
    clock: RuntimeClock,
    /// The most that is taken at once: half of the burst, so that a timer that is late by less than the other half's worth of
    /// time loses no tokens.
    instalment: u32,
    /// The first in the queue holds it; the bucket alone would let those with small wishes pass those with large ones.
    turn: Semaphore,
}

impl Limiter {
    pub(super) fn new(rate: NonZeroU32) -> Self {
        // A hundredth of a second's worth makes up for timers that are late by a millisecond or two.
        let burst = NonZeroU32::new(rate.get() / 100).unwrap_or(NonZeroU32::MIN).saturating_add(1);
        let clock = RuntimeClock(Instant::now());
        let bucket = RateLimiter::direct_with_clock(Quota::per_second(rate).allow_burst(burst), clock);
        Self { bucket, clock, instalment: burst.get().div_ceil(2), turn: Semaphore::new(1) }
    }

    /// Takes that many at once, if they are there and nobody waits.
    pub(super) fn try_take(&self, rows: u32) -> bool {
        let Ok(_turn) = self.turn.try_acquire() else { return false };
        rows <= self.instalment && self.missing(rows).is_none()
    }

    /// Waits for its turn and takes that many, in instalments where they are more than the burst.
    pub(super) async fn take(self: Arc<Self>, rows: u32) {
        let _turn = self.turn.acquire().await;
        let mut left = rows;
        while left > 0 {
            let instalment = left.min(self.instalment);
            match self.missing(instalment) {
                None => left -= instalment,
                Some(time) => tokio::time::sleep(time).await,
            }
        }
    }

    /// Takes that many, or tells how long it takes until they are there.
    fn missing(&self, rows: u32) -> Option<Duration> {
        let rows = NonZeroU32::new(rows)?;
        match self.bucket.check_n(rows) {
            Ok(taken) => taken.err().map(|wait| wait.wait_time_from(self.clock.now())),
            // More than the burst, which the callers cut off.
            Err(_) => None,
        }
    }
}

/// The time of the runtime, which a test can pause.
#[derive(Debug, Clone, Copy)]
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}
