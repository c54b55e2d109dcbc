//! Spans and metrics.

mod meters;
mod spans;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower::{Layer, Service};
use tracing::Span;

use self::meters::{Meter, Meters};
use crate::backend::Backend;
use crate::endpoint::{Endpoint, PerEndpoint};
use crate::error::{Error, Result};
use crate::request::Request;
use crate::response::Response;

/// Which of the two sights of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    Call,
    Attempt,
}

/// Makes a span and metrics of every request.
///
/// **Promise**: every request is counted once, with its time and the kind of its error; one that is dropped leaves the gauge but
/// isn't timed. Spans follow OpenTelemetry's conventions for database clients (`db.system.name`, `db.operation.name`,
/// `db.collection.name`, `db.operation.batch.size`, `server.address`, `error.type`): what the application asked for at the level `INFO`, attempts
/// as spans of kind `client` within it at `DEBUG`. Neither values nor keys are in them. Names of metrics: [`names`](super::names).
/// **Defaults**: on, in both places; whoever installs no `tracing` subscriber and no `metrics` recorder gets neither.
/// **Cost**: off, or without recorder and subscriber, next to none; with a recorder two looks at the clock and what it does. **Place**: outermost, for what the application
/// sees; and on top of the backend, for what the servers see.
#[derive(Debug, Clone)]
pub struct ObserveLayer {
    eye: Option<Arc<Eye>>,
}

#[derive(Debug)]
struct Eye {
    system: &'static str,
    sight: Sight,
    /// For calls, and for attempts at nobody knows which node.
    meters: Arc<Meters>,
    /// For attempts at a known node.
    by_node: PerEndpoint<Arc<Meters>>,
    backend: Option<Arc<dyn Backend>>,
    is_recorded: OnceLock<bool>,
}

impl Eye {
    /// Whether there is a recorder, as the first request finds it. The facade doesn't tell, but the recorder that stands in for
    /// none has no state, and one that keeps or sends what it gets has.
    fn is_recorded(&self) -> bool {
        *self.is_recorded.get_or_init(|| metrics::with_recorder(|recorder| size_of_val(recorder) > 0))
    }

    /// The meters for a request.
    fn meters(&self, request: &Request) -> &Arc<Meters> {
        let only = || self.backend.as_ref()?.topology().only();
        let make = |node: Endpoint| Arc::new(Meters::new(self.system, self.sight, node.name()));
        match request.options.endpoint.filter(|_| self.sight == Sight::Attempt).or_else(only) {
            Some(node) => self.by_node.get_or_make(node, || make(node)).unwrap_or(&self.meters),
            None => &self.meters,
        }
    }
}

impl ObserveLayer {
    /// Looks at what the application asks for, of a backend of this name.
    pub fn calls(system: &'static str) -> Self {
        Self::new(system, Sight::Call, None)
    }

    /// Looks at single attempts on the wire, at a backend of this name, by the endpoints that they go to.
    pub fn attempts(system: &'static str) -> Self {
        Self::new(system, Sight::Attempt, None)
    }

    /// The same for this backend, whose topology names the endpoint where there is only one.
    pub fn attempts_at(backend: Arc<dyn Backend>) -> Self {
        Self::new(backend.name(), Sight::Attempt, Some(backend))
    }

    fn new(system: &'static str, sight: Sight, backend: Option<Arc<dyn Backend>>) -> Self {
        let meters = Arc::new(Meters::new(system, sight, ""));
        let (by_node, is_recorded) = (PerEndpoint::default(), OnceLock::new());
        Self { eye: Some(Arc::new(Eye { system, sight, meters, by_node, backend, is_recorded })) }
    }

    /// Looks away: for a stack whose type is the same with and without.
    pub fn off() -> Self {
        Self { eye: None }
    }
}

impl<S> Layer<S> for ObserveLayer {
    type Service = Observe<S>;

    fn layer(&self, inner: S) -> Observe<S> {
        Observe { inner, eye: self.eye.clone() }
    }
}

/// The service of [`ObserveLayer`].
#[derive(Debug, Clone)]
pub struct Observe<S> {
    inner: S,
    eye: Option<Arc<Eye>>,
}

impl<S> Service<Request> for Observe<S>
where
    S: Service<Request, Response = Response, Error = Error>,
{
    type Response = Response;
    type Error = Error;
    type Future = ObserveFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(context)
    }

    #[inline(always)]
    fn call(&mut self, request: Request) -> Self::Future {
        let Some(eye) = &self.eye else {
            return ObserveFuture { inner: self.inner.call(request), span: None, meter: None };
        };
        let span = spans::open(eye.sight, eye.system, &request);
        let meter = Meter::start(eye, &request);
        let inner = span.in_scope(|| self.inner.call(request));
        // In a box, and only if someone looks: the future stays small while it moves from layer to layer.
        let span = (!span.is_disabled()).then(|| Box::new(span));
        ObserveFuture { inner, span, meter }
    }
}

pin_project! {
    /// The answer of the service below, noted.
    #[derive(Debug)]
    pub struct ObserveFuture<F> {
        #[pin]
        inner: F,
        span: Option<Box<Span>>,
        meter: Option<Meter>,
    }
}

impl<F: Future<Output = Result<Response>>> Future for ObserveFuture<F> {
    type Output = Result<Response>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = match this.span {
            Some(span) => ready!(span.in_scope(|| this.inner.poll(context))),
            None => ready!(this.inner.poll(context)),
        };
        if this.span.is_some() || this.meter.is_some() {
            let error = first_error(&answer);
            if let Some(span) = this.span.take() {
                spans::close(&span, &answer, error);
            }
            if let Some(meter) = this.meter.take() {
                meter.stop(error);
            }
        }
        Poll::Ready(answer)
    }
}

/// The error that an answer is counted under: its own, or that of the first row that failed.
fn first_error(answer: &Result<Response>) -> Option<&Error> {
    match answer {
        Err(error) => Some(error),
        Ok(Response::Outcomes(outcomes)) => outcomes.iter().find_map(|outcome| outcome.as_ref().err()),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests;
