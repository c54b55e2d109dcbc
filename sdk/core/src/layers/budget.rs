//! How much work a client may add of its own accord.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::endpoint::{Endpoint, PerEndpoint};

/// A token is a thousand of these.
const TOKEN: u64 = 1_000;

/// Bounds the requests that a client adds to those it was asked for: retries, hedges.
///
/// A bucket of tokens, full at the start, as in gRPC's retry throttling (gRFC A6): each extra request takes a token, each
/// success puts a share of one back. So over any time the extra requests are at most the reserve and that share of the
/// successes, and an outage soon ends them, whatever the load. Each endpoint has a bucket of its own, so that one that fails
/// spends no other's, and requests that have none share one. Clones share the buckets. Cost while a bucket is full: one load.
#[derive(Debug, Clone)]
pub struct Budget {
    buckets: Arc<Buckets>,
}

#[derive(Debug)]
struct Buckets {
    /// For requests without an endpoint.
    common: AtomicU64,
    by_endpoint: PerEndpoint<AtomicU64>,
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
        let common = AtomicU64::new(capacity);
        Self { buckets: Arc::new(Buckets { common, by_endpoint: PerEndpoint::default(), capacity, deposit }) }
    }

    fn bucket(&self, endpoint: Option<Endpoint>) -> &AtomicU64 {
        let Buckets { common, by_endpoint, capacity, .. } = &*self.buckets;
        endpoint.and_then(|one| by_endpoint.get_or_make(one, || AtomicU64::new(*capacity))).unwrap_or(common)
    }

    /// Notes a success of this endpoint.
    #[inline]
    pub fn deposit(&self, endpoint: Option<Endpoint>) {
        let Buckets { capacity, deposit, .. } = &*self.buckets;
        let bucket = self.bucket(endpoint);
        if bucket.load(Ordering::Relaxed) < *capacity {
            let add = |tokens: u64| Some((tokens + deposit).min(*capacity));
            let _ = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        }
    }

    /// Takes a token for a request that is made because of this endpoint, if there is one.
    #[must_use]
    pub fn withdraw(&self, endpoint: Option<Endpoint>) -> bool {
        let take = |tokens: u64| tokens.checked_sub(TOKEN);
        self.bucket(endpoint).fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// How many extra requests it allows now because of this endpoint.
    pub fn left(&self, endpoint: Option<Endpoint>) -> u64 {
        self.bucket(endpoint).load(Ordering::Relaxed) / TOKEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_gives_the_reserve_and_then_a_share_of_the_successes() {
        let budget = Budget::new(5, 0.1);
        let clone = budget.clone();
        assert_eq!((0..9).filter(|_| clone.withdraw(None)).count(), 5);
        (0..29).for_each(|_| budget.deposit(None));
        assert_eq!((0..9).filter(|_| clone.withdraw(None)).count(), 2);
    }

    #[test]
    fn it_never_holds_more_than_the_reserve() {
        let budget = Budget::new(2, 1.0);
        (0..100).for_each(|_| budget.deposit(None));
        assert_eq!(budget.left(None), 2);
        assert!(!Budget::new(0, 0.0).withdraw(None));
    }

    #[test]
    fn an_endpoint_spends_and_fills_its_own_bucket() {
        let [one, two] = ["of budget 1", "of budget 2"].map(|name| Some(Endpoint::named(name)));
        let budget = Budget::new(3, 1.0);
        assert_eq!((0..9).filter(|_| budget.withdraw(one)).count(), 3);
        budget.deposit(two);
        assert_eq!([one, two, None].map(|endpoint| budget.left(endpoint)), [0, 3, 3]);
        budget.deposit(one);
        assert_eq!(budget.left(one), 1);
    }
}
