//! Leaves an endpoint alone that fails most requests.

mod breaker;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tower::{Layer, Service};

use self::breaker::{Breaker, Ticket};
use crate::error::{Error, ErrorKind, Result};
use crate::request::Request;
use crate::response::Response;

/// When a circuit opens, and for how long.
#[derive(Debug, Clone)]
pub struct CircuitPolicy {
    share: f64,
    least: u32,
    window: Duration,
    pause: Duration,
    longest_pause: Duration,
    probes: u32,
}

impl Default for CircuitPolicy {
    /// Opens when half of at least 20 requests within 10 s failed; for 1 s, doubled up to 30 s while probes fail; closes
    /// after 3 probes that succeed.
    fn default() -> Self {
        Self {
            share: 0.5,
            least: 20,
            window: Duration::from_secs(10),
            pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(30),
            probes: 3,
        }
    }
}

impl CircuitPolicy {
    /// Opens at this share of failures, of at least so many requests within this time. Default: 0.5 of 20 within 10 s.
    #[must_use]
    pub fn opens_at(mut self, share: f64, least: u32, window: Duration) -> Self {
        self.share = share.clamp(0.0, 1.0);
        self.least = least.max(1);
        self.window = window;
        self
    }

    /// How long it stays open at first, and at the longest. Default: 1 s and 30 s.
    #[must_use]
    pub fn pauses(mut self, first: Duration, longest: Duration) -> Self {
        self.pause = first;
        self.longest_pause = longest.max(first);
        self
    }

    /// How many probes go at a time after the pause, and must succeed in a row until it closes. Default: 3.
    #[must_use]
    pub fn probes(mut self, probes: u32) -> Self {
        self.probes = probes.max(1);
        self
    }
}

/// Refuses requests to an endpoint while most of them fail, so that they fail fast and the endpoint gets air.
///
/// **Promise**: closed, everything passes. When the share of failures within a window is too high it opens: requests fail with
/// [`Unavailable`](ErrorKind::Unavailable), not applied, and nothing is sent. After a pause a few probes pass; when they succeed
/// it closes, when one fails it opens for twice as long. A failure is one that says something of the endpoint: no connection,
/// no answer, overload; a wrong request is none, and a request that was dropped says nothing. **Defaults**: off; those of
/// [`CircuitPolicy`]. **Cost**: off, none; else a short lock at the start and at the end. **Place**: one for each endpoint:
/// below the choice of the endpoint and the retry, which then goes elsewhere or waits.
///
/// Each service that the layer makes has a circuit of its own; clones of the service share it.
#[derive(Debug, Clone)]
pub struct CircuitLayer {
    policy: Option<(Arc<str>, CircuitPolicy)>,
}

impl CircuitLayer {
    /// A circuit before this endpoint; its name is for messages and metrics.
    pub fn new(endpoint: impl Into<Arc<str>>, policy: CircuitPolicy) -> Self {
        Self { policy: Some((endpoint.into(), policy)) }
    }

    /// Always closed: for a stack whose type is the same with the circuit and without.
    pub fn off() -> Self {
        Self { policy: None }
    }
}

impl<S> Layer<S> for CircuitLayer {
    type Service = Circuit<S>;

    fn layer(&self, inner: S) -> Circuit<S> {
        let breaker = self.policy.clone().map(|(endpoint, policy)| Arc::new(Breaker::new(endpoint, policy)));
        Circuit { inner, breaker }
    }
}

/// The service of [`CircuitLayer`].
#[derive(Debug, Clone)]
pub struct Circuit<S> {
    inner: S,
    breaker: Option<Arc<Breaker>>,
}

impl<S> Service<Request> for Circuit<S>
where
    S: Service<Request, Response = Response, Error = Error>,
{
    type Response = Response;
    type Error = Error;
    type Future = CircuitFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(context)
    }

    #[inline(always)]
    fn call(&mut self, request: Request) -> Self::Future {
        match self.breaker.as_ref().map(Breaker::admit).transpose() {
            Ok(ticket) => CircuitFuture { inner: Some(self.inner.call(request)), ticket, refusal: None },
            Err(refusal) => CircuitFuture { inner: None, ticket: None, refusal: Some(refusal) },
        }
    }
}

pin_project! {
    /// The answer of the service below, noted; or the refusal.
    #[derive(Debug)]
    pub struct CircuitFuture<F> {
        #[pin]
        inner: Option<F>,
        ticket: Option<Ticket>,
        refusal: Option<Error>,
    }
}

impl<F: Future<Output = Result<Response>>> Future for CircuitFuture<F> {
    type Output = Result<Response>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = match this.inner.as_pin_mut() {
            Some(inner) => ready!(inner.poll(context)),
            None => {
                Err(this.refusal.take().unwrap_or_else(|| Error::new(ErrorKind::Internal, "polled after its answer")))
            }
        };
        if let Some(ticket) = this.ticket.take() {
            ticket.note(is_failure(&answer));
        }
        Poll::Ready(answer)
    }
}

/// Whether an answer says that the endpoint isn't well. Of many rows, all must say so.
fn is_failure(answer: &Result<Response>) -> bool {
    let failed = |error: &Error| {
        matches!(
            error.kind(),
            ErrorKind::Timeout(_)
                | ErrorKind::ConnectionLost
                | ErrorKind::Unavailable
                | ErrorKind::Overloaded
                | ErrorKind::Internal
                | ErrorKind::Corrupt
        )
    };
    match answer {
        Ok(Response::Outcomes(outcomes)) => {
            !outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.as_ref().is_err_and(failed))
        }
        Ok(_) => false,
        Err(error) => failed(error),
    }
}

#[cfg(test)]
mod tests;
