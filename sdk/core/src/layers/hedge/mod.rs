//! A second try for reads that are slow.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower::util::Oneshot;
use tower::{Layer, Service};

use super::Budget;
use super::names::HEDGES;
use crate::endpoint::{Endpoint, Router};
use crate::error::{Error, Result};
use crate::request::{Action, Request};
use crate::response::Response;
use crate::timer::Timer;

/// Sends a read a second time if the first answer takes long, and gives whichever succeeds first.
///
/// **Promise**: reads only, whatever the options: a write is never sent twice by this layer. The second is sent once, after the
/// delay, to another endpoint if one is known, and only if the budget has a token for it; the one that lost is dropped. An error before the delay is the answer;
/// after it, the error of one waits for the other. **Defaults**: off; a budget of 100 and one more for every twenty reads.
/// **Cost**: off, none; for reads a clone of the request and of the service below, and a timer for those that don't end at once.
/// **Place**: inside the limit of one attempt, above the concurrency limit, so that a second read takes a permit of its own.
/// A delay near the 95th percentile of the latency adds some 5 % of load and cuts the tail.
#[derive(Debug, Clone)]
pub struct HedgeLayer {
    hedge: Option<Arc<Hedge>>,
}

#[derive(Debug)]
struct Hedge {
    delay: Duration,
    budget: Budget,
    router: Option<Router>,
}

impl HedgeLayer {
    /// A second read after this delay, with the default budget.
    pub fn new(delay: Duration) -> Self {
        Self::with_budget(delay, Budget::new(100, 0.05))
    }

    /// A second read after this delay, with a budget of one's own.
    pub fn with_budget(delay: Duration, budget: Budget) -> Self {
        Self { hedge: Some(Arc::new(Hedge { delay, budget, router: None })) }
    }

    /// The second read goes to another endpoint, if this router knows one.
    #[must_use]
    pub fn routed(self, router: &Router) -> Self {
        let add = |hedge: Arc<Hedge>| {
            Arc::new(Hedge { delay: hedge.delay, budget: hedge.budget.clone(), router: Some(router.clone()) })
        };
        Self { hedge: self.hedge.map(add) }
    }

    /// Nothing is sent twice: for a stack whose type is the same with hedging and without.
    pub fn off() -> Self {
        Self { hedge: None }
    }
}

impl<S> Layer<S> for HedgeLayer {
    type Service = Hedged<S>;

    fn layer(&self, inner: S) -> Hedged<S> {
        Hedged { inner, hedge: self.hedge.clone() }
    }
}

/// The service of [`HedgeLayer`].
#[derive(Debug, Clone)]
pub struct Hedged<S> {
    inner: S,
    hedge: Option<Arc<Hedge>>,
}

impl<S> Service<Request> for Hedged<S>
where
    S: Service<Request, Response = Response, Error = Error> + Clone,
{
    type Response = Response;
    type Error = Error;
    type Future = HedgeFuture<S>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(context)
    }

    #[inline(always)]
    fn call(&mut self, request: Request) -> Self::Future {
        let hedge = self.hedge.as_ref().filter(|_| matches!(request.action, Action::Read { .. }));
        let extra = hedge.map(|hedge| {
            Box::new(Extra {
                hedge: Arc::clone(hedge),
                endpoint: request.options.endpoint,
                // The service that is ready makes the first call; this one is asked before it is called.
                spare: Some((self.inner.clone(), request.clone())),
                timer: Timer::new(hedge.delay),
                delay_over: Instant::now() + hedge.delay,
                second: None,
                error: None,
            })
        });
        HedgeFuture { first: Some(self.inner.call(request)), extra }
    }
}

/// What a second read needs, and the second read; in a box, so that the future stays small while it moves from layer to layer.
#[derive(Debug)]
struct Extra<S: Service<Request>> {
    hedge: Arc<Hedge>,
    /// Of the first read.
    endpoint: Option<Endpoint>,
    spare: Option<(S, Request)>,
    timer: Timer,
    delay_over: Instant,
    second: Option<Pin<Box<Oneshot<S, Request>>>>,
    error: Option<Error>,
}

impl<S> Extra<S>
where
    S: Service<Request, Response = Response, Error = Error>,
{
    /// What the first answer leads to: the answer of the whole, or the wait for the second.
    fn first_answered(&mut self, answer: Result<Response>) -> Option<Result<Response>> {
        match answer {
            Err(error) if self.second.is_some() => {
                self.error = Some(error);
                None
            }
            answer => {
                if answer.is_ok() && self.second.is_none() {
                    self.hedge.budget.deposit(self.endpoint);
                }
                self.second = None;
                Some(answer)
            }
        }
    }

    /// Starts the second read if it is time and there is a token, and asks for its answer.
    fn poll_second(&mut self, context: &mut Context<'_>) -> Poll<Result<Response>> {
        if self.spare.is_some() {
            ready!(self.timer.poll(self.delay_over, context));
            if let Some((service, mut request)) = self.spare.take()
                && self.hedge.budget.withdraw(self.endpoint)
            {
                let node = self.endpoint.map_or("", Endpoint::name);
                metrics::counter!(HEDGES, "node" => node).increment(1);
                if let Some(router) = &self.hedge.router {
                    request.options.endpoint = router.choose(&request, self.endpoint);
                }
                self.second = Some(Box::pin(Oneshot::new(service, request)));
            }
        }
        let Some(second) = &mut self.second else { return Poll::Pending };
        let answer = ready!(second.as_mut().poll(context));
        self.second = None;
        Poll::Ready(answer)
    }
}

pin_project! {
    /// One read or two, and whichever succeeds first.
    #[derive(Debug)]
    pub struct HedgeFuture<S> where S: Service<Request> {
        #[pin]
        first: Option<S::Future>,
        extra: Option<Box<Extra<S>>>,
    }
}

impl<S> Future for HedgeFuture<S>
where
    S: Service<Request, Response = Response, Error = Error>,
{
    type Output = Result<Response>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let first = this.first.as_mut().as_pin_mut().map(|first| first.poll(context));
        let Some(extra) = this.extra else {
            return first.unwrap_or(Poll::Pending);
        };
        if let Some(Poll::Ready(answer)) = first {
            this.first.set(None);
            if let Some(answer) = extra.first_answered(answer) {
                return Poll::Ready(answer);
            }
        }
        let answer = ready!(extra.poll_second(context));
        match answer {
            Err(error) if this.first.is_some() => {
                extra.error = Some(error);
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(extra.error.take().unwrap_or(error))),
            Ok(response) => {
                this.first.set(None);
                Poll::Ready(Ok(response))
            }
        }
    }
}

#[cfg(test)]
mod tests;
