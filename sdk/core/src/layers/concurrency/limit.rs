//! Permits and the queue for them.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::steering::{End, Flight, Steering};
use crate::error::{Error, ErrorKind, Outcome, Result};
use crate::layers::Autopilot;
use crate::layers::names::THROTTLING_ERRORS;
use crate::layers::waiting::Waiting;
use crate::request::{Request, RequestOptions};
use crate::response::Response;

#[derive(Debug)]
pub(super) struct Limit {
    permits: Arc<Semaphore>,
    requests: usize,
    steering: Option<Steering>,
    waiting: AtomicUsize,
    queue: usize,
}

impl Limit {
    pub(super) fn new(requests: NonZeroUsize, queue: usize) -> Self {
        let requests = requests.get().min(Semaphore::MAX_PERMITS);
        let permits = Arc::new(Semaphore::new(requests));
        Self { permits, requests, steering: None, waiting: AtomicUsize::new(0), queue }
    }

    /// A limit that the autopilot moves.
    pub(super) fn steered(autopilot: Autopilot, queue: usize) -> Self {
        let steering = Steering::new(autopilot);
        let requests = NonZeroUsize::new(steering.limit()).unwrap_or(NonZeroUsize::MIN);
        Self { steering: Some(steering), ..Self::new(requests, queue) }
    }

    pub(super) fn requests(&self) -> usize {
        self.steering.as_ref().map_or(self.requests, Steering::limit)
    }

    /// A permit for a request, if one is free.
    #[inline]
    pub(super) fn try_take(self: &Arc<Self>, request: &Request) -> Option<Permit> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        Some(self.permit(permit, request.rows(), request.options))
    }

    #[inline]
    fn permit(self: &Arc<Self>, permit: OwnedSemaphorePermit, rows: usize, options: RequestOptions) -> Permit {
        let steered = self.steering.is_some().then(|| (Arc::clone(self), Flight::new(rows, options)));
        Permit { permit, steered: steered.map(Box::new) }
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
            self.requests(),
            self.queue
        );
        Err(Error::new(ErrorKind::Overloaded, message).with_outcome(Outcome::NotApplied))
    }
}

/// The right to be under way, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    permit: OwnedSemaphorePermit,
    steered: Option<Box<(Arc<Limit>, Flight)>>,
}

impl Permit {
    /// Gives it back with the answer.
    #[inline]
    pub(super) fn answered(mut self, answer: &Result<Response>) {
        if let Some(steered) = self.steered.take() {
            let end = steered.1.answered(answer);
            self.end(&steered, Some(end));
        }
    }

    /// Notes the end while the permit is still in use; one that was taken back meanwhile isn't given back.
    #[cold]
    fn end(&mut self, (limit, flight): &(Arc<Limit>, Flight), end: Option<End>) {
        let Some(steering) = &limit.steering else { return };
        if let Some(end) = end {
            steering.note(flight, end, &limit.permits);
        }
        if steering.pay()
            && let Some(taken_back) = self.permit.split(1)
        {
            taken_back.forget();
        }
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        if let Some(steered) = self.steered.take() {
            let end = steered.1.dropped();
            self.end(&steered, end);
        }
    }
}

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
    Shut { limit: Arc<Limit>, rows: usize, options: RequestOptions },
    Waiting { limit: Arc<Limit>, waiting: Waiting<Option<Permit>> },
    Open { permit: Option<Permit> },
    Left,
}

impl Gate {
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        if let Self::Shut { limit, rows, options } = self {
            *self = match Arc::clone(&limit.permits).try_acquire_owned() {
                Ok(permit) => Self::Open { permit: Some(limit.permit(permit, *rows, *options)) },
                Err(_) => Self::wait(Arc::clone(limit), *rows, *options)?,
            };
        }
        if let Self::Waiting { limit, waiting } = self {
            let what = format_args!("one of {} permits", limit.requests());
            let permit = ready!(waiting.poll(context, what))?;
            *self = Self::Open { permit };
        }
        Poll::Ready(Ok(()))
    }

    /// The permit of a request that is under way.
    pub(super) fn leave(&mut self) -> Option<Permit> {
        match std::mem::replace(self, Self::Left) {
            Self::Open { permit } => permit,
            _ => None,
        }
    }

    fn wait(limit: Arc<Limit>, rows: usize, options: RequestOptions) -> Result<Self> {
        let (place, taker) = (limit.queue_up()?, Arc::clone(&limit));
        let wait = async move {
            let _place = place;
            // The semaphore is never closed.
            let permit = Arc::clone(&taker.permits).acquire_owned().await.ok()?;
            Some(taker.permit(permit, rows, options))
        };
        Ok(Self::Waiting { limit, waiting: Waiting::new(wait, options) })
    }
}
