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
use crate::endpoint::{Endpoint, Health, PerEndpoint};
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
/// [`CircuitPolicy`]. **Cost**: off, none; else a short lock at the start and at the end. **Place**: directly above the backend and
/// below the concurrency limit, so that what is refused waits for nothing; below the choice of the endpoint and the retry, which
/// then goes elsewhere or waits.
///
/// Each endpoint has a circuit of its own, and requests that have none share one. All services of a layer share its circuits.
#[derive(Debug, Clone)]
pub struct CircuitLayer {
    circuits: Option<Arc<Circuits>>,
}

#[derive(Debug)]
struct Circuits {
    policy: CircuitPolicy,
    /// For requests without an endpoint.
    common: Arc<Breaker>,
    by_endpoint: PerEndpoint<Arc<Breaker>>,
}

impl Circuits {
    fn of(&self, endpoint: Option<Endpoint>) -> &Arc<Breaker> {
        let make = |endpoint: Endpoint| Arc::new(Breaker::new(endpoint.name().into(), self.policy.clone()));
        endpoint.and_then(|endpoint| self.by_endpoint.get_or_make(endpoint, || make(endpoint))).unwrap_or(&self.common)
    }
}

impl Health for Circuits {
    fn is_well(&self, endpoint: Endpoint) -> bool {
        self.by_endpoint.get(endpoint).is_none_or(|breaker| breaker.admits())
    }
}

impl CircuitLayer {
    /// A circuit before each endpoint, and one before what has none; its name is for messages and metrics.
    pub fn new(name: impl Into<Arc<str>>, policy: CircuitPolicy) -> Self {
        let common = Arc::new(Breaker::new(name.into(), policy.clone()));
        Self { circuits: Some(Arc::new(Circuits { policy, common, by_endpoint: PerEndpoint::default() })) }
    }

    /// Always closed: for a stack whose type is the same with the circuit and without.
    pub fn off() -> Self {
        Self { circuits: None }
    }

    /// What knows which circuits are open, for the [router](crate::endpoint::Router).
    pub fn health(&self) -> Option<Arc<dyn Health>> {
        self.circuits.clone().map(|circuits| circuits as Arc<dyn Health>)
    }
}

impl<S> Layer<S> for CircuitLayer {
    type Service = Circuit<S>;

    fn layer(&self, inner: S) -> Circuit<S> {
        Circuit { inner, circuits: self.circuits.clone() }
    }
}

/// The service of [`CircuitLayer`].
#[derive(Debug, Clone)]
pub struct Circuit<S> {
    inner: S,
    circuits: Option<Arc<Circuits>>,
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
        let breaker = self.circuits.as_ref().map(|circuits| circuits.of(request.options.endpoint));
        match breaker.map(Breaker::admit).transpose() {
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
