//! Refuses what can't work before any I/O.

mod rules;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tower::{Layer, Service};

use self::rules::Rules;
use crate::capability::Capabilities;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::request::{Action, Mutation, Request, Write};
use crate::response::Response;

/// Refuses requests that are wrong in themselves, need a missing capability, or are over a limit.
///
/// **Promise**: such a request fails with [`InvalidArgument`](crate::ErrorKind::InvalidArgument),
/// [`Unsupported`](crate::ErrorKind::Unsupported) or [`TooLarge`](crate::ErrorKind::TooLarge), not applied, and nothing below
/// is called. Of many writes in one request, only the wrong ones fail. **Cost**: some comparisons per column. **Place**: above
/// everything that costs a permit, a retry or a connection.
#[derive(Debug, Clone)]
pub struct CheckLayer {
    rules: Arc<Rules>,
}

impl CheckLayer {
    /// Checks against what this backend can do. The clock bounds write times and times to live.
    pub fn new(backend: &'static str, capabilities: Capabilities, clock: Clock) -> Self {
        Self { rules: Arc::new(Rules { backend, capabilities, clock }) }
    }
}

impl<S> Layer<S> for CheckLayer {
    type Service = Check<S>;

    fn layer(&self, inner: S) -> Check<S> {
        Check { inner, rules: Arc::clone(&self.rules) }
    }
}

/// The service of [`CheckLayer`].
#[derive(Debug, Clone)]
pub struct Check<S> {
    inner: S,
    rules: Arc<Rules>,
}

impl<S> Service<Request> for Check<S>
where
    S: Service<Request, Response = Response, Error = Error>,
{
    type Response = Response;
    type Error = Error;
    type Future = CheckFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(context)
    }

    #[inline(always)]
    fn call(&mut self, mut request: Request) -> Self::Future {
        if let Err(error) = self.rules.check(&request) {
            return CheckFuture::refused(Refusal::All(error));
        }
        let refused = match &mut request.action {
            Action::Write { table, write: Write::ApplyAll(mutations) } => self.rules.take_wrong(table, mutations),
            _ => Vec::new(),
        };
        if refused.is_empty() {
            return CheckFuture { inner: Some(self.inner.call(request)), refusal: None };
        }
        let empty = matches!(&request.action, Action::Write { write: Write::ApplyAll(rest), .. } if rest.is_empty());
        let inner = (!empty).then(|| self.inner.call(request));
        CheckFuture { inner, refusal: Some(Refusal::Some(refused)) }
    }
}

/// What was refused: everything, or single writes by their place.
#[derive(Debug)]
enum Refusal {
    All(Error),
    Some(Vec<(usize, Error)>),
}

pin_project! {
    /// The answer of the service below, with the refused writes put back in their places.
    #[derive(Debug)]
    pub struct CheckFuture<F> {
        #[pin]
        inner: Option<F>,
        refusal: Option<Refusal>,
    }
}

impl<F> CheckFuture<F> {
    fn refused(refusal: Refusal) -> Self {
        Self { inner: None, refusal: Some(refusal) }
    }
}

impl<F: Future<Output = Result<Response>>> Future for CheckFuture<F> {
    type Output = Result<Response>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = match this.inner.as_pin_mut() {
            Some(inner) => std::task::ready!(inner.poll(context)),
            None => Ok(Response::Outcomes(Vec::new())),
        };
        Poll::Ready(match this.refusal.take() {
            None => answer,
            Some(Refusal::All(error)) => Err(error),
            Some(Refusal::Some(refused)) => Ok(Response::Outcomes(merge(answer, refused))),
        })
    }
}

/// Puts the refused writes back in their places. An error of the rest becomes the outcome of each of the rest.
fn merge(answer: Result<Response>, refused: Vec<(usize, Error)>) -> Vec<Result<()>> {
    let (mut sent, failure) = match answer.and_then(Response::into_outcomes) {
        Ok(outcomes) => (outcomes.into_iter(), None),
        Err(error) => (Vec::new().into_iter(), Some(error)),
    };
    let mut merged = Vec::with_capacity(sent.len() + refused.len());
    for (place, error) in refused {
        while merged.len() < place {
            merged.push(next_outcome(&mut sent, failure.as_ref()));
        }
        merged.push(Err(error));
    }
    merged.extend(sent);
    merged
}

fn next_outcome(sent: &mut impl Iterator<Item = Result<()>>, failure: Option<&Error>) -> Result<()> {
    match failure {
        Some(error) => Err(error.share()),
        None => sent.next().unwrap_or_else(|| Err(Error::invalid("the backend answered fewer outcomes than writes"))),
    }
}

impl Rules {
    /// Takes out the mutations that are wrong, with their places and faults.
    fn take_wrong(&self, table: &crate::model::TableSpec, mutations: &mut Vec<Mutation>) -> Vec<(usize, Error)> {
        let (mut refused, latest) = (Vec::new(), self.latest());
        let mut place = 0;
        mutations.retain(|mutation| {
            let fault = self.mutation(table, mutation, latest).err();
            let right = fault.is_none();
            refused.extend(fault.map(|error| (place, error)));
            place += 1;
            right
        });
        refused
    }
}

#[cfg(test)]
mod tests;
