//! Time: the system's, or a test's.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::model::WriteTime;

/// Tells the time of day: the system's, or one that a test moves by hand.
#[derive(Debug, Clone, Default)]
pub struct Clock(Option<Arc<AtomicI64>>);

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self(None)
    }

    /// A clock that stands at this many microseconds since 1970 until it is [advanced](Self::advance).
    pub fn manual(micros: i64) -> Self {
        Self(Some(Arc::new(AtomicI64::new(micros))))
    }

    /// Moves a manual clock forward, for all its clones; a system clock goes its own way.
    pub fn advance(&self, by: Duration) {
        if let Some(micros) = &self.0 {
            micros.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
        }
    }

    /// Microseconds since 1970-01-01 UTC.
    pub fn micros(&self) -> i64 {
        match &self.0 {
            Some(micros) => micros.load(Ordering::Relaxed),
            None => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
            }
        }
    }

    /// Whole seconds since 1970-01-01 UTC, the unit of expiry.
    pub fn seconds(&self) -> i64 {
        self.micros().div_euclid(1_000_000)
    }
}

/// Gives write times that strictly increase, even when the clock stands still or goes back.
#[derive(Debug, Clone)]
pub struct WriteClock {
    clock: Clock,
    last: Arc<AtomicI64>,
}

impl WriteClock {
    /// Write times from this clock.
    pub fn new(clock: Clock) -> Self {
        Self { clock, last: Arc::new(AtomicI64::new(0)) }
    }

    /// The next write time: now, or 2 µs behind the last one, which leaves room for the delete half of a replace.
    pub fn next(&self) -> WriteTime {
        self.many(1).next().unwrap_or(WriteTime::MIN)
    }

    /// So many write times, each as [`next`](Self::next) would give it while the clock stands still: for one look at the clock.
    pub fn many(&self, count: u32) -> impl Iterator<Item = WriteTime> + use<> {
        let now = self.clock.micros().max(1);
        let span = 2 * i64::from(count.max(1) - 1);
        let first = |last: i64| now.max(last.saturating_add(2));
        let advance = |last: i64| Some(first(last).saturating_add(span));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance).unwrap_or_else(|last| last);
        let first = first(last);
        (0..i64::from(count)).map(move |place| WriteTime::from_micros(first + 2 * place).unwrap_or(WriteTime::MIN))
    }

    /// The clock below.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_times_rise_while_the_clock_stands_still() {
        let clock = Clock::manual(1_000);
        let writes = WriteClock::new(clock.clone());
        let times: Vec<i64> = (0..3).map(|_| writes.next().as_micros()).collect();
        assert_eq!(times, [1_000, 1_002, 1_004]);
        let many: Vec<i64> = writes.many(3).map(WriteTime::as_micros).collect();
        assert_eq!(many, [1_006, 1_008, 1_010]);
        assert_eq!(writes.next().as_micros(), 1_012);
        clock.advance(Duration::from_millis(1));
        assert_eq!(writes.clone().next().as_micros(), 2_000);
    }
}
