//! A mock ring of three nodes.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::backend::{Backend, Owner, ResponseFuture, Topology};
use crate::capability::{Capabilities, Limits};
use crate::endpoint::{Endpoint, Endpoints};
use crate::error::Result;
use crate::model::{TableSpec, Value};
use crate::request::{Request, ScanRange};
use crate::response::Response;

pub(super) const NODES: [&str; 3] = ["node 0", "node 1", "node 2"];

type Script = Arc<dyn Fn(usize, Request) -> ResponseFuture + Send + Sync>;

/// Three nodes that answer as a script says. Partition `i` is owned by node `i % 3` and the ones after it.
#[derive(Clone)]
pub(super) struct Ring {
    capabilities: Arc<Capabilities>,
    replicas: usize,
    width: usize,
    script: Script,
    calls: Arc<Mutex<Vec<Option<usize>>>>,
}

impl Ring {
    pub(super) fn new<F>(replicas: usize, script: impl Fn(usize, Request) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Response>> + Send + 'static,
    {
        let script: Script = Arc::new(move |node, request| script(node, request).boxed());
        let capabilities = Arc::new(Capabilities::new([], Limits::default()));
        Self { capabilities, replicas, width: NODES.len(), script, calls: Arc::default() }
    }

    /// The same with this many nodes that are known of.
    pub(super) fn width(mut self, width: usize) -> Self {
        self.width = width;
        self
    }

    /// Where the calls went; `None` for those that had no endpoint.
    pub(super) fn calls(&self) -> Vec<Option<usize>> {
        self.calls.lock().unwrap().clone()
    }

    pub(super) fn calls_of(&self, node: usize) -> usize {
        self.calls().iter().filter(|call| **call == Some(node)).count()
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").finish_non_exhaustive()
    }
}

impl Backend for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn call(&self, request: Request) -> ResponseFuture {
        let endpoint = request.options.endpoint;
        let node = endpoint.map(|one| NODES.iter().position(|name| *name == one.name()).unwrap());
        let ring = self.clone();
        async move {
            ring.calls.lock().unwrap().push(node);
            (ring.script)(node.unwrap_or(0), request).await
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
        futures::future::ok(()).boxed()
    }
}

impl Topology for Ring {
    fn owner(&self, _: &TableSpec, _: &[Value]) -> Option<Owner> {
        None
    }

    fn endpoint_count(&self) -> usize {
        self.width
    }

    fn endpoints(&self, _: &TableSpec, partitions: &mut dyn Iterator<Item = &[Value]>) -> Endpoints {
        assert!(self.width > 1, "nobody asks where there is one endpoint");
        let Some([Value::I64(id)]) = partitions.next() else { return Endpoints::unknown() };
        let first = usize::try_from(*id).unwrap();
        let owners = (first..first + self.replicas).map(|place| Endpoint::named(NODES[place % NODES.len()]));
        Endpoints::new(owners, self.replicas)
    }

    fn split(&self, _: &TableSpec, _: usize) -> Vec<ScanRange> {
        vec![ScanRange::All]
    }
}
