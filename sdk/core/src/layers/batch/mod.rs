//! Joins what many callers do at the same time.

mod group;
mod join;
mod queues;

use std::fmt;
use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower::{Layer, Service};

use self::group::Caps;
use self::queues::{Queues, Slot, Ticket};
use crate::backend::Backend;
use crate::error::{Error, ErrorKind, Result};
use crate::grouping::Grouping;
use crate::request::Request;
use crate::response::Response;

/// Joins puts and deletes of single rows, and gets, that callers make at the same time, into requests of many rows.
///
/// **Promise**: while few requests of a group are under way each goes at once, as it is: nobody lingers. What comes while the
/// wire is busy queues up, and goes as one request when one before it is answered, so requests grow by themselves with the
/// load. A group has one [partition or owner](Grouping), endpoint, table, direction, projection, consistency and limit of attempts:
/// what differs in these is never joined, and neither are two writes of one row (each keeps its write time), increments,
/// conditional writes and deletes of partitions. Every caller gets the outcome of its own row. A row that makes a server refuse
/// the whole is found by halves, and the others are written. What a caller gave up before it was sent isn't sent; one whose
/// time is over fails with [`TimeoutPhase::Queue`](crate::TimeoutPhase::Queue), not applied; the request runs as long as the
/// most patient of its callers. **Defaults**: off; requests of at most 64 rows, within the backend's limits of bytes and rows;
/// before callers queue, 4 requests under way for an owner, 1 for a partition. **Cost**: off, none; else the row's key
/// encoded and a short lock; for what is joined a copy of the mutation, and a task for each request under way. **Place**: below
/// the retry, so that each caller's row is sent again by itself; above the concurrency limit, so that a joined request takes
/// one permit.
///
/// Cancel safety: a request dropped in the queue was never sent; one dropped later is sent whole, with those it was joined to.
#[derive(Debug, Clone)]
pub struct BatchLayer {
    setting: Option<Arc<Setting>>,
}

#[derive(Debug, Clone)]
struct Setting {
    grouping: Grouping,
    backend: Arc<dyn Backend>,
    caps: Caps,
    under_way: usize,
}

impl BatchLayer {
    /// Joins by this grouping, in the topology of this backend; [`Grouping::Off`] joins nothing.
    pub fn new(grouping: Grouping, backend: Arc<dyn Backend>) -> Self {
        let under_way = match grouping {
            Grouping::Off => return Self::off(),
            Grouping::Partition => 1,
            Grouping::Owner => 4,
        };
        let limits = backend.capabilities().limits();
        let caps = Caps { rows: 64.min(limits.batch_rows), bytes: limits.batch_bytes, partitions: usize::MAX };
        Self { setting: Some(Arc::new(Setting { grouping, backend, caps, under_way })) }
    }

    /// Nothing is joined: for a stack whose type is the same with batching and without.
    pub fn off() -> Self {
        Self { setting: None }
    }

    fn with(mut self, change: impl FnOnce(&mut Setting)) -> Self {
        if let Some(setting) = &mut self.setting {
            change(Arc::make_mut(setting));
        }
        self
    }

    /// At most so many rows in a request, within the backend's limit; default 64.
    #[must_use]
    pub fn rows(self, rows: NonZeroUsize) -> Self {
        self.with(|setting| setting.caps.rows = rows.get().min(setting.backend.capabilities().limits().batch_rows))
    }

    /// At most so many bytes of rows in a request; default: the backend's limit. A larger row travels alone.
    #[must_use]
    pub fn bytes(self, bytes: NonZeroUsize) -> Self {
        self.with(|setting| setting.caps.bytes = bytes.get())
    }

    /// At most so many partitions in a request; default: no limit.
    #[must_use]
    pub fn partitions(self, partitions: NonZeroUsize) -> Self {
        self.with(|setting| setting.caps.partitions = partitions.get())
    }

    /// How many requests of a group are under way before callers queue; default: 4 by owner, 1 by partition.
    #[must_use]
    pub fn under_way(self, requests: NonZeroUsize) -> Self {
        self.with(|setting| setting.under_way = requests.get())
    }
}

/// What can be below: a service whose requests run in tasks of their own.
pub trait Inner: Service<Request, Response = Response, Error = Error, Future: Send> + Clone + Send + 'static {}

impl<S> Inner for S where S: Service<Request, Response = Response, Error = Error, Future: Send> + Clone + Send + 'static {}

impl<S: Inner> Layer<S> for BatchLayer {
    type Service = Batch<S>;

    fn layer(&self, inner: S) -> Batch<S> {
        let queues = self.setting.as_ref().map(|setting| Queues::new(Arc::clone(setting), inner.clone()));
        Batch { inner, queues }
    }
}

/// The service of [`BatchLayer`]. Clones share their queues.
#[derive(Clone)]
pub struct Batch<S: Inner> {
    inner: S,
    queues: Option<Arc<Queues<S>>>,
}

impl<S: Inner + fmt::Debug> fmt::Debug for Batch<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("inner", &self.inner).field("is_on", &self.queues.is_some()).finish()
    }
}

impl<S: Inner> Service<Request> for Batch<S> {
    type Response = Response;
    type Error = Error;
    type Future = BatchFuture<S>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(context)
    }

    #[inline(always)]
    fn call(&mut self, request: Request) -> Self::Future {
        let Some(queues) = &self.queues else {
            return BatchFuture::Sent { inner: Some(self.inner.call(request)), slot: None };
        };
        match queues.admit(request) {
            Ok((request, slot)) => BatchFuture::Sent { inner: Some(self.inner.call(request)), slot },
            Err(ticket) => BatchFuture::Queued { ticket },
        }
    }
}

pin_project! {
    /// The answer of the service below, or the caller's part of it.
    #[project = FutureProj]
    pub enum BatchFuture<S> where S: Inner {
        #[doc(hidden)]
        Sent { #[pin] inner: Option<S::Future>, slot: Option<Slot<S>> },
        #[doc(hidden)]
        Queued { ticket: Ticket },
    }
}

impl<S: Inner> fmt::Debug for BatchFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchFuture").finish_non_exhaustive()
    }
}

impl<S: Inner> Future for BatchFuture<S> {
    type Output = Result<Response>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            FutureProj::Sent { mut inner, slot } => {
                let Some(call) = inner.as_mut().as_pin_mut() else {
                    return Poll::Ready(Err(Error::new(ErrorKind::Internal, "a request was polled after its answer")));
                };
                let answer = ready!(call.poll(context));
                inner.set(None);
                *slot = None;
                Poll::Ready(answer)
            }
            FutureProj::Queued { ticket } => ticket.poll(context),
        }
    }
}

#[cfg(test)]
mod tests;
