//! Sends again what may be sent again.

mod history;
mod plan;
mod policy;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep_until};
use tower::{Layer, Service};

use self::plan::{Next, Plan, Rules};
pub use self::policy::RetryPolicy;
use crate::endpoint::Router;
use crate::error::{Error, ErrorKind, Result};
use crate::request::Request;
use crate::response::Response;

/// Sends a failed request again, where that may help and can't apply a write twice.
///
/// **Promise**: a request is sent again only if its error says that it [may help](crate::Retry::Later), and it was certainly
/// [not applied](crate::Outcome::NotApplied) or is [idempotent](Request::is_idempotent). Of many writes in one request only
/// those that failed are sent again; each keeps its place. Write times were given before, so a retry never overwrites what
/// others wrote since. The final error has every attempt, and is [unknown](crate::Outcome::Unknown) if any of them was. No
/// pause runs past the deadline. What failed at one endpoint goes to another, if one is known that is well, unless the error speaks
/// of the row alone. The retries of all clones are bounded by one [`Budget`](super::Budget), for each endpoint that failed. **Defaults**: those
/// of [`RetryPolicy`]. **Cost**: off, none; else a clone of the request and of the service below. **Place**: above the limits
/// of attempts and of concurrency, so that each attempt has its time and no pause holds a permit; below the deadline.
///
/// Cancel safety: dropping it ends the attempt under way, and there are no more.
#[derive(Debug, Clone)]
pub struct RetryLayer {
    rules: Option<Arc<Rules>>,
}

impl RetryLayer {
    /// Retries by this policy.
    pub fn new(policy: RetryPolicy) -> Self {
        Self { rules: (policy.most_attempts() > 1).then(|| Arc::new(Rules { policy, router: None })) }
    }

    /// What failed at one endpoint goes to another, if this router knows one.
    #[must_use]
    pub fn routed(self, router: &Router) -> Self {
        let add = |rules: Arc<Rules>| Arc::new(Rules { policy: rules.policy.clone(), router: Some(router.clone()) });
        Self { rules: self.rules.map(add) }
    }

    /// Everything is sent once: for a stack whose type is the same with retries and without.
    pub fn off() -> Self {
        Self { rules: None }
    }
}

impl<S: Clone> Layer<S> for RetryLayer {
    type Service = RetryService<S>;

    fn layer(&self, inner: S) -> RetryService<S> {
        let spare = self.rules.as_ref().map(|rules| Spare { rules: Arc::clone(rules), service: inner.clone() });
        RetryService { inner, spare: spare.map(Arc::new) }
    }
}

/// The service of [`RetryLayer`].
#[derive(Debug)]
pub struct RetryService<S> {
    inner: S,
    spare: Option<Arc<Spare<S>>>,
}

/// What the attempts after the first need.
#[derive(Debug)]
struct Spare<S> {
    rules: Arc<Rules>,
    service: S,
}

impl<S: Clone> Clone for RetryService<S> {
    /// Requests take references to the spare and its rules, so each clone has its own: threads that have a clone each count apart.
    fn clone(&self) -> Self {
        let copy = |spare: &Arc<Spare<S>>| {
            let rules = Arc::new(Rules::clone(&spare.rules));
            Arc::new(Spare { rules, service: spare.service.clone() })
        };
        Self { inner: self.inner.clone(), spare: self.spare.as_ref().map(copy) }
    }
}

impl<S> Service<Request> for RetryService<S>
where
    S: Service<Request, Response = Response, Error = Error> + Clone,
{
    type Response = Response;
    type Error = Error;
    type Future = RetryFuture<S>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(context)
    }

    #[inline(always)]
    fn call(&mut self, request: Request) -> Self::Future {
        let again = self.spare.as_ref().map(|spare| {
            let plan = Plan::new(Arc::clone(&spare.rules), request.clone());
            Box::new(Again { plan, spare: Arc::clone(spare), service: None })
        });
        RetryFuture { state: State::Sending { attempt: self.inner.call(request) }, again }
    }
}

/// What another attempt needs; in a box, so that the future stays small while it moves from layer to layer.
#[derive(Debug)]
struct Again<S> {
    plan: Plan,
    spare: Arc<Spare<S>>,
    /// Not the service of the first attempt, which was ready for that one alone.
    service: Option<S>,
}

impl<S: Clone> Again<S> {
    fn service(&mut self) -> &mut S {
        self.service.get_or_insert_with(|| self.spare.service.clone())
    }
}

pin_project! {
    /// The attempts and the pauses between them.
    #[derive(Debug)]
    pub struct RetryFuture<S> where S: Service<Request> {
        #[pin]
        state: State<S::Future>,
        again: Option<Box<Again<S>>>,
    }
}

pin_project! {
    #[project = StateProj]
    #[derive(Debug)]
    enum State<F> {
        Sending { #[pin] attempt: F },
        Pausing { #[pin] pause: Sleep },
        Readying,
    }
}

impl<S> Future for RetryFuture<S>
where
    S: Service<Request, Response = Response, Error = Error> + Clone,
{
    type Output = Result<Response>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let answer = match this.state.as_mut().project() {
                StateProj::Sending { attempt } => match attempt.poll(context) {
                    Poll::Ready(answer) => answer,
                    Poll::Pending => return cut_off(this.again, true),
                },
                StateProj::Pausing { pause } => {
                    if pause.poll(context).is_pending() {
                        return cut_off(this.again, false);
                    }
                    this.state.set(State::Readying);
                    continue;
                }
                StateProj::Readying => match this.again {
                    Some(again) => match ready!(again.service().poll_ready(context)) {
                        Ok(()) => {
                            let request = again.plan.send();
                            let attempt = again.service().call(request);
                            this.state.set(State::Sending { attempt });
                            continue;
                        }
                        Err(error) => Err(error),
                    },
                    None => Err(Error::new(ErrorKind::Internal, "a retry without a plan")),
                },
            };
            let next = match this.again {
                Some(again) => again.plan.next(answer),
                None => Next::Done(answer),
            };
            match next {
                Next::Done(answer) => return Poll::Ready(answer),
                Next::Pause(until) => this.state.set(State::Pausing { pause: sleep_until(until) }),
            }
        }
    }
}

/// An attempt or a pause that is still under way when the time is over: what came before it is told, if there was something.
fn cut_off<S>(again: &mut Option<Box<Again<S>>>, is_sent: bool) -> Poll<Result<Response>> {
    let Some(again) = again else { return Poll::Pending };
    if is_sent {
        again.plan.pending();
    }
    again.plan.cut_off(is_sent).map_or(Poll::Pending, Poll::Ready)
}

#[cfg(test)]
mod tests;
