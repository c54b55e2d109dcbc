//! Permits and the queue for them.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Error, ErrorKind, Outcome, Result};
use crate::layers::names::THROTTLING_ERRORS;
use crate::layers::waiting::Waiting;
use crate::request::RequestOptions;

#[derive(Debug)]
pub(super) struct Limit {
    permits: Arc<Semaphore>,
    requests: usize,
    waiting: AtomicUsize,
    queue: usize,
}

impl Limit {
    pub(super) fn new(requests: NonZeroUsize, queue: usize) -> Self {
        let requests = requests.get().min(Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(requests)), requests, waiting: AtomicUsize::new(0), queue }
    }

    /// A permit, if one is free.
    pub(super) fn try_take(&self) -> Option<Permit> {
        Arc::clone(&self.permits).try_acquire_owned().ok().map(Permit)
    }

    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.permits.available_permits()
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A place in the queue, unless it is full. It is counted, not told by a semaphore that isn't ready: the runtime makes
    /// that not ready too, to be fair among tasks.
    fn queue_up(self: &Arc<Self>) -> Result<Place> {
        let place = Place(Arc::clone(self));
        if self.waiting.fetch_add(1, Ordering::Relaxed) < self.queue {
            return Ok(place);
        }
        metrics::counter!(THROTTLING_ERRORS).increment(1);
        let message = format!(
            "{} requests are under way and {} wait, which is the most; send less at a time, or raise the limits",
            self.requests, self.queue
        );
        Err(Error::new(ErrorKind::Overloaded, message).with_outcome(Outcome::NotApplied))
    }
}

/// The right to be under way, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Permit(#[expect(dead_code, reason = "kept for its drop")] OwnedSemaphorePermit);

/// A place in the queue, given back when it is dropped.
struct Place(Arc<Limit>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where a request stands.
#[derive(Debug)]
pub(super) enum Gate {
    Shut { limit: Arc<Limit>, options: RequestOptions },
    Waiting { limit: Arc<Limit>, waiting: Waiting<Option<Permit>> },
    Open { _permit: Option<Permit> },
    Left,
}

impl Gate {
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        if let Self::Shut { limit, options } = self {
            *self = match limit.try_take() {
                Some(permit) => Self::Open { _permit: Some(permit) },
                None => Self::wait(Arc::clone(limit), *options)?,
            };
        }
        if let Self::Waiting { limit, waiting } = self {
            let what = format_args!("one of {} permits", limit.requests);
            let permit = ready!(waiting.poll(context, what))?;
            *self = Self::Open { _permit: permit };
        }
        Poll::Ready(Ok(()))
    }

    fn wait(limit: Arc<Limit>, options: RequestOptions) -> Result<Self> {
        let (place, permits) = (limit.queue_up()?, Arc::clone(&limit.permits));
        let wait = async move {
            let _place = place;
            // The semaphore is never closed.
            permits.acquire_owned().await.ok().map(Permit)
        };
        Ok(Self::Waiting { limit, waiting: Waiting::new(wait, options) })
    }
}
