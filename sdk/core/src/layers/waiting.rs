//! What waits in the client, counted.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use super::names::{THROTTLING_DELAY, THROTTLING_QUEUE};
use crate::error::{Error, ErrorKind, Outcome, Result, TimeoutPhase};
use crate::request::RequestOptions;

/// A wait for something, as long as the request's time allows. Its length and the number of those that wait are metrics.
pub(super) struct Waiting<T> {
    wait: BoxFuture<'static, T>,
    options: RequestOptions,
    since: Instant,
}

impl<T> Waiting<T> {
    pub(super) fn new(wait: impl Future<Output = T> + Send + 'static, options: RequestOptions) -> Self {
        metrics::gauge!(THROTTLING_QUEUE).increment(1.0);
        Self { wait: wait.boxed(), options, since: Instant::now() }
    }

    /// What was waited for, or [`TimeoutPhase::Queue`] when the time is over, even if both come at once. No timer of its own: the layer that set the limit
    /// polls everything below it when it runs out.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, what: fmt::Arguments<'_>) -> Poll<Result<T>> {
        let wait = Pin::new(&mut self.wait).poll(context);
        if self.options.is_over() {
            return Poll::Ready(Err(self.late(what)));
        }
        wait.map(Ok)
    }

    fn late(&self, what: fmt::Arguments<'_>) -> Error {
        let message =
            format!("waited {:?} for {what}, and nothing was sent; send less, or allow more", self.since.elapsed());
        Error::new(ErrorKind::Timeout(TimeoutPhase::Queue), message).with_outcome(Outcome::NotApplied)
    }
}

impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        metrics::gauge!(THROTTLING_QUEUE).decrement(1.0);
        metrics::histogram!(THROTTLING_DELAY).record(self.since.elapsed().as_secs_f64());
    }
}

impl<T> fmt::Debug for Waiting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("since", &self.since).finish_non_exhaustive()
    }
}
