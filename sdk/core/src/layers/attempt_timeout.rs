//! A time limit over one attempt.

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

/// Ends every attempt that takes too long, so that one server that hangs doesn't use up the time of the whole request.
///
/// **Promise**: an attempt is answered within its limit, that of the [request](crate::request::RequestOptions::attempt_timeout)
/// or else of this layer, or fails with [`TimeoutPhase::Attempt`]; a write that was cut off has an unknown outcome. What runs
/// below is asked first when the limit is over, so an error that says more is kept: a backend's own, or that the request still
/// waited in a queue and was not sent. Below it the request carries the limit and when it ends. **Defaults**: off, but for
/// requests that bring a limit; backends have limits of their own. The layer's limit isn't for requests on the schema. **Cost**:
/// off, none; else one look at the clock, and a timer for an attempt that doesn't end at once. **Place**: directly below the
/// retry: the innermost of the time limits.
#[derive(Debug, Clone, Copy, Default)]
pub struct AttemptTimeoutLayer {
    limit: Option<Duration>,
}

impl AttemptTimeoutLayer {
    /// This limit for requests on data that bring none.
    pub fn new(limit: Duration) -> Self {
        Self { limit: Some(limit) }
    }

    /// No limit but those that requests bring.
    pub fn off() -> Self {
        Self { limit: None }
    }
}

impl<S> Layer<S> for AttemptTimeoutLayer {
    type Service = AttemptTimeout<S>;

    fn layer(&self, inner: S) -> AttemptTimeout<S> {
        AttemptTimeout { inner, limit: self.limit }
    }
}

/// The service of [`AttemptTimeoutLayer`].
#[derive(Debug, Clone)]
pub struct AttemptTimeout<S> {
    inner: S,
    limit: Option<Duration>,
}

impl<S> Service<Request> for AttemptTimeout<S>
where
    S: Service<Request, Response = Response, Error = Error>,
{
    type Response = Response;
    type Error = Error;
    type Future = AttemptTimeoutFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(context)
    }

    #[inline(always)]
    fn call(&mut self, mut request: Request) -> Self::Future {
        let own = self.limit.filter(|_| !matches!(request.action, Action::Schema(_)));
        let limit = request.options.attempt_timeout.or(own).map(|limit| {
            let end = Instant::now() + limit;
            request.options.attempt_timeout = Some(limit);
            request.options.attempt_deadline = Some(end.into_std());
            Box::new(Limit { time: limit, end, timer: Timer::new(limit) })
        });
        AttemptTimeoutFuture { inner: Some(self.inner.call(request)), limit }
    }
}

/// In a box, so that the future stays small while it moves from layer to layer.
#[derive(Debug)]
struct Limit {
    time: Duration,
    end: Instant,
    timer: Timer,
}

pin_project! {
    /// The answer, or the end of the attempt's time.
    #[derive(Debug)]
    pub struct AttemptTimeoutFuture<F> {
        #[pin]
        inner: Option<F>,
        limit: Option<Box<Limit>>,
    }
}

impl<F: Future<Output = Result<Response>>> Future for AttemptTimeoutFuture<F> {
    type Output = Result<Response>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(inner) = this.inner.as_mut().as_pin_mut()
            && let Poll::Ready(answer) = inner.poll(context)
        {
            return Poll::Ready(answer);
        }
        let Some(Limit { time, end, timer }) = this.limit.as_deref_mut() else { return Poll::Pending };
        ready!(timer.poll(*end, context));
        this.inner.set(None);
        let message = format!("no answer to one attempt within {time:?}; check the servers' load, or allow more time");
        Poll::Ready(Err(Error::new(ErrorKind::Timeout(TimeoutPhase::Attempt), message)))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use tokio::time::sleep;
    use tower::ServiceExt;

    use super::*;
    use crate::error::Outcome;
    use crate::layers::testing::{Mock, get, increment, ok, put};
    use crate::layers::{ConcurrencyLayer, RetryLayer, RetryPolicy};
    use crate::request::{Replication, Schema};

    fn hanging() -> Mock {
        Mock::new(|_, _| std::future::pending())
    }

    const LIMIT: Duration = Duration::from_millis(200);

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_hangs_ends_at_its_limit_with_an_unknown_outcome() {
        let service = AttemptTimeoutLayer::new(LIMIT).layer(hanging());
        let start = Instant::now();
        let error = service.clone().oneshot(increment()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Timeout(TimeoutPhase::Attempt), Outcome::Unknown));
        assert_eq!(start.elapsed(), LIMIT);

        let mut request = put();
        request.options.attempt_timeout = Some(LIMIT / 2);
        let (off, start) = (AttemptTimeoutLayer::off().layer(hanging()), Instant::now());
        assert!(off.oneshot(request).await.is_err());
        assert_eq!(start.elapsed(), LIMIT / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_that_comes_at_the_limit_is_kept() {
        let typed = Mock::new(|_, _| async {
            sleep(LIMIT).await;
            Err(Error::new(ErrorKind::Unavailable, "the node is gone"))
        });
        let error = AttemptTimeoutLayer::new(LIMIT).layer(typed).oneshot(put()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_never_left_the_queue_was_not_applied() {
        let service = ConcurrencyLayer::new(NonZeroUsize::MIN).layer(hanging());
        let service = AttemptTimeoutLayer::new(LIMIT).layer(service);
        let (sent, queued) = futures::join!(service.clone().oneshot(increment()), service.clone().oneshot(increment()));
        assert_eq!(sent.unwrap_err().outcome(), Outcome::Unknown);
        let queued = queued.unwrap_err();
        assert_eq!((queued.kind(), queued.outcome()), (ErrorKind::Timeout(TimeoutPhase::Queue), Outcome::NotApplied));
    }

    #[tokio::test(start_paused = true)]
    async fn one_hung_endpoint_does_not_use_up_the_whole_time() {
        let healed = Mock::new(|number, request| async move {
            if number == 0 { std::future::pending().await } else { ok(&request) }
        });
        let service = AttemptTimeoutLayer::new(LIMIT).layer(healed.clone());
        let service = RetryLayer::new(RetryPolicy::default()).layer(service);
        let start = Instant::now();
        assert!(service.oneshot(get()).await.is_ok());
        assert!(start.elapsed() < LIMIT + Duration::from_millis(25) && healed.count() == 2);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_on_the_schema_have_no_limit_but_their_own() {
        let slow = Mock::new(|_, request| async move {
            sleep(LIMIT * 10).await;
            ok(&request)
        });
        let create = Schema::CreateNamespace { replication: Replication::default(), if_absent: true };
        assert!(AttemptTimeoutLayer::new(LIMIT).layer(slow).oneshot(Request::schema(create)).await.is_ok());
    }
}
