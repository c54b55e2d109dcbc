//! So many requests at a time, and a bounded queue behind them.

mod limit;

use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower::util::Oneshot;
use tower::{Layer, Service};

use self::limit::{Gate, Limit};
use crate::error::{Error, Result};
use crate::request::Request;
use crate::response::Response;

/// Lets at most so many requests be under way at a time, over all clones of the service; the others queue.
///
/// **Promise**: never more than the limit are below this layer. A permit is taken when the request is first polled and comes
/// back when it is answered or dropped, whichever is first. Those that wait go in the order in which they came; a full queue
/// refuses with [`Overloaded`](crate::ErrorKind::Overloaded), not applied; one whose time is over while it waits fails with
/// [`TimeoutPhase::Queue`](crate::TimeoutPhase::Queue), not applied. **Defaults**: a queue of 65 536 requests. **Cost**: off,
/// none; else some 60 ns; a box for one that waits. **Place**: below the retry, so that no pause holds a permit, and near the
/// wire, so that what it counts is what the servers see. Queueing counts as time of the attempt.
///
/// Cancel safety: a request dropped in the queue was never sent.
#[derive(Debug, Clone)]
pub struct ConcurrencyLayer {
    limit: Option<Arc<Limit>>,
}

impl ConcurrencyLayer {
    /// This many requests at a time, with a queue of 65 536.
    pub fn new(requests: NonZeroUsize) -> Self {
        Self::with_queue(requests, 65_536)
    }

    /// This many requests at a time, and at most that many behind them.
    pub fn with_queue(requests: NonZeroUsize, queue: usize) -> Self {
        Self { limit: Some(Arc::new(Limit::new(requests, queue))) }
    }

    /// Everything passes: for a stack whose type is the same with the limit and without.
    pub fn off() -> Self {
        Self { limit: None }
    }
}

impl<S> Layer<S> for ConcurrencyLayer {
    type Service = Concurrency<S>;

    fn layer(&self, inner: S) -> Concurrency<S> {
        Concurrency { inner, limit: self.limit.clone() }
    }
}

/// The service of [`ConcurrencyLayer`].
#[derive(Debug, Clone)]
pub struct Concurrency<S> {
    inner: S,
    limit: Option<Arc<Limit>>,
}

impl<S> Service<Request> for Concurrency<S>
where
    S: Service<Request, Response = Response, Error = Error> + Clone,
{
    type Response = Response;
    type Error = Error;
    type Future = ConcurrencyFuture<S>;

    /// Ready at once while there is a limit: permits belong to requests, not to services that may never call.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        if self.limit.is_some() { Poll::Ready(Ok(())) } else { self.inner.poll_ready(context) }
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let Some(limit) = &self.limit else {
            return ConcurrencyFuture::Unlimited { inner: self.inner.call(request) };
        };
        let gate = Gate::Shut { limit: Arc::clone(limit), options: request.options };
        ConcurrencyFuture::Limited { inner: Some(Oneshot::new(self.inner.clone(), request)), gate }
    }
}

pin_project! {
    /// The wait for a permit, and the answer of the service below.
    #[project = FutureProj]
    pub enum ConcurrencyFuture<S> where S: Service<Request> {
        #[doc(hidden)]
        Unlimited { #[pin] inner: S::Future },
        // What runs below is dropped before its permit.
        #[doc(hidden)]
        Limited { #[pin] inner: Option<Oneshot<S, Request>>, gate: Gate },
    }
}

impl<S> Future for ConcurrencyFuture<S>
where
    S: Service<Request, Response = Response, Error = Error>,
{
    type Output = Result<Response>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            FutureProj::Unlimited { inner } => inner.poll(context),
            FutureProj::Limited { mut inner, gate } => {
                ready!(gate.poll(context))?;
                let answer = match inner.as_mut().as_pin_mut() {
                    Some(inner) => ready!(inner.poll(context)),
                    None => Err(Error::new(crate::ErrorKind::Internal, "a request was polled after its answer")),
                };
                // An answered request gives its permit back at once, however long its future is kept.
                inner.set(None);
                *gate = Gate::Left;
                Poll::Ready(answer)
            }
        }
    }
}

#[cfg(test)]
mod tests;
