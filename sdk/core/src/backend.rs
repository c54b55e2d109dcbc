//! What a backend implements.

use std::any::Any;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tower::Service;

use crate::capability::Capabilities;
use crate::endpoint::{Endpoint, Endpoints};
use crate::error::{Error, Result};
use crate::model::{TableSpec, Value};
use crate::request::{Request, ScanRange};
use crate::response::Response;

/// The future of one request. It owns all it needs, so it may outlive the backend's handle; its type is erased here, at the
/// one place where layers meet backends, so that layers can name it.
pub type ResponseFuture = BoxFuture<'static, Result<Response>>;

/// A database behind the contract.
///
/// # The contract
/// - A request that needs a missing [capability](Capabilities) is refused before any I/O.
/// - A failed write says whether it was certainly [not applied](crate::Outcome).
/// - Of many writes in one request each has an outcome of its own. Where a server refuses the whole for one of them, the backend
///   finds out which, and sends the others.
/// - Dropping the future sends nothing or the whole, and frees all that it held.
/// - Every wait on a server has a limit.
/// - The write with the larger write time wins; at equal times a delete wins over a value.
/// - A row exists while it has a present column (or a marker, see [`Capability::RowMarker`](crate::Capability::RowMarker)).
///
/// The suite in `testkit` proves it for an implementation.
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// Its name in messages, such as `cql`.
    fn name(&self) -> &'static str;

    /// What it can do.
    fn capabilities(&self) -> &Capabilities;

    /// Starts a request; nothing happens until the future is polled.
    fn call(&self, request: Request) -> ResponseFuture;

    /// Who owns which keys.
    fn topology(&self) -> &dyn Topology;

    /// The native handle, for what the contract doesn't cover; downcast it to the type that the backend documents.
    fn native(&self) -> &dyn Any;

    /// Ends background work and frees what is held. Requests after it fail with [`Closed`](crate::ErrorKind::Closed).
    fn close(&self) -> BoxFuture<'static, Result<()>>;
}

/// Who owns which keys, by the backend's newest knowledge.
pub trait Topology: Send + Sync {
    /// The first owner of a partition; `None` where that isn't known.
    fn owner(&self, table: &TableSpec, partition_key: &[Value]) -> Option<Owner>;

    /// A number for the first owner of a partition, the same for all that it owns: what [grouping](crate::Grouping) asks for
    /// every row. A backend overrides it where it can tell it for less than the whole [`Owner`] costs.
    fn owner_id(&self, table: &TableSpec, partition_key: &[Value]) -> u64 {
        self.owner(table, partition_key).map_or(0, |owner| owner.id())
    }

    /// To how many endpoints requests may go now. Asked for every request, so it has to be told at once.
    fn endpoint_count(&self) -> usize {
        1
    }

    /// The one endpoint of all requests, where there is one: the name under which metrics count them.
    fn only(&self) -> Option<Endpoint> {
        None
    }

    /// The endpoints that may take a request on these partitions, for which it gives the partition keys: owners, best first, and
    /// those that can't be reached left out while there are others. Unknown where it makes no difference. A request of many rows
    /// may be judged by its first one: what has many owners is sent on by whoever gets it.
    fn endpoints(&self, table: &TableSpec, partitions: &mut dyn Iterator<Item = &[Value]>) -> Endpoints {
        let _ = (table, partitions);
        Endpoints::unknown()
    }

    /// The [numbers](Self::owner_id) for the owners of many partitions, in their order. A backend overrides it where one look at
    /// the cluster serves them all.
    fn owner_ids(&self, table: &TableSpec, partition_keys: &[&[Value]]) -> Vec<u64> {
        partition_keys.iter().map(|partition| self.owner_id(table, partition)).collect()
    }

    /// Whether one request may well have rows of several owners, because something on the way hands them out: then what is
    /// left after the full requests of single owners travels together, instead of as many small ones as there are owners.
    fn joins_owners(&self) -> bool {
        false
    }

    /// Cuts a table into ranges that together cover it once, about `parts` of them, for scans in parallel.
    fn split(&self, table: &TableSpec, parts: usize) -> Vec<ScanRange>;
}

/// Where a key lives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The node's address.
    pub node: Arc<str>,
    /// The shard within it, where nodes are sharded.
    pub shard: Option<u32>,
    /// The region, where tables are split in regions.
    pub region: Option<Arc<str>>,
    /// Whether it is in this process.
    pub local: bool,
}

impl Owner {
    /// A number for it. Two owners seldom have the same.
    pub fn id(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// A topology of one place: everything is here.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalTopology;

impl Topology for LocalTopology {
    fn owner(&self, _: &TableSpec, _: &[Value]) -> Option<Owner> {
        Some(Owner { node: Arc::from("local"), shard: None, region: None, local: true })
    }

    fn owner_id(&self, _: &TableSpec, _: &[Value]) -> u64 {
        0
    }

    fn owner_ids(&self, _: &TableSpec, partition_keys: &[&[Value]]) -> Vec<u64> {
        vec![0; partition_keys.len()]
    }

    fn split(&self, _: &TableSpec, _: usize) -> Vec<ScanRange> {
        vec![ScanRange::All]
    }
}

/// A backend as a [`tower::Service`], always ready: limits belong in layers.
#[derive(Debug)]
pub struct BackendService<B: ?Sized>(Arc<B>);

impl<B: Backend + ?Sized> BackendService<B> {
    /// The service of this backend.
    pub fn new(backend: Arc<B>) -> Self {
        Self(backend)
    }
}

impl<B: ?Sized> Clone for BackendService<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B: Backend + ?Sized> Service<Request> for BackendService<B> {
    type Response = Response;
    type Error = Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        self.0.call(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Owners by partition, as a cluster has them.
    struct Two;

    impl Topology for Two {
        fn owner(&self, _: &TableSpec, key: &[Value]) -> Option<Owner> {
            let node = if key.is_empty() { return None } else { Arc::from(format!("node {}", key.len())) };
            Some(Owner { node, shard: Some(3), region: None, local: false })
        }

        fn split(&self, _: &TableSpec, _: usize) -> Vec<ScanRange> {
            vec![ScanRange::All]
        }
    }

    #[test]
    fn the_numbers_of_owners_tell_them_apart() {
        let table = TableSpec::builder("t").partition("id", crate::model::Type::I64).build().unwrap();
        let (one, two) = ([Value::from(1_i64)], [Value::from(1_i64), Value::from(2_i64)]);
        assert_eq!(Two.owner_id(&table, &one), Two.owner_id(&table, &[Value::from(9_i64)]));
        assert_ne!(Two.owner_id(&table, &one), Two.owner_id(&table, &two));
        assert_ne!(Two.owner_id(&table, &one), Two.owner_id(&table, &[]));
    }
}
