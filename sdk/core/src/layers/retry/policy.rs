//! When, how often, and after which pause a request is sent again.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Outcome, Retry, TimeoutPhase};
use crate::layers::Budget;

/// When a failed request is sent again. Clones share the budget.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    attempts: u32,
    base: Duration,
    cap: Duration,
    budget: Budget,
}

impl Default for RetryPolicy {
    /// Up to 4 attempts, pauses of up to 20, 40 and 80 ms, and a budget of 100 retries and one more for every ten successes.
    fn default() -> Self {
        Self {
            attempts: 4,
            base: Duration::from_millis(20),
            cap: Duration::from_secs(2),
            budget: Budget::new(100, 0.1),
        }
    }
}

impl RetryPolicy {
    /// How often a request is sent at most, the first time included; 1 is never again. Default: 4.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// The longest pause before the second attempt, doubled for each one after it, and where the doubling ends. Default: 20 ms
    /// and 2 s. The pause is drawn evenly from nothing to that ("full jitter"), so that clients that failed together don't
    /// come back together.
    #[must_use]
    pub fn pauses(mut self, base: Duration, cap: Duration) -> Self {
        self.base = base;
        self.cap = cap;
        self
    }

    /// What bounds retries over all requests; give clients of one database clones of one budget. Default: 100 retries, and one
    /// more for every ten successes.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    pub(super) fn most_attempts(&self) -> u32 {
        self.attempts
    }

    pub(super) fn bucket(&self) -> &Budget {
        &self.budget
    }

    /// The pause after so many attempts.
    pub(super) fn pause(&self, sent: u32) -> Duration {
        let factor = 1_u32.checked_shl(sent.saturating_sub(1)).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.cap).mul_f64(fastrand::f64())
    }
}

/// Whether a request that failed so may be sent again: it may help, and can't apply a write twice.
pub(super) fn is_allowed(error: &Error, idempotent: bool) -> bool {
    error.retry() == Retry::Later
        && error.kind() != ErrorKind::Timeout(TimeoutPhase::Deadline)
        && (idempotent || error.outcome() == Outcome::NotApplied)
}

/// Whether another endpoint may do what this one didn't. Where too many write one row, they do so everywhere.
pub(super) fn leads_elsewhere(error: &Error) -> bool {
    error.kind() != ErrorKind::Throttled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_cap_and_spread_over_all_of_it() {
        let policy = RetryPolicy::default().pauses(Duration::from_millis(10), Duration::from_millis(35));
        for (sent, longest) in [(1, 10), (2, 20), (3, 35), (40, 35), (u32::MAX, 35)] {
            let longest = Duration::from_millis(longest);
            let pauses: Vec<_> = (0..400).map(|_| policy.pause(sent)).collect();
            assert!(pauses.iter().all(|pause| *pause <= longest));
            assert!(pauses.iter().any(|pause| *pause < longest / 5));
            assert!(pauses.iter().any(|pause| *pause > longest / 5 * 4));
        }
    }

    #[test]
    fn only_what_may_help_and_cannot_apply_twice_is_allowed() {
        let unknown = Error::new(ErrorKind::ConnectionLost, "");
        let refused = Error::new(ErrorKind::Unavailable, "");
        assert!(is_allowed(&unknown, true) && !is_allowed(&unknown, false));
        assert!(is_allowed(&refused, true) && is_allowed(&refused, false));
        let never = [ErrorKind::NotFound, ErrorKind::TooLarge, ErrorKind::InvalidArgument, ErrorKind::SchemaMismatch];
        assert!(never.into_iter().all(|kind| !is_allowed(&Error::new(kind, ""), true)));
        assert!(!is_allowed(&Error::new(ErrorKind::Timeout(TimeoutPhase::Deadline), ""), true));
    }
}
