//! The nodes of the cluster, as endpoints.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use peristyle_core::Endpoint;
use peristyle_core::layers::names::CONNECTED_NODES;
use scylla::cluster::{ClusterState, Node, NodeRef};

use crate::backend::NAME;
use crate::request::Shared;

/// How often the driver is asked for its nodes.
const PERIOD: Duration = Duration::from_secs(1);

/// The nodes that requests may go to, as the driver last told them. Looked up without a lock.
#[derive(Debug)]
pub(crate) struct Fleet {
    datacenter: Option<String>,
    known: ArcSwap<Known>,
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Known {
    /// By the number of the host.
    endpoints: HashMap<u128, Endpoint>,
    hosts: HashMap<Endpoint, u128>,
}

impl Fleet {
    /// No node is known yet. With a datacenter, its nodes are those that requests go to.
    pub(crate) fn new(datacenter: Option<String>) -> Self {
        Self { datacenter, known: ArcSwap::default(), count: AtomicUsize::new(0) }
    }

    pub(crate) fn datacenter(&self) -> Option<&str> {
        self.datacenter.as_deref()
    }

    /// How many nodes there are.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The only node, if there is only one.
    pub(crate) fn only(&self) -> Option<Endpoint> {
        let known = self.known.load();
        let only = known.hosts.keys().next().copied();
        only.filter(|_| known.hosts.len() == 1)
    }

    /// The endpoints of these nodes, in their order, as far as they are known.
    pub(crate) fn endpoints<'a>(&self, nodes: impl Iterator<Item = NodeRef<'a>>) -> Vec<Endpoint> {
        let known = self.known.load();
        nodes.filter_map(|node| known.endpoints.get(&node.host_id.as_u128()).copied()).collect()
    }

    /// The node of an endpoint.
    pub(crate) fn node<'a>(&self, endpoint: Endpoint, cluster: &'a ClusterState) -> Option<NodeRef<'a>> {
        let host = *self.known.load().hosts.get(&endpoint)?;
        cluster.get_nodes_info().iter().find(|node| node.host_id.as_u128() == host)
    }

    /// Takes over what the driver knows.
    pub(crate) fn look(&self, cluster: &ClusterState) {
        let is_ours = |node: &&Arc<Node>| {
            node.is_enabled() && self.datacenter.as_ref().is_none_or(|ours| node.datacenter.as_ref() == Some(ours))
        };
        let nodes: Vec<_> = cluster.get_nodes_info().iter().filter(is_ours).collect();
        let known = self.known.load();
        let is_same = nodes.len() == known.endpoints.len()
            && nodes.iter().all(|node| known.name(node).is_some_and(|name| name == node.address.to_string()));
        if !is_same {
            let endpoint = |node: &&Arc<Node>| (node.host_id.as_u128(), Endpoint::named(&node.address.to_string()));
            let endpoints: HashMap<_, _> = nodes.iter().map(endpoint).collect();
            let hosts = endpoints.iter().map(|(host, endpoint)| (*endpoint, *host)).collect();
            self.known.store(Arc::new(Known { endpoints, hosts }));
            self.count.store(nodes.len(), Ordering::Relaxed);
        }
        #[expect(clippy::cast_precision_loss, reason = "a number of nodes")]
        let connected = nodes.iter().filter(|node| node.is_connected()).count() as f64;
        metrics::gauge!(CONNECTED_NODES, "system" => NAME).set(connected);
    }

    /// Looks again and again, as long as the session is open.
    pub(crate) async fn watch(self: Arc<Self>, shared: Weak<Shared>) {
        while let Some(shared) = shared.upgrade() {
            self.look(&shared.session.get_cluster_state());
            drop(shared);
            tokio::time::sleep(PERIOD).await;
        }
    }
}

impl Known {
    fn name(&self, node: &Node) -> Option<&'static str> {
        self.endpoints.get(&node.host_id.as_u128()).map(|endpoint| endpoint.name())
    }
}
