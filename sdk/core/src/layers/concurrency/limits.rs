//! The limit of each endpoint, and the one of them all.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use super::limit::Limit;
use crate::endpoint::{Endpoint, PerEndpoint, Router};
use crate::layers::Autopilot;

/// How many requests may be under way: in all, and of those for each endpoint.
#[derive(Debug)]
pub(super) struct Limits {
    /// For requests that have no endpoint.
    common: Arc<Limit>,
    by_endpoint: PerEndpoint<Arc<Limit>>,
    most: Most,
    queue: usize,
    /// Taken by requests that have an endpoint, besides that endpoint's own permit.
    whole: Arc<Semaphore>,
    /// Tells how many endpoints there are, before there were requests to all of them.
    router: Option<Router>,
    /// Held while limits are added and shares change.
    growth: Mutex<()>,
}

#[derive(Debug, Clone, Copy)]
enum Most {
    Fixed(NonZeroUsize),
    Steered(Autopilot),
}

impl Limits {
    pub(super) fn fixed(requests: NonZeroUsize, queue: usize) -> Self {
        let common = Arc::new(Limit::fixed(requests, queue));
        let whole = Arc::clone(common.permits());
        Self::new(common, Most::Fixed(requests), queue, whole)
    }

    /// Limits that the autopilot moves.
    pub(super) fn steered(autopilot: Autopilot, queue: usize) -> Self {
        let whole = Arc::new(Semaphore::new(autopilot.most().get().min(Semaphore::MAX_PERMITS)));
        Self::new(Arc::new(Limit::steered(autopilot, queue, "")), Most::Steered(autopilot), queue, whole)
    }

    fn new(common: Arc<Limit>, most: Most, queue: usize, whole: Arc<Semaphore>) -> Self {
        let (by_endpoint, growth) = (PerEndpoint::default(), Mutex::default());
        Self { common, by_endpoint, most, queue, whole, router: None, growth }
    }

    /// The same limits, unused, for the endpoints of this router.
    pub(super) fn routed(&self, router: Router) -> Self {
        let limits = match self.most {
            Most::Fixed(requests) => Self::fixed(requests, self.queue),
            Most::Steered(autopilot) => Self::steered(autopilot, self.queue),
        };
        Self { router: Some(router), ..limits }
    }

    /// The limit of this endpoint, or of the requests that have none.
    #[inline]
    pub(super) fn of(&self, endpoint: Option<Endpoint>) -> &Arc<Limit> {
        let Some(endpoint) = endpoint else { return &self.common };
        self.by_endpoint.get(endpoint).unwrap_or_else(|| self.add(endpoint))
    }

    /// A new endpoint: the others' shares become smaller.
    #[cold]
    fn add(&self, endpoint: Endpoint) -> &Arc<Limit> {
        let _growth = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = self.by_endpoint.get(endpoint) {
            return found;
        }
        let known = self.router.as_ref().map_or(1, Router::endpoint_count);
        let endpoints = known.max(self.by_endpoint.iter().count() + 1);
        let queue = self.queue.div_ceil(endpoints);
        let make = || {
            let limit = match self.most {
                Most::Fixed(requests) => Limit::fixed(share(requests, endpoints), queue),
                Most::Steered(autopilot) => Limit::steered(shared(autopilot, endpoints), queue, endpoint.name()),
            };
            Arc::new(limit.within(Arc::clone(&self.whole)))
        };
        let added = self.by_endpoint.get_or_make(endpoint, make);
        for limit in self.by_endpoint.iter() {
            match self.most {
                Most::Fixed(requests) => limit.set(share(requests, endpoints).get(), queue),
                Most::Steered(autopilot) => limit.steer(shared(autopilot, endpoints), queue),
            }
        }
        added.unwrap_or(&self.common)
    }
}

/// How many of these requests one of so many endpoints may have: almost twice its even share, so that no permit is idle while some
/// endpoint has more to do than others, and one that hangs still leaves half of them all or more.
fn share(requests: NonZeroUsize, endpoints: usize) -> NonZeroUsize {
    let share = (2 * requests.get()).div_ceil(endpoints + 1).min(requests.get());
    NonZeroUsize::new(share).unwrap_or(NonZeroUsize::MIN)
}

/// The autopilot of one of so many endpoints: it starts from the even share, and ends at [`share`] of the most.
fn shared(autopilot: Autopilot, endpoints: usize) -> Autopilot {
    let (start, least) = (autopilot.first() / endpoints, autopilot.least() / endpoints);
    autopilot.start(start.max(1)).range(least, share(autopilot.most(), endpoints).get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(requests: usize, endpoints: usize) -> usize {
        share(NonZeroUsize::new(requests).unwrap(), endpoints).get()
    }

    #[test]
    fn a_share_is_the_whole_for_one_and_leaves_half_to_the_others() {
        assert_eq!([1, 2, 3, 9].map(|endpoints| of(1_024, endpoints)), [1_024, 683, 512, 205]);
        assert_eq!([of(1, 3), of(2, 3), of(3, 3)], [1, 1, 2]);
    }

    #[test]
    fn autopilots_start_from_even_shares() {
        let autopilot = shared(Autopilot::default().start(90).range(6, 300), 3);
        assert_eq!((autopilot.first(), autopilot.least(), autopilot.most().get()), (30, 2, 150));
    }
}
