//! Who owns which partitions, by the driver's view of the cluster.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use peristyle_core::codec::token::{append_partition, serialise_partition, token};
use peristyle_core::model::{TableSpec, Value};
use peristyle_core::request::ScanRange;
use peristyle_core::{Endpoint, Endpoints, Owner, Topology};
use scylla::cluster::metadata::Strategy;
use scylla::cluster::{ClusterState, Node};
use scylla::frame::response::result::TableSpec as CqlTable;
use scylla::routing::locator::ReplicaSet;
use scylla::routing::{Shard, Token};

use crate::backend::CqlBackend;
use crate::request::Shared;

/// The replicas of one table's partitions.
pub(crate) struct Owners<'a> {
    cluster: Arc<ClusterState>,
    keyspace: &'a str,
    table: &'a str,
}

impl Owners<'_> {
    /// The first replica of a token, as a number of its node and its shard.
    pub(crate) fn of(&self, token: i64) -> Option<(u128, Shard)> {
        self.replica(token).map(|(node, shard)| (node.host_id.as_u128(), shard))
    }

    /// A number for the first replica of a partition.
    fn id(&self, partition: &[Value], key: &mut Vec<u8>) -> u64 {
        key.clear();
        let owner = append_partition(partition, key).ok().and_then(|()| self.of(token(key)));
        let id = owner.map(|owner| {
            let mut hasher = DefaultHasher::new();
            owner.hash(&mut hasher);
            hasher.finish()
        });
        id.unwrap_or_default()
    }

    fn replica(&self, token: i64) -> Option<(&Arc<Node>, Shard)> {
        let table = CqlTable::borrowed(self.keyspace, self.table);
        replicas(&self.cluster, &table, Token::new(token), None).into_iter().next()
    }
}

/// The replicas of a token, in a datacenter or in all.
pub(crate) fn replicas<'a>(
    cluster: &'a ClusterState,
    table: &CqlTable<'_>,
    token: Token,
    datacenter: Option<&'a str>,
) -> ReplicaSet<'a> {
    let strategy = cluster.get_keyspace(table.ks_name()).map_or(&Strategy::LocalStrategy, |found| &found.strategy);
    cluster.replica_locator().replicas_for_token(token, strategy, datacenter, table)
}

impl Shared {
    /// The owners of a table's partitions; `None` where all have the same: one node with one shard.
    pub(crate) fn owners<'a>(&'a self, table: &'a TableSpec) -> Option<Owners<'a>> {
        let cluster = self.session.get_cluster_state();
        let alone = matches!(cluster.get_nodes_info(), [node] if node.sharder().is_none());
        let keyspace = self.config.keyspace.as_deref()?;
        (!alone).then(|| Owners { cluster, keyspace, table: table.name() })
    }
}

impl Topology for CqlBackend {
    fn owner(&self, table: &TableSpec, partition_key: &[Value]) -> Option<Owner> {
        let open = self.shared().ok()?;
        let keyspace = open.config.keyspace.as_deref()?;
        let owners = Owners { cluster: open.session.get_cluster_state(), keyspace, table: table.name() };
        let key = serialise_partition(partition_key).ok()?;
        let (node, shard) = owners.replica(token(&key))?;
        Some(Owner {
            node: Arc::from(node.address.to_string()),
            shard: node.sharder().map(|_| shard),
            region: None,
            local: false,
        })
    }

    fn owner_id(&self, table: &TableSpec, partition_key: &[Value]) -> u64 {
        self.shared()
            .ok()
            .and_then(|open| Some(open.owners(table)?.id(partition_key, &mut Vec::new())))
            .unwrap_or_default()
    }

    fn owner_ids(&self, table: &TableSpec, partition_keys: &[&[Value]]) -> Vec<u64> {
        let ids = |open: Arc<Shared>| {
            let (owners, mut key) = (open.owners(table)?, Vec::new());
            Some(partition_keys.iter().map(|partition| owners.id(partition, &mut key)).collect())
        };
        self.shared().ok().and_then(ids).unwrap_or_else(|| vec![0; partition_keys.len()])
    }

    fn endpoint_count(&self) -> usize {
        self.fleet.count()
    }

    fn only(&self) -> Option<Endpoint> {
        self.fleet.only()
    }

