//! Who owns the rows of salted tables.

use std::sync::Arc;

use super::layout::Layouts;
use crate::backend::{Backend, Owner, Topology};
use crate::endpoint::{Endpoint, Endpoints};
use crate::model::{Key, TableSpec, Value};
use crate::request::ScanRange;

/// The backend's topology, asked for the stored partition of a salted table's rows. Until the first request on a declaration
/// its rows are placed as if they had no salt: what that costs is a detour on the way, no more.
#[derive(Debug)]
pub(crate) struct SaltedTopology {
    backend: Arc<dyn Backend>,
    layouts: Option<Arc<Layouts>>,
}

impl SaltedTopology {
    pub(super) fn new(backend: Arc<dyn Backend>, layouts: Option<Arc<Layouts>>) -> Self {
        Self { backend, layouts }
    }

    /// The stored table and the stored partition key.
    fn stored(&self, table: &TableSpec, partition: &[Value]) -> Option<(Arc<TableSpec>, Vec<Value>)> {
        table.salt()?;
        let layout = self.layouts.as_ref()?.known(table)?;
        let key =
            layout.salted(&Key::new(partition.iter().cloned())).ok()?.prefix(layout.stored.partition_len()).to_vec();
        Some((Arc::clone(&layout.stored), key))
    }
}

impl Topology for SaltedTopology {
    fn owner(&self, table: &TableSpec, partition_key: &[Value]) -> Option<Owner> {
        match self.stored(table, partition_key) {
            Some((stored, key)) => self.backend.topology().owner(&stored, &key),
            None => self.backend.topology().owner(table, partition_key),
        }
    }

    fn owner_id(&self, table: &TableSpec, partition_key: &[Value]) -> u64 {
        match self.stored(table, partition_key) {
            Some((stored, key)) => self.backend.topology().owner_id(&stored, &key),
            None => self.backend.topology().owner_id(table, partition_key),
        }
    }

    fn endpoint_count(&self) -> usize {
        self.backend.topology().endpoint_count()
    }

    fn only(&self) -> Option<Endpoint> {
        self.backend.topology().only()
    }

    fn endpoints(&self, table: &TableSpec, partitions: &mut dyn Iterator<Item = &[Value]>) -> Endpoints {
        let Some(first) = partitions.next() else { return Endpoints::unknown() };
        match self.stored(table, first) {
            Some((stored, first)) => {
                let others = partitions.filter_map(|key| Some(self.stored(table, key)?.1)).collect::<Vec<_>>();
                let mut all = std::iter::once(&*first).chain(others.iter().map(Vec::as_slice));
                self.backend.topology().endpoints(&stored, &mut all)
            }
            None => self.backend.topology().endpoints(table, &mut std::iter::once(first).chain(partitions)),
        }
    }

    fn owner_ids(&self, table: &TableSpec, partition_keys: &[&[Value]]) -> Vec<u64> {
        if table.salt().is_none() {
            return self.backend.topology().owner_ids(table, partition_keys);
        }
        partition_keys.iter().map(|partition| self.owner_id(table, partition)).collect()
    }

    fn joins_owners(&self) -> bool {
        self.backend.topology().joins_owners()
    }

    fn split(&self, table: &TableSpec, parts: usize) -> Vec<ScanRange> {
        self.backend.topology().split(table, parts)
    }
}
