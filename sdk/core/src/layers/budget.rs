//! How much work a client may add of its own accord.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A token is a thousand of these.
const TOKEN: u64 = 1_000;

/// Bounds the requests that a client adds to those it was asked for: retries, hedges.
///
/// A bucket of tokens, full at the start, as in gRPC's retry throttling (gRFC A6): each extra request takes a token, each
/// success puts a share of one back. So over any time the extra requests are at most the reserve and that share of the
/// successes, and an outage soon ends them, whatever the load. Clones share the bucket. Cost while it is full: one load.
#[derive(Debug, Clone)]
pub struct Budget {
    bucket: Arc<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    tokens: AtomicU64,
    capacity: u64,
    deposit: u64,
}

impl Budget {
    /// So many extra requests at first, and this share of the successes later, in steps of a thousandth: 0.1 is one in ten.
    pub fn new(reserve: u32, share: f64) -> Self {
        let capacity = u64::from(reserve) * TOKEN;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 1000 after the clamp"
        )]
        let deposit = (share.clamp(0.0, 1.0) * 1_000.0).round() as u64;
        Self { bucket: Arc::new(Bucket { tokens: AtomicU64::new(capacity), capacity, deposit }) }
    }

    /// Notes a success.
    pub fn deposit(&self) {
        let Bucket { tokens, capacity, deposit } = &*self.bucket;
        if tokens.load(Ordering::Relaxed) < *capacity {
            let add = |tokens: u64| Some((tokens + deposit).min(*capacity));
            let _ = tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        }
    }

    /// Takes a token for an extra request, if there is one.
    #[must_use]
    pub fn withdraw(&self) -> bool {
        let take = |tokens: u64| tokens.checked_sub(TOKEN);
        self.bucket.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// How many extra requests it allows now.
    pub fn left(&self) -> u64 {
        self.bucket.tokens.load(Ordering::Relaxed) / TOKEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_gives_the_reserve_and_then_a_share_of_the_successes() {
        let budget = Budget::new(5, 0.1);
        let clone = budget.clone();
        assert_eq!((0..9).filter(|_| clone.withdraw()).count(), 5);
        (0..29).for_each(|_| budget.deposit());
        assert_eq!((0..9).filter(|_| clone.withdraw()).count(), 2);
    }

    #[test]
    fn it_never_holds_more_than_the_reserve() {
        let budget = Budget::new(2, 1.0);
        (0..100).for_each(|_| budget.deposit());
        assert_eq!(budget.left(), 2);
        assert!(!Budget::new(0, 0.0).withdraw());
    }
}
