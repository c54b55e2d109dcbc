//! Salted tables on backends that know nothing of salts.

mod layout;
mod merge;
#[cfg(test)]
mod tests;
mod topology;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tower::{Layer, Service, ServiceExt};

use self::layout::{Layouts, declared};
pub(crate) use self::topology::SaltedTopology;
use crate::backend::{Backend, ResponseFuture};
use crate::capability::{Capabilities, Capability};
use crate::error::{Error, Result};
use crate::request::{Action, Read, Request, RequestOptions, ScanOrder, Schema};
use crate::response::Response;

/// Stores salted tables with a leading partition column of the salt, for backends that lack [`Capability::Salt`].
///
/// **Promise**: a table with a salt reads and writes as one without. With [`Salt::Buckets`](crate::model::Salt::Buckets) the
/// bucket alone is the stored partition key, and the declared partition columns lead the stored clustering key: so a scan in
/// key order, even on CQL, reads the buckets side by side and merges them, with limit and resume token; and so a partition
/// holds one bucket of the table: choose enough of them. With [`Salt::Prefix`](crate::model::Salt::Prefix) the salt joins the
/// partition key, and there is no key order. The salt is computed from the CRC32 of the encoded partition key, in the
/// encoding of the table's [`HBaseMapping`](crate::model::HBaseMapping), so every backend gives a key the same salt. The
/// name of the stored column tells the salt, and a description of the table tells it again, so that a declaration with another
/// salt, or none, is refused when the table is opened. **Defaults**: on where the backend lacks the capability. **Cost**: for
/// tables without a salt a branch; for the others a box, the salt, and a copy of the key; a page in key order asks every
/// bucket. **Place**: below the check, which sees the declared table, and above all that counts, repeats or groups requests,
/// which then sees the stored one.
///
/// A partition of a table in buckets can't be deleted as a whole.
#[derive(Debug, Clone)]
pub struct SaltLayer {
    layouts: Option<Arc<Layouts>>,
}

impl SaltLayer {
    /// For a backend of these capabilities; off where it salts by itself.
    pub fn new(capabilities: &Capabilities) -> Self {
        if capabilities.has(Capability::Salt) {
            return Self::off();
        }
        // Where keys are ordered as bytes, a salt of one byte is one byte.
        Self { layouts: Some(Arc::new(Layouts::new(capabilities.has(Capability::OrderedScan)))) }
    }

    /// The topology of the backend below, for the declared tables.
    pub(crate) fn topology(&self, backend: Arc<dyn Backend>) -> SaltedTopology {
        SaltedTopology::new(backend, self.layouts.clone())
    }

    /// Everything passes: for a stack whose type is the same with the layer and without.
    pub fn off() -> Self {
        Self { layouts: None }
    }
}

impl<S> Layer<S> for SaltLayer {
    type Service = Salted<S>;

    fn layer(&self, inner: S) -> Salted<S> {
        Salted { inner, layouts: self.layouts.clone() }
    }
}

/// The service of [`SaltLayer`].
#[derive(Debug, Clone)]
pub struct Salted<S> {
    inner: S,
    layouts: Option<Arc<Layouts>>,
}

impl<S> Service<Request> for Salted<S>
where
    S: Service<Request, Response = Response, Error = Error> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = Error;
    type Future = SaltFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(context)
    }

    #[inline(always)]
    fn call(&mut self, request: Request) -> Self::Future {
        match &self.layouts {
            Some(layouts) if concerns(&request.action) => {
                let work = Work { layouts: Arc::clone(layouts), service: self.inner.clone(), options: request.options };
                SaltFuture::Salted { answer: Box::pin(work.answer(request.action)) }
            }
            _ => SaltFuture::Plain { answer: self.inner.call(request) },
        }
    }
}

/// Whether an action is on a salted table, or may tell of one.
fn concerns(action: &Action) -> bool {
    match action {
        Action::Read { table, .. } | Action::Write { table, .. } | Action::Schema(Schema::Create { table, .. }) => {
            table.salt().is_some()
        }
        Action::Schema(schema) => matches!(schema, Schema::Describe { .. }),
    }
}

pin_project! {
    /// The answer of the service below, by the declared table.
    #[project = FutureProj]
    pub enum SaltFuture<F> {
        #[doc(hidden)]
        Plain { #[pin] answer: F },
        #[doc(hidden)]
        Salted { answer: ResponseFuture },
    }
}

impl<F: Future<Output = Result<Response>>> Future for SaltFuture<F> {
    type Output = Result<Response>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            FutureProj::Plain { answer } => answer.poll(context),
            FutureProj::Salted { answer } => answer.as_mut().poll(context),
        }
    }
}

/// One request on a salted table.
struct Work<S> {
    layouts: Arc<Layouts>,
    service: S,
    options: RequestOptions,
}

impl<S> Work<S>
where
    S: Service<Request, Response = Response, Error = Error> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    async fn answer(self, action: Action) -> Result<Response> {
        match action {
            Action::Read { table, read: Read::Scan(scan) } if scan.order == ScanOrder::Key => {
                let layout = self.layouts.of(&table)?;
                merge::page(&self, &layout, *scan).await.map(Response::Page)
            }
            Action::Read { table, mut read } => {
                let layout = self.layouts.of(&table)?;
                layout.read(&mut read)?;
                let table = Arc::clone(&layout.stored);
                self.send(Action::Read { table, read }).await.map(|answer| layout.answer(answer))
            }
            Action::Write { table, mut write } => {
                let layout = self.layouts.of(&table)?;
                layout.write(&mut write)?;
                let table = Arc::clone(&layout.stored);
                self.send(Action::Write { table, write }).await.map(|answer| layout.answer(answer))
            }
            Action::Schema(Schema::Create { table, if_absent }) => {
                let table = Arc::clone(&self.layouts.of(&table)?.stored);
                self.send(Action::Schema(Schema::Create { table, if_absent })).await
            }
            Action::Schema(schema) => match self.send(Action::Schema(schema)).await? {
                Response::Table(Some(stored)) => {
                    let table = declared(&stored).map(Box::new);
                    Ok(Response::Table(Some(table.unwrap_or(stored))))
                }
                other => Ok(other),
            },
        }
    }

    async fn send(&self, action: Action) -> Result<Response> {
        self.service.clone().oneshot(Request { action, options: self.options }).await
    }
}