    /// The replicas of the first partition that are connected, which are as good as each other.
    fn endpoints(&self, table: &TableSpec, partitions: &mut dyn Iterator<Item = &[Value]>) -> Endpoints {
        let mut find = || {
            let (open, key) = (self.shared().ok()?, serialise_partition(partitions.next()?).ok()?);
            let cluster = open.session.get_cluster_state();
            let table = CqlTable::borrowed(open.config.keyspace.as_deref()?, table.name());
            let replicas = replicas(&cluster, &table, Token::new(token(&key)), self.fleet.datacenter());
            let connected = replicas.into_iter().map(|(node, _)| node).filter(|node| node.is_connected());
            Some(self.fleet.endpoints(connected))
        };
        find().map_or_else(Endpoints::unknown, |found| Endpoints::new(found, usize::MAX))
    }

    fn split(&self, _: &TableSpec, parts: usize) -> Vec<ScanRange> {
        let Ok(shared) = self.shared() else {
            return vec![ScanRange::All];
        };
        let cluster = shared.session.get_cluster_state();
        let tokens: Vec<i64> = cluster.replica_locator().ring().iter().map(|(token, _)| token.value()).collect();
        cut(&tokens, parts)
    }
}

/// Cuts the ring into about `parts` ranges that together cover it once, at the nodes' tokens where there are enough of them.
fn cut(tokens: &[i64], parts: usize) -> Vec<ScanRange> {
    let mut edges: Vec<i64> = tokens.iter().copied().filter(|token| !matches!(*token, i64::MIN | i64::MAX)).collect();
    edges.sort_unstable();
    edges.dedup();
    let parts = parts.max(1);
    let ranges = edges.len() + 1;
    if ranges > parts {
        // Evenly many of the nodes' ranges in each.
        let kept = (1..parts).filter_map(|part| edges.get(part * ranges / parts - 1).copied());
        edges = kept.collect();
    } else {
        edges = subdivide(&edges, parts.div_ceil(ranges));
    }
    let starts = std::iter::once(i64::MIN).chain(edges.iter().copied());
    let ends = edges.iter().copied().chain(std::iter::once(i64::MAX));
    starts.zip(ends).map(|(after, to)| ScanRange::Tokens { after, to }).collect()
}

/// Cuts each range between edges into so many.
fn subdivide(edges: &[i64], pieces: usize) -> Vec<i64> {
    let pieces = i128::try_from(pieces).unwrap_or(1);
    let starts = std::iter::once(i64::MIN).chain(edges.iter().copied());
    let ends = edges.iter().copied().chain(std::iter::once(i64::MAX));
    let mut finer = Vec::new();
    for (start, end) in starts.zip(ends) {
        let width = i128::from(end) - i128::from(start);
        let inner = (1..pieces).filter_map(|piece| i64::try_from(i128::from(start) + width * piece / pieces).ok());
        finer.extend(inner.chain(std::iter::once(end)));
    }
    finer.pop();
    finer.dedup();
    finer.retain(|edge| *edge != i64::MIN);
    finer
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn covers_once(ranges: &[ScanRange]) {
        let mut next = i64::MIN;
        for range in ranges {
            let ScanRange::Tokens { after, to } = range else { panic!("{range:?}") };
            assert_eq!(*after, next, "{ranges:?}");
            assert!(to > after, "{ranges:?}");
            next = *to;
        }
        assert_eq!(next, i64::MAX, "{ranges:?}");
    }

    proptest! {
        #[test]
        fn ranges_cover_the_ring_once_and_are_about_as_many_as_asked(
            tokens in vec(any::<i64>(), 0..40),
            parts in 0_usize..100,
        ) {
            let ranges = cut(&tokens, parts);
            covers_once(&ranges);
            let parts = parts.max(1);
            prop_assert!(ranges.len() >= parts && ranges.len() <= 2 * parts, "{} of {parts}", ranges.len());
        }
    }

    #[test]
    fn ranges_end_at_the_tokens_of_nodes() {
        let to = |ranges: Vec<ScanRange>| -> Vec<i64> {
            let end = |range| if let ScanRange::Tokens { to, .. } = range { to } else { 0 };
            ranges.into_iter().map(end).collect()
        };
        assert_eq!(to(cut(&[30, 10, 20], 4)), [10, 20, 30, i64::MAX]);
        assert_eq!(to(cut(&[30, 10, 20], 2)), [20, i64::MAX]);
        assert_eq!(to(cut(&[], 2)), [-1, i64::MAX]);
        assert_eq!(to(cut(&[i64::MIN, i64::MAX], 1)), [i64::MAX]);
    }
}
