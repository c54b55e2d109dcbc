//! Requests that go to one node.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};

use peristyle_core::{Endpoint, Response, ResponseFuture, Result};
use scylla::cluster::{ClusterState, NodeRef};
use scylla::policies::load_balancing::RoutingInfo;
use scylla::routing::Shard;

use crate::fleet::Fleet;
use crate::topology::replicas;

thread_local! {
    /// Where what is polled on this thread should go.
    static WANTED: Cell<Option<Endpoint>> = const { Cell::new(None) };
}

/// A request whose attempts go to this endpoint. The driver chooses the node while the request is polled, and has no other way to
/// be told that costs less than a copy of the statement.
pub(crate) fn pinned(endpoint: Option<Endpoint>, request: ResponseFuture) -> ResponseFuture {
    match endpoint {
        Some(endpoint) => Box::pin(Pinned { endpoint, request }),
        None => request,
    }
}

struct Pinned {
    endpoint: Endpoint,
    request: ResponseFuture,
}

impl Future for Pinned {
    type Output = Result<Response>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _outer = Want(WANTED.replace(Some(self.endpoint)));
        self.request.as_mut().poll(context)
    }
}

/// Brings back what was wanted before, even if the poll panics.
struct Want(Option<Endpoint>);

impl Drop for Want {
    fn drop(&mut self) {
        WANTED.set(self.0);
    }
}

/// The node that is wanted now, and the shard there, for a request: if it can be reached, and has the partition, where the request
/// is for one. A part of a larger request may be for another partition than the first of it, to which the whole was pinned.
pub(crate) fn wanted<'a>(
    fleet: &'a Fleet,
    request: &RoutingInfo<'a>,
    cluster: &'a ClusterState,
) -> Option<(NodeRef<'a>, Option<Shard>)> {
    let node = fleet.node(WANTED.get()?, cluster)?;
    if !node.is_connected() {
        return None;
    }
    let (Some(token), Some(table)) = (request.token, request.table) else { return Some((node, None)) };
    let mut replicas = replicas(cluster, table, token, fleet.datacenter()).into_iter();
    replicas.find(|(replica, _)| replica.host_id == node.host_id).map(|(node, shard)| (node, Some(shard)))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn to(name: &str, request: ResponseFuture) -> ResponseFuture {
        pinned(Some(Endpoint::named(name)), request)
    }

    #[test]
    fn what_is_wanted_is_so_while_the_request_is_polled_and_no_longer() {
        let inner = to("inner", Box::pin(async { panic!("{}", WANTED.get().unwrap()) }));
        let outer = async move {
            let caught = std::panic::AssertUnwindSafe(inner).catch_unwind().await;
            let message = caught.unwrap_err().downcast_ref::<String>().unwrap().clone();
            assert_eq!((message.as_str(), WANTED.get()), ("inner", Some(Endpoint::named("outer"))));
            Ok(Response::Done)
        };
        assert!(to("outer", Box::pin(outer)).now_or_never().unwrap().is_ok());
        let free = async {
            assert_eq!(WANTED.get(), None);
            Ok(Response::Done)
        };
        assert!(pinned(None, Box::pin(free)).now_or_never().unwrap().is_ok());
    }
}
