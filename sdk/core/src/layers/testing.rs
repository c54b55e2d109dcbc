//! What the tests of layers share: requests, and a service that does as a script says.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures::FutureExt;
use tower::Service;

use crate::backend::ResponseFuture;
use crate::error::{Error, Result};
use crate::model::{Key, TableSpec, Ttl, Type, Value, WriteTime};
use crate::request::{Action, Mutation, Projection, Read, Request, Write};
use crate::response::Response;

fn spec() -> Arc<TableSpec> {
    Arc::new(TableSpec::builder("t").partition("id", Type::I64).column("v", Type::I64).build().unwrap())
}

fn key(id: i64) -> Key {
    Key::new(vec![Value::from(id)])
}

fn mutation(id: i64) -> Mutation {
    Mutation::put(key(id), WriteTime::MIN, vec![(1, Value::from(id))], Ttl::TableDefault)
}

pub(super) fn get() -> Request {
    get_of(1)
}

pub(super) fn get_of(id: i64) -> Request {
    Request::read(spec(), Read::Get { key: key(id), columns: Projection::default() })
}

pub(super) fn get_all(rows: i64) -> Request {
    let keys = (0..rows).map(key).collect();
    Request::read(spec(), Read::GetAll { keys, columns: Projection::default() })
}

pub(super) fn put() -> Request {
    Request::write(spec(), Write::Apply(mutation(1)))
}

pub(super) fn put_all(ids: impl IntoIterator<Item = i64>) -> Request {
    Request::write(spec(), Write::ApplyAll(ids.into_iter().map(mutation).collect()))
}

pub(super) fn increment() -> Request {
    Request::write(spec(), Write::Increment { key: key(1), deltas: vec![(1, 1)] })
}

/// The ids of the rows of a `put_all`.
pub(super) fn ids(request: &Request) -> Vec<i64> {
    let Action::Write { write: Write::ApplyAll(mutations), .. } = &request.action else { return Vec::new() };
    let id = |mutation: &Mutation| match mutation.key.values() {
        [Value::I64(id)] => *id,
        other => panic!("{other:?}"),
    };
    mutations.iter().map(id).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "an answer as services give it")]
/// `Ok` of the kind that a request is answered with.
pub(super) fn ok(request: &Request) -> Result<Response> {
    Ok(match &request.action {
        Action::Write { write: Write::ApplyAll(mutations), .. } => {
            Response::Outcomes(mutations.iter().map(|_| Ok(())).collect())
        }
        Action::Read { .. } => Response::Row(None),
        _ => Response::Done,
    })
}

type Script = Arc<dyn Fn(usize, Request) -> ResponseFuture + Send + Sync>;

/// A service that answers its n-th call, counted from 0, as the script says, and keeps what it was asked.
#[derive(Clone)]
pub(super) struct Mock {
    script: Script,
    calls: Arc<Mutex<Vec<Request>>>,
}

impl Mock {
    pub(super) fn new<F>(script: impl Fn(usize, Request) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Response>> + Send + 'static,
    {
        let script: Script = Arc::new(move |number, request| script(number, request).boxed());
        Self { script, calls: Arc::default() }
    }

    /// Fails the first calls with these errors, and then succeeds.
    pub(super) fn failing(errors: Vec<Error>) -> Self {
        Self::new(move |number, request| {
            let answer = errors.get(number).map_or_else(|| ok(&request), |error| Err(error.share()));
            async move { answer }
        })
    }

    pub(super) fn calls(&self) -> Vec<Request> {
        self.calls.lock().unwrap().clone()
    }

    pub(super) fn count(&self) -> usize {
        self.calls.lock().unwrap().len()
    }
}

impl fmt::Debug for Mock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mock").finish_non_exhaustive()
    }
}

impl Service<Request> for Mock {
    type Response = Response;
    type Error = Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        let mock = self.clone();
        async move {
            let number = {
                let mut calls = mock.calls.lock().unwrap();
                calls.push(request.clone());
                calls.len() - 1
            };
            (mock.script)(number, request).await
        }
        .boxed()
    }
}
