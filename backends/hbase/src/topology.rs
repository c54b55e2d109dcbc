//! Where regions are.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use peristyle_core::model::{TableSpec, Value};
use peristyle_core::request::ScanRange;
use peristyle_core::{Error, ErrorKind, Owner, Topology};

use crate::codec::{Layout, encode_partition};
use crate::connection::Call;
use crate::store::Store;
use crate::wire::{Region, TableName, calls};

/// How long locations are taken for true without a look.
const MAX_AGE: Duration = Duration::from_secs(60);

/// The regions of tables, as they were last seen.
#[derive(Debug, Default)]
pub(crate) struct Regions(RwLock<HashMap<Arc<str>, Arc<Seen>>>);

/// The regions of one table, by their keys.
#[derive(Debug)]
struct Seen {
    regions: Vec<Region>,
    at: Instant,
}

impl Seen {
    /// Which region in the order of their keys has this row.
    fn index(&self, row: &[u8]) -> Option<usize> {
        self.regions.partition_point(|region| region.start.as_slice() <= row).checked_sub(1)
    }

    fn of(&self, row: &[u8]) -> Option<&Region> {
        self.regions.get(self.index(row)?)
    }
}

impl Regions {
    fn seen(&self, table: &str) -> Option<Arc<Seen>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(table).cloned()
    }

    pub(crate) fn forget(&self, table: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(table);
    }

    fn set(&self, table: &Arc<str>, mut regions: Vec<Region>) {
        regions.sort_by(|a, b| a.start.cmp(&b.start));
        let seen = Arc::new(Seen { regions, at: Instant::now() });
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(Arc::clone(table), seen);
    }

    /// Whether locations are missing or old.
    fn is_stale(&self, table: &str) -> bool {
        self.seen(table).is_none_or(|seen| seen.at.elapsed() > MAX_AGE)
    }
}

impl Store {
    /// Looks where a table's regions are.
    pub(crate) async fn look(&self, table: &TableName, call: &Call) -> peristyle_core::Result<Vec<Region>> {
        let regions = calls::regions(&self.gateways, call, table).await?;
        self.regions.set(&table.name, regions.clone());
        Ok(regions)
    }

    /// The gateway that sits with the region of this row, where there is a choice of gateways.
    pub(crate) fn place(&self, layout: &Layout, row: &[u8]) -> Option<Arc<str>> {
        if !self.gateways.have_choice() {
            return None;
        }
        let seen = self.regions.seen(&layout.table.name)?;
        self.gateways.place_of(&seen.of(row)?.server)
    }

    /// Forgets where regions are when one of them wasn't there.
    pub(crate) fn note(&self, error: &Error, table: &str) {
        if self.gateways.have_choice() && error.kind() == ErrorKind::Unavailable {
            self.regions.forget(table);
        }
    }

    /// Looks again in the background where locations matter and are old.
    pub(crate) fn refresh(self: &Arc<Self>, layout: &Arc<Layout>) {
        if !self.gateways.have_choice() || !self.regions.is_stale(&layout.table.name) {
            return;
        }
        let (store, layout) = (Arc::clone(self), Arc::clone(layout));
        // One look at a time: until it is back, what was seen counts as fresh.
        let seen = self.regions.seen(&layout.table.name).map(|seen| seen.regions.clone()).unwrap_or_default();
        self.regions.set(&layout.table.name, seen);
        tokio::spawn(async move {
            let call = Call::new(
                &layout.table.name,
                false,
                &peristyle_core::request::RequestOptions::default(),
                &store.config,
            );
            if store.look(&layout.table, &call).await.is_err() {
                store.regions.forget(&layout.table.name);
            }
        });
    }
}

impl Topology for Store {
    fn owner(&self, table: &TableSpec, partition_key: &[Value]) -> Option<Owner> {
        let layout = Layout::new(Arc::new(table.clone()), &self.namespace).ok()?;
        let row = encode_partition(&layout, partition_key).ok()?;
        let seen = self.regions.seen(table.name())?;
        let region = seen.of(&row)?;
        let name = Arc::from(region.id.to_string());
        Some(Owner { node: Arc::from(region.server.host.as_str()), shard: None, region: Some(name), local: false })
    }

    fn owner_id(&self, table: &TableSpec, partition_key: &[Value]) -> u64 {
        let place = || {
            let layout = self.known_layout(table)?;
            self.regions.seen(table.name())?.index(&encode_partition(&layout, partition_key).ok()?)
        };
        place().and_then(|index| u64::try_from(index).ok()).unwrap_or(0)
    }

    /// A gateway sends the rows of a request on to their servers.
    fn joins_owners(&self) -> bool {
        true
    }

    fn split(&self, table: &TableSpec, parts: usize) -> Vec<ScanRange> {
        let Some(seen) = self.regions.seen(table.name()).filter(|seen| seen.regions.len() > 1) else {
            return vec![ScanRange::All];
        };
        let per_part = seen.regions.len().div_ceil(parts.max(1));
        let range = |regions: &[Region]| ScanRange::Keys {
            from: regions.first().map(|region| Bytes::from(region.start.clone())).unwrap_or_default(),
            to: regions.last().map(|region| Bytes::from(region.end.clone())).filter(|end| !end.is_empty()),
        };
        seen.regions.chunks(per_part).map(range).collect()
    }
}
