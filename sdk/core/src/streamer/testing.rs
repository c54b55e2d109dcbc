//! What the tests of bulk writes share: a backend that does as a script says, with several owners.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use futures::FutureExt;
use futures::future::{BoxFuture, poll_fn, ready};

use crate::backend::{Backend, LocalTopology, ResponseFuture, Topology};
use crate::capability::{Capabilities, Capability, Limits};
use crate::client::{Client, ClientBuilder};
use crate::error::Result;
use crate::model::{Row, TableSpec, Type, Value};
use crate::request::{Action, Mutation, Request, ScanRange, Write};
use crate::response::Response;
use crate::{Owner, Table};

type Script = Arc<dyn Fn(usize, Vec<Mutation>) -> BoxFuture<'static, Result<Vec<Result<()>>>> + Send + Sync>;

/// Answers its n-th bulk write, counted from 0, as the script says, and keeps the ids that it was asked to write. A row is owned
/// by its id modulo `owners`.
#[derive(Clone)]
pub(crate) struct Scripted {
    script: Script,
    owners: i64,
    joins: bool,
    capabilities: Capabilities,
    calls: Arc<Mutex<Vec<Vec<i64>>>>,
}

impl Scripted {
    pub(crate) fn new<F>(owners: i64, script: impl Fn(usize, Vec<Mutation>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Vec<Result<()>>>> + Send + 'static,
    {
        let script: Script = Arc::new(move |number, mutations| script(number, mutations).boxed());
        let capabilities = [Capability::PerWriteTtl, Capability::AtomicReplace, Capability::ConsistencyLevel];
        let capabilities = Capabilities::new(capabilities, Limits::default());
        Self { script, owners, joins: false, capabilities, calls: Arc::default() }
    }

    /// Takes everything, after so many milliseconds.
    pub(crate) fn slow(owners: i64, millis: u64) -> Self {
        Self::new(owners, move |_, mutations| async move {
            tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
            Ok(mutations.iter().map(|_| Ok(())).collect())
        })
    }

    /// Takes rows of several owners in one request as gladly as those of one.
    pub(crate) fn joining(self) -> Self {
        Self { joins: true, ..self }
    }

    /// The ids of each bulk write.
    pub(crate) fn calls(&self) -> Vec<Vec<i64>> {
        self.calls.lock().unwrap().clone()
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        Client::builder(self.clone()).without_observe().without_retry()
    }

    /// A table `(id i64) → (v i64, w blob)` of a client without retries.
    pub(crate) async fn table(&self) -> Table {
        self.builder().build().table(spec()).await.unwrap()
    }
}

pub(crate) fn spec() -> TableSpec {
    let table = TableSpec::builder("t").partition("id", Type::I64).column("v", Type::I64);
    table.column("w", Type::Blob).build().unwrap()
}

pub(crate) fn row(id: i64, v: i64) -> Row {
    Row::new().with("id", id).with("v", v)
}

pub(crate) fn id(mutation: &Mutation) -> i64 {
    match mutation.key.values() {
        [Value::I64(id)] => *id,
        other => panic!("{other:?}"),
    }
}

/// Polls a future at most so many times, and drops it then.
pub(crate) async fn polled<F: Future>(times: usize, future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut left = times;
    poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.poll_unpin(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").finish_non_exhaustive()
    }
}

impl Backend for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn call(&self, request: Request) -> ResponseFuture {
        let mutations = match request.action {
            Action::Write { write: Write::ApplyAll(mutations), .. } => mutations,
            Action::Write { write: Write::Apply(mutation), .. } => vec![mutation],
            other => panic!("{other:?}"),
        };
        let scripted = self.clone();
        async move {
            let number = {
                let mut calls = scripted.calls.lock().unwrap();
                calls.push(mutations.iter().map(id).collect());
                calls.len() - 1
            };
            (scripted.script)(number, mutations).await.map(Response::Outcomes)
        }
        .boxed()
    }

    fn topology(&self) -> &dyn Topology {
        self
    }

    fn native(&self) -> &dyn Any {
        self
    }

    fn close(&self) -> BoxFuture<'static, Result<()>> {
        ready(Ok(())).boxed()
    }
}

impl Topology for Scripted {
    fn owner(&self, _: &TableSpec, key: &[Value]) -> Option<Owner> {
        let [Value::I64(id)] = key else { return None };
        let node = (id % self.owners).to_string();
        Some(Owner { node: node.into(), shard: None, region: None, local: false })
    }

    fn joins_owners(&self) -> bool {
        self.joins
    }

    fn split(&self, table: &TableSpec, parts: usize) -> Vec<ScanRange> {
        LocalTopology.split(table, parts)
    }
}
