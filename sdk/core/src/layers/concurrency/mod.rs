//! So many requests at a time, and a bounded queue behind them.

mod limit;
mod limits;
mod steering;

use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower::util::Oneshot;
use tower::{Layer, Service};

use self::limit::{Gate, Permit};
use self::limits::Limits;
use super::Autopilot;
use crate::endpoint::Router;
use crate::error::{Error, ErrorKind, Result};
use crate::request::Request;
use crate::response::Response;

/// Lets at most so many requests be under way at a time, over all clones of the service; the others queue.
///
/// **Promise**: never more than the limit are below this layer. A request takes a permit when it is made, or queues for one
/// when it is first polled; the permit comes back when it is answered or dropped, whichever is first. Those that wait go in the
/// order in which they came; a full queue refuses with [`Overloaded`](crate::ErrorKind::Overloaded), not applied; one whose time
/// is over while it waits fails with [`TimeoutPhase::Queue`](crate::TimeoutPhase::Queue), not applied. Of several
/// [endpoints](crate::Endpoint) each has a queue of its own and at most almost twice its even share of the permits: of three, half
/// of them. So one that is slow or hangs never takes all, and none is idle while some have more to do than others. The autopilot
/// finds a limit for each endpoint, from its even share on; requests without an endpoint have one too. **Defaults**: a queue of
/// 65 536 requests, divided evenly. **Cost**: off, none; else some 40 ns; a box for one that waits. With the autopilot, or with
/// several endpoints, a box and a short lock for each. **Place**: below the retry, so that no pause holds a permit, and near the
/// wire, so that what it counts is what the servers see. Queueing counts as time of the attempt.
///
/// Cancel safety: a request dropped in the queue was never sent.
#[derive(Debug, Clone)]
pub struct ConcurrencyLayer {
    limits: Option<Arc<Limits>>,
}

impl ConcurrencyLayer {
    /// This many requests at a time, with a queue of 65 536.
    pub fn new(requests: NonZeroUsize) -> Self {
        Self::with_queue(requests, 65_536)
    }

    /// This many requests at a time, and at most that many behind them.
    pub fn with_queue(requests: NonZeroUsize, queue: usize) -> Self {
        Self { limits: Some(Arc::new(Limits::fixed(requests, queue))) }
    }

    /// As many as the [autopilot](Autopilot) finds to be worth it, with a queue of 65 536.
    pub fn autopilot(autopilot: Autopilot) -> Self {
        Self { limits: Some(Arc::new(Limits::steered(autopilot, 65_536))) }
    }

    /// Shares are those of the endpoints that this router knows, from the first request on.
    #[must_use]
    pub fn routed(self, router: &Router) -> Self {
        Self { limits: self.limits.map(|limits| Arc::new(limits.routed(router.clone()))) }
    }

    /// Everything passes: for a stack whose type is the same with the limit and without.
    pub fn off() -> Self {
        Self { limits: None }
    }
}

impl<S> Layer<S> for ConcurrencyLayer {
    type Service = Concurrency<S>;

    fn layer(&self, inner: S) -> Concurrency<S> {
        Concurrency { inner, limits: self.limits.clone() }
    }
}

/// The service of [`ConcurrencyLayer`].
#[derive(Debug, Clone)]
pub struct Concurrency<S> {
    inner: S,
    limits: Option<Arc<Limits>>,
}

impl<S> Service<Request> for Concurrency<S>
where
    S: Service<Request, Response = Response, Error = Error> + Clone,
{
    type Response = Response;
    type Error = Error;
    type Future = ConcurrencyFuture<S>;

    /// As the service below: permits belong to requests, not to services that may never call.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(context)
    }

    #[inline(always)]
    fn call(&mut self, request: Request) -> Self::Future {
        let limit = self.limits.as_ref().map(|limits| limits.of(request.options.endpoint));
        let permit = match limit {
            None => None,
            Some(limit) => match limit.try_take(request.rows(), request.options) {
                Some(permit) => Some(permit),
                None => {
                    let gate = Gate::Shut { limit: Arc::clone(limit), rows: request.rows(), options: request.options };
                    // Not the service that is ready: this one is asked when its turn comes, so it reserves nothing until then.
                    let inner = Some(Oneshot::new(self.inner.clone(), request));
                    return ConcurrencyFuture::Queued { queued: Box::pin(Queued { inner, gate }) };
                }
            },
        };
        ConcurrencyFuture::Running { inner: Some(self.inner.call(request)), permit }
    }
}

pin_project! {
    // What runs below is dropped before its permit.
    struct Queued<S> where S: Service<Request> {
        #[pin]
        inner: Option<Oneshot<S, Request>>,
        gate: Gate,
    }
}

pin_project! {
    /// The wait for a permit, and the answer of the service below.
    #[project = FutureProj]
    pub enum ConcurrencyFuture<S> where S: Service<Request> {
        #[doc(hidden)]
        Running { #[pin] inner: Option<S::Future>, permit: Option<Permit> },
        #[doc(hidden)]
        Queued { queued: Pin<Box<Queued<S>>> },
    }
}

impl<S> Future for ConcurrencyFuture<S>
where
    S: Service<Request, Response = Response, Error = Error>,
{
    type Output = Result<Response>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // An answered request gives its permit back at once, however long its future is kept.
        match self.project() {
            FutureProj::Running { mut inner, permit } => {
                let answer = ready!(poll_some(inner.as_mut(), context));
                inner.set(None);
                if let Some(permit) = permit.take() {
                    permit.answered(&answer);
                }
                Poll::Ready(answer)
            }
            FutureProj::Queued { queued } => {
                let mut queued = queued.as_mut().project();
                ready!(queued.gate.poll(context))?;
                let answer = ready!(poll_some(queued.inner.as_mut(), context));
                queued.inner.set(None);
                if let Some(permit) = queued.gate.leave() {
                    permit.answered(&answer);
                }
                Poll::Ready(answer)
            }
        }
    }
}

fn poll_some<F>(inner: Pin<&mut Option<F>>, context: &mut Context<'_>) -> Poll<Result<Response>>
where
    F: Future<Output = Result<Response>>,
{
    match inner.as_pin_mut() {
        Some(inner) => inner.poll(context),
        None => Poll::Ready(Err(Error::new(ErrorKind::Internal, "a request was polled after its answer"))),
    }
}

#[cfg(test)]
mod tests;
