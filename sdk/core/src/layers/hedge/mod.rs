//! A second try for reads that are slow.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower::util::Oneshot;
use tower::{Layer, Service};

use super::Budget;
use super::names::HEDGES;
use crate::error::{Error, Result};
use crate::request::{Action, Request};
use crate::response::Response;

/// Sends a read a second time if the first answer takes long, and gives whichever succeeds first.
///
/// **Promise**: reads only, whatever the options: a write is never sent twice by this layer. The second is sent once, after the
/// delay, and only if the budget has a token for it; the one that lost is dropped. An error before the delay is the answer;
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
}

impl HedgeLayer {
    /// A second read after this delay, with the default budget.
    pub fn new(delay: Duration) -> Self {
        Self::with_budget(delay, Budget::new(100, 0.05))
    }

    /// A second read after this delay, with a budget of one's own.
    pub fn with_budget(delay: Duration, budget: Budget) -> Self {
        Self { hedge: Some(Arc::new(Hedge { delay, budget })) }
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

    fn call(&mut self, request: Request) -> Self::Future {
        let hedge = self.hedge.as_ref().filter(|_| matches!(request.action, Action::Read { .. }));
        let spare = hedge.map(|hedge| Spare {
            hedge: Arc::clone(hedge),
            // The service that is ready makes the first call; this one is asked before it is called.
            service: self.inner.clone(),
            request: request.clone(),
        });
        HedgeFuture { first: Some(self.inner.call(request)), spare, timer: None, second: None, error: None }
    }
}

/// What a second read needs.
#[derive(Debug)]
struct Spare<S> {
    hedge: Arc<Hedge>,
    service: S,
    request: Request,
}

pin_project! {
    /// One read or two, and whichever succeeds first.
    #[derive(Debug)]
    pub struct HedgeFuture<S> where S: Service<Request> {
        #[pin]
        first: Option<S::Future>,
        spare: Option<Spare<S>>,
        #[pin]
        timer: Option<Sleep>,
        #[pin]
        second: Option<Oneshot<S, Request>>,
        error: Option<Error>,
    }
}

impl<S> HedgeFuture<S>
where
    S: Service<Request, Response = Response, Error = Error> + Clone,
{
    /// Starts the second read if it is time and there is a token.
    fn start_second(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let Some(spare) = this.spare.as_ref() else { return Poll::Pending };
        if this.timer.is_none() {
            this.timer.set(Some(sleep(spare.hedge.delay)));
        }
        if let Some(timer) = this.timer.as_mut().as_pin_mut() {
            std::task::ready!(timer.poll(context));
        }
        let Some(spare) = this.spare.take() else { return Poll::Pending };
        if !spare.hedge.budget.withdraw() {
            return Poll::Pending;
        }
        metrics::counter!(HEDGES).increment(1);
        this.second.set(Some(Oneshot::new(spare.service, spare.request)));
        Poll::Ready(())
    }
}

impl<S> Future for HedgeFuture<S>
where
    S: Service<Request, Response = Response, Error = Error> + Clone,
{
    type Output = Result<Response>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let mut this = self.as_mut().project();
            let first = this.first.as_mut().as_pin_mut().map(|first| first.poll(context));
            if let Some(Poll::Ready(answer)) = first {
                this.first.set(None);
                match answer {
                    Err(error) if this.second.is_some() => *this.error = Some(error),
                    answer => {
                        if let (Ok(_), Some(spare)) = (&answer, this.spare.as_ref()) {
                            spare.hedge.budget.deposit();
                        }
                        this.second.set(None);
                        return Poll::Ready(answer);
                    }
                }
            }
            let second = this.second.as_mut().as_pin_mut().map(|second| second.poll(context));
            if let Some(Poll::Ready(answer)) = second {
                this.second.set(None);
                match answer {
                    Err(error) if this.first.is_some() => *this.error = Some(error),
                    Ok(response) => {
                        this.first.set(None);
                        return Poll::Ready(Ok(response));
                    }
                    Err(error) => return Poll::Ready(Err(this.error.take().unwrap_or(error))),
                }
            }
            if self.as_mut().start_second(context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

#[cfg(test)]
mod tests;
