//! Makes things go wrong on purpose: for tests, and for days on which an application shows what it does then.

mod plan;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower::util::Oneshot;
use tower::{Layer, Service};

use self::plan::{End, Plan};
pub use self::plan::{Fault, FaultPlan, When};
use super::places;
use crate::error::{Error, Result};
use crate::request::Request;
use crate::response::Response;

/// Lets requests meet the [faults](Fault) of a plan.
///
/// **Promise**: the same plan and seed give the same faults to the same sequence of calls, over all clones of the service.
/// Outcomes are honest: what says that it wasn't applied never reached the service below. **Defaults**: no fault. **Cost**: a
/// lock and a clone of the service below. **Place**: directly above the backend, so that all other layers meet the fault:
/// [`ClientBuilder::layer`](crate::client::ClientBuilder::layer) puts it there.
///
/// ```
/// use peristyle_core::client::Client;
/// use peristyle_core::layers::{Fault, FaultLayer, FaultPlan, When};
/// use peristyle_core::memory::MemoryBackend;
/// use peristyle_core::ErrorKind;
///
/// // One write in a hundred loses its connection after it was applied.
/// let plan = FaultPlan::seeded(7).fault(When::Share(0.01), Fault::FailAfter(ErrorKind::ConnectionLost));
/// let client = Client::builder(MemoryBackend::new()).layer(FaultLayer::new(plan)).build();
/// ```
#[derive(Debug, Clone)]
pub struct FaultLayer {
    plan: Arc<Plan>,
}

impl FaultLayer {
    /// The faults of this plan.
    pub fn new(plan: FaultPlan) -> Self {
        Self { plan: Arc::new(Plan::new(plan)) }
    }
}

impl<S> Layer<S> for FaultLayer {
    type Service = Faulty<S>;

    fn layer(&self, inner: S) -> Faulty<S> {
        Faulty { inner, plan: Arc::clone(&self.plan) }
    }
}

/// The service of [`FaultLayer`].
#[derive(Debug, Clone)]
pub struct Faulty<S> {
    inner: S,
    plan: Arc<Plan>,
}

impl<S> Service<Request> for Faulty<S>
where
    S: Service<Request, Response = Response, Error = Error> + Clone,
{
    type Response = Response;
    type Error = Error;
    type Future = FaultFuture<S>;

    /// Ready at once: nothing below is reserved for a request that may never get there.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let fate = self.plan.fate(&mut request);
        let inner = fate.is_sent.then(|| Oneshot::new(self.inner.clone(), request));
        FaultFuture { delay: fate.delay.map(sleep), inner, answer: None, end: Some(fate.end) }
    }
}

pin_project! {
    /// The answer of the service below, or what the plan makes of it.
    #[derive(Debug)]
    pub struct FaultFuture<S> where S: Service<Request> {
        #[pin]
        delay: Option<Sleep>,
        #[pin]
        inner: Option<Oneshot<S, Request>>,
        answer: Option<Result<Response>>,
        end: Option<End>,
    }
}

impl<S> Future for FaultFuture<S>
where
    S: Service<Request, Response = Response, Error = Error>,
{
    type Output = Result<Response>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(delay) = this.delay.as_mut().as_pin_mut() {
            ready!(delay.poll(context));
            this.delay.set(None);
        }
        if let Some(inner) = this.inner.as_mut().as_pin_mut() {
            *this.answer = Some(ready!(inner.poll(context)));
            this.inner.set(None);
        }
        match (this.end.take(), this.answer.take()) {
            (Some(End::Answer), Some(answer)) => Poll::Ready(answer),
            // What failed of itself needs no other fault.
            (Some(End::Error(_)), Some(Err(error))) => Poll::Ready(Err(error)),
            (Some(End::Error(error)), _) => Poll::Ready(Err(error)),
            (Some(End::Rows { mut outcomes, sent }), answer) => {
                let answers =
                    places::outcomes(answer.unwrap_or_else(|| Ok(Response::Outcomes(Vec::new()))), sent.len());
                for (place, answer) in sent.into_iter().zip(answers) {
                    if let Some(outcome) = outcomes.get_mut(place) {
                        *outcome = answer;
                    }
                }
                Poll::Ready(Ok(Response::Outcomes(outcomes)))
            }
            _ => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests;
