//! One time limit over everything below.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower::{Layer, Service};

use crate::error::{Error, ErrorKind, Result, TimeoutPhase};
use crate::request::{Action, Request};
use crate::response::Response;
use crate::timer::Timer;

/// Ends every request at its deadline: the request's own, or so long after the call.
///
/// **Promise**: the caller gets an answer or [`TimeoutPhase::Deadline`] in time; what runs below is dropped. The outcome of a
/// write that is cut off is unknown. The layers below find the deadline in the request, so one that still waits in the client
/// says so itself. **Defaults**: 30 s for data, 120 s for the schema. **Cost**: one look at the clock, and a
/// timer for what isn't answered at once.
/// **Place**: above all that waits, so that queues, attempts and pauses count.
#[derive(Debug, Clone, Copy)]
pub struct DeadlineLayer {
    data: Duration,
    schema: Duration,
}

impl DeadlineLayer {
    /// This limit for requests on data, and at least 120 s for those on the schema.
    pub fn new(limit: Duration) -> Self {
        Self { data: limit, schema: limit.max(Duration::from_secs(120)) }
    }
}

impl Default for DeadlineLayer {
    fn default() -> Self {
        Self::new(Duration::from_secs(30))
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadline<S>;

    fn layer(&self, inner: S) -> Deadline<S> {
        Deadline { inner, limits: *self }
    }
}

/// The service of [`DeadlineLayer`].
#[derive(Debug, Clone)]
pub struct Deadline<S> {
    inner: S,
    limits: DeadlineLayer,
}

impl<S> Service<Request> for Deadline<S>
where
    S: Service<Request, Response = Response, Error = Error>,
{
    type Response = Response;
    type Error = Error;
    type Future = DeadlineFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(context)
    }

    #[inline(always)]
    fn call(&mut self, mut request: Request) -> Self::Future {
        let limit = match request.action {
            Action::Schema(_) => self.limits.schema,
            _ => self.limits.data,
        };
        let start = Instant::now();
        let deadline = request.options.deadline.map_or_else(|| start + limit, Instant::from_std);
        request.options.deadline = Some(deadline.into_std());
        DeadlineFuture { inner: self.inner.call(request), start, deadline, timer: Timer::new(limit) }
    }
}

pin_project! {
    /// The answer, or the end of the time.
    #[derive(Debug)]
    pub struct DeadlineFuture<F> {
        #[pin]
        inner: F,
        start: Instant,
        deadline: Instant,
        timer: Timer,
    }
}

impl<F: Future<Output = Result<Response>>> Future for DeadlineFuture<F> {
    type Output = Result<Response>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(answer) = this.inner.poll(context) {
            return Poll::Ready(answer);
        }
        ready!(this.timer.poll(*this.deadline, context));
        Poll::Ready(Err(late(*this.start)))
    }
}

fn late(start: Instant) -> Error {
    let message = format!("no answer within {:?}; check the servers' load, or set a longer deadline", start.elapsed());
    Error::new(ErrorKind::Timeout(TimeoutPhase::Deadline), message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tower::ServiceExt;
    use tower::service_fn;

    use super::*;
    use crate::error::Outcome;
    use crate::request::{Replication, Schema};

    fn request() -> Request {
        let spec = crate::model::TableSpec::builder("t").partition("id", crate::model::Type::I64).build().unwrap();
        let key = crate::model::Key::new(vec![crate::model::Value::from(1_i64)]);
        let columns = crate::request::Projection::default();
        Request::read(Arc::new(spec), crate::request::Read::Get { key, columns })
    }

    #[tokio::test(start_paused = true)]
    async fn a_hanging_backend_is_cut_off_at_the_limit() {
        let hang = service_fn(|_: Request| std::future::pending::<Result<Response>>());
        let service = DeadlineLayer::new(Duration::from_secs(3)).layer(hang);
        let start = Instant::now();
        let error = service.clone().oneshot(request()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout(TimeoutPhase::Deadline));
        assert_eq!((error.outcome(), start.elapsed()), (Outcome::Unknown, Duration::from_secs(3)));

        let mut sooner = request();
        sooner.options.deadline = Some((Instant::now() + Duration::from_secs(1)).into_std());
        let start = Instant::now();
        service.clone().oneshot(sooner).await.unwrap_err();
        assert_eq!(start.elapsed(), Duration::from_secs(1));

        let start = Instant::now();
        let create = Schema::CreateNamespace { replication: Replication::default(), if_absent: true };
        service.oneshot(Request::schema(create)).await.unwrap_err();
        assert_eq!(start.elapsed(), Duration::from_secs(120));
    }
}
