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
use crate::request::RequestOptions;
use crate::response::Response;

/// How many requests may be under way at a time, of one kind: to one endpoint, or to none.
#[derive(Debug)]
pub(super) struct Limit {
    permits: Arc<Semaphore>,
    /// How many permits there are, but for those that are owed.
    size: AtomicUsize,
    /// Permits that were taken back while they were in use: so many aren't given back.
    debt: AtomicUsize,
    steering: Option<Steering>,
    /// Of which each request takes one permit more.
    whole: Option<Arc<Semaphore>>,
    waiting: AtomicUsize,
    queue: AtomicUsize,
}

impl Limit {
    pub(super) fn fixed(requests: NonZeroUsize, queue: usize) -> Self {
        let size = requests.get().min(Semaphore::MAX_PERMITS);
        Self {
            permits: Arc::new(Semaphore::new(size)),
            size: AtomicUsize::new(size),
            debt: AtomicUsize::new(0),
            steering: None,
            whole: None,
            waiting: AtomicUsize::new(0),
            queue: AtomicUsize::new(queue),
        }
    }

    /// A limit that the autopilot moves, and the node that metrics name with it.
    pub(super) fn steered(autopilot: Autopilot, queue: usize, node: &'static str) -> Self {
        let steering = Steering::new(autopilot, node);
        let requests = NonZeroUsize::new(steering.limit()).unwrap_or(NonZeroUsize::MIN);
        Self { steering: Some(steering), ..Self::fixed(requests, queue) }
    }

    /// The same as a part of a whole.
    pub(super) fn within(self, whole: Arc<Semaphore>) -> Self {
        Self { whole: Some(whole), ..self }
    }

    pub(super) fn permits(&self) -> &Arc<Semaphore> {
        &self.permits
    }

    pub(super) fn requests(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Changes a limit that nothing steers.
    pub(super) fn set(&self, requests: usize, queue: usize) {
        self.queue.store(queue, Ordering::Relaxed);
        self.resize(requests.min(Semaphore::MAX_PERMITS));
    }

    /// Changes the range of a limit that is steered.
    pub(super) fn steer(&self, autopilot: Autopilot, queue: usize) {
        self.queue.store(queue, Ordering::Relaxed);
        if let Some(steering) = &self.steering {
            steering.share(autopilot, |limit| self.resize(limit));
        }
    }

    fn resize(&self, to: usize) {
        let from = self.size.swap(to, Ordering::AcqRel);
        if to < from {
            let taken = self.permits.forget_permits(from - to);
            self.debt.fetch_add(from - to - taken, Ordering::AcqRel);
        }
        let unpaid = (from..to).filter(|_| !self.pay()).count();
        self.permits.add_permits(unpaid);
    }

    /// Whether a permit that comes back is one that was taken back.
    fn pay(&self) -> bool {
        self.debt.fetch_update(Ordering::AcqRel, Ordering::Acquire, |debt| debt.checked_sub(1)).is_ok()
    }

    /// A permit for a request, if one is free.
    #[inline]
    pub(super) fn try_take(self: &Arc<Self>, rows: usize, options: RequestOptions) -> Option<Permit> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        let whole = match &self.whole {
            Some(whole) => Some(Arc::clone(whole).try_acquire_owned().ok()?),
            None => None,
        };
        Some(self.permit(permit, whole, rows, options))
    }

    /// Waits for a permit. It has its own before it waits for one of the whole, so that those that wait for an endpoint that is slow
    /// hold up nobody else.
    async fn take(self: &Arc<Self>, rows: usize, options: RequestOptions) -> Option<Permit> {
        // The semaphores are never closed.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        let whole = match &self.whole {
            Some(whole) => Some(Arc::clone(whole).acquire_owned().await.ok()?),
            None => None,
        };
        Some(self.permit(permit, whole, rows, options))
    }

    #[inline]
    fn permit(
        self: &Arc<Self>,
        permit: OwnedSemaphorePermit,
        whole: Option<OwnedSemaphorePermit>,
        rows: usize,
        options: RequestOptions,
    ) -> Permit {
        if whole.is_none() && self.steering.is_none() {
            return Permit { permit, held: None };
        }
        let flight = self.steering.is_some().then(|| Flight::new(rows, options));
        Permit { permit, held: Some(Box::new(Held { limit: Arc::clone(self), flight, _whole: whole })) }
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
        let queue = self.queue.load(Ordering::Relaxed);
        if self.waiting.fetch_add(1, Ordering::Relaxed) < queue {
            return Ok(place);
        }
        metrics::counter!(THROTTLING_ERRORS).increment(1);
        let message = format!(
            "{} requests are under way and {queue} wait, which is the most; send less at a time, or raise the limits",
            self.requests()
        );
        Err(Error::new(ErrorKind::Overloaded, message).with_outcome(Outcome::NotApplied))
    }
}

/// The right to be under way, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    permit: OwnedSemaphorePermit,
    held: Option<Box<Held>>,
}

/// What a request holds besides, where the limit moves or is a part of a whole.
#[derive(Debug)]
struct Held {
    limit: Arc<Limit>,
    flight: Option<Flight>,
    _whole: Option<OwnedSemaphorePermit>,
}

impl Permit {
    /// Gives it back with the answer.
    #[inline]
    pub(super) fn answered(mut self, answer: &Result<Response>) {
        if let Some(held) = self.held.take() {
            let end = held.flight.as_ref().map(|flight| flight.answered(answer));
            self.end(&held, end);
        }
    }

    /// Notes the end while the permit is still in use; one that was taken back meanwhile isn't given back.
    #[cold]
    fn end(&mut self, held: &Held, end: Option<End>) {
        let Held { limit, flight, .. } = held;
        if let (Some(steering), Some(flight), Some(end)) = (&limit.steering, flight, end) {
            let in_use = limit.requests() + limit.debt.load(Ordering::Relaxed);
            let in_use = in_use.saturating_sub(limit.permits.available_permits());
            steering.note(flight, end, in_use, |size| limit.resize(size));
        }
        if limit.pay()
            && let Some(taken_back) = self.permit.split(1)
        {
            taken_back.forget();
        }
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            let end = held.flight.as_ref().and_then(Flight::dropped);
            self.end(&held, end);
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
            *self = match limit.try_take(*rows, *options) {
                Some(permit) => Self::Open { permit: Some(permit) },
                None => Self::wait(Arc::clone(limit), *rows, *options)?,
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
            taker.take(rows, options).await
        };
        Ok(Self::Waiting { limit, waiting: Waiting::new(wait, options) })
    }
}
