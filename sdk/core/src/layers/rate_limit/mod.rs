//! So many rows a second, and no more.

mod limiter;

use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower::util::Oneshot;
use tower::{Layer, Service};

use self::limiter::Limiter;
use super::waiting::Waiting;
use crate::error::{Error, Result};
use crate::request::{Request, RequestOptions};
use crate::response::Response;

/// Holds requests back so that at most so many [rows](Request::rows) a second pass, over all clones of the service.
///
/// **Promise**: over any time the rows that pass are at most the rate times that time and a hundredth of a second's rows (at
/// least two): no burst at the edge of a window, since there are no windows (GCRA). Requests pass in the order in which they
/// came, so many small ones don't starve a large one, and one with more rows than half the burst pays in instalments before it
/// is sent. A request whose time is over while it waits fails with [`TimeoutPhase::Queue`](crate::TimeoutPhase::Queue), not
/// applied. **Defaults**: off; right within 1 % up to ten million rows a second. **Cost**: off, none; while there are tokens,
/// a clone of the service below and two atomic operations; a box and a timer for one that waits. **Place**: above the retry,
/// so that it counts what the application asks for; the retry's own budget bounds what comes on top.
///
/// Cancel safety: a request dropped while it waits leaves its place; the instalments that it has paid are lost.
#[derive(Debug, Clone)]
pub struct RateLimitLayer {
    limiter: Option<Arc<Limiter>>,
}

impl RateLimitLayer {
    /// This many rows a second.
    pub fn new(rows_per_second: NonZeroU32) -> Self {
        Self { limiter: Some(Arc::new(Limiter::new(rows_per_second))) }
    }

    /// Everything passes: for a stack whose type is the same with the limit and without.
    pub fn off() -> Self {
        Self { limiter: None }
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimit<S>;

    fn layer(&self, inner: S) -> RateLimit<S> {
        RateLimit { inner, limiter: self.limiter.clone() }
    }
}

/// The service of [`RateLimitLayer`].
#[derive(Debug, Clone)]
pub struct RateLimit<S> {
    inner: S,
    limiter: Option<Arc<Limiter>>,
}

impl<S> Service<Request> for RateLimit<S>
where
    S: Service<Request, Response = Response, Error = Error> + Clone,
{
    type Response = Response;
    type Error = Error;
    type Future = RateLimitFuture<S>;

    /// Ready at once while there is a limit: nothing below is reserved for a request that waits.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        if self.limiter.is_some() { Poll::Ready(Ok(())) } else { self.inner.poll_ready(context) }
    }

    #[inline(always)]
    fn call(&mut self, request: Request) -> Self::Future {
        let Some(limiter) = &self.limiter else {
            return RateLimitFuture::Unlimited { inner: self.inner.call(request) };
        };
        let gate = Gate::Shut { limiter: Arc::clone(limiter), rows: request.rows(), options: request.options };
        RateLimitFuture::Limited {
            limited: Box::pin(Limited { gate, inner: Oneshot::new(self.inner.clone(), request) }),
        }
    }
}

#[derive(Debug)]
enum Gate {
    Shut { limiter: Arc<Limiter>, rows: usize, options: RequestOptions },
    Waiting(Waiting<()>),
    Open,
}

impl Gate {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        if let Self::Shut { limiter, rows, options } = self {
            let rows = u32::try_from(*rows).unwrap_or(u32::MAX);
            if limiter.try_take(rows) {
                *self = Self::Open;
            } else {
                *self = Self::Waiting(Waiting::new(Arc::clone(limiter).take(rows), *options));
            }
        }
        if let Self::Waiting(waiting) = self {
            ready!(waiting.poll(context, format_args!("the rate limit")))?;
            *self = Self::Open;
        }
        Poll::Ready(Ok(()))
    }
}

pin_project! {
    struct Limited<S> where S: Service<Request> {
        gate: Gate,
        #[pin]
        inner: Oneshot<S, Request>,
    }
}

pin_project! {
    /// The wait for the rate, and the answer of the service below.
    #[project = FutureProj]
    pub enum RateLimitFuture<S> where S: Service<Request> {
        #[doc(hidden)]
        Unlimited { #[pin] inner: S::Future },
        // In a box, so that the future is no larger for those without a limit.
        #[doc(hidden)]
        Limited { limited: Pin<Box<Limited<S>>> },
    }
}

impl<S> Future for RateLimitFuture<S>
where
    S: Service<Request, Response = Response, Error = Error>,
{
    type Output = Result<Response>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            FutureProj::Unlimited { inner } => inner.poll(context),
            FutureProj::Limited { limited } => {
                let limited = limited.as_mut().project();
                ready!(limited.gate.poll(context))?;
                limited.inner.poll(context)
            }
        }
    }
}

#[cfg(test)]
mod tests;
