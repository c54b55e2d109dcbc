//! Where regions are.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use peristyle_core::model::{TableSpec, Value};
use peristyle_core::request::ScanRange;
use peristyle_core::{Endpoint, Endpoints, Error, ErrorKind, Owner, Topology};

use crate::codec::{Layout, append_partition, encode_partition};
use crate::connection::Call;
use crate::store::Store;
use crate::wire::{Region, TableName, calls};

/// How long locations are taken for true without a look.
const MAX_AGE: Duration = Duration::from_secs(60);

/// The regions of tables, by the tables' names.
#[derive(Debug, Default)]
pub(crate) struct Regions(RwLock<HashMap<Arc<str>, Arc<TableRegions>>>);

impl Regions {
    /// Those of this table, now and later.
    pub(crate) fn of(&self, table: &Arc<str>) -> Arc<TableRegions> {
        let mut tables = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(tables.entry(Arc::clone(table)).or_default())
    }

    pub(crate) fn forget(&self, table: &str) {
        if let Some(regions) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(table) {
            regions.set(None);
        }
    }
}

/// The regions of one table, as they were last seen.
#[derive(Debug, Default)]
pub(crate) struct TableRegions(RwLock<Option<Seen>>);

/// The regions of one table, by their keys.
#[derive(Debug)]
struct Seen {
    regions: Vec<SeenRegion>,
    at: Instant,
}

#[derive(Debug, Clone)]
struct SeenRegion {
    /// What its first row begins with.
    first: u64,
    region: Region,
    /// The gateway that sits with it.
    place: Option<Arc<str>>,
}

impl TableRegions {
    fn set(&self, seen: Option<Seen>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = seen;
    }

    fn with<T>(&self, read: impl FnOnce(&Seen) -> Option<T>) -> Option<T> {
        read(self.0.read().unwrap_or_else(PoisonError::into_inner).as_ref()?)
    }

    /// Whether locations are missing or old. They count as fresh from then on: one look at a time.
    fn is_stale(&self) -> bool {
        let is_fresh = |seen: &Option<Seen>| seen.as_ref().is_some_and(|seen| seen.at.elapsed() <= MAX_AGE);
        if is_fresh(&self.0.read().unwrap_or_else(PoisonError::into_inner)) {
            return false;
        }
        let mut seen = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if is_fresh(&seen) {
            return false;
        }
        let regions = seen.take().map(|seen| seen.regions).unwrap_or_default();
        *seen = Some(Seen { regions, at: Instant::now() });
        true
    }
}

impl Seen {
    /// Which region in the order of their keys has this row.
    fn index(&self, row: &[u8]) -> Option<usize> {
        let first = beginning(row);
        let is_before =
            |other: &SeenRegion| other.first < first || (other.first == first && other.region.start.as_slice() <= row);
        self.regions.partition_point(is_before).checked_sub(1)
    }

    fn of(&self, row: &[u8]) -> Option<&SeenRegion> {
        self.regions.get(self.index(row)?)
    }
}

/// The first 8 bytes as a number, in the order of the bytes.
fn beginning(row: &[u8]) -> u64 {
    u64::from_be_bytes(row.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; 8];
        padded.iter_mut().zip(row).for_each(|(place, byte)| *place = *byte);
        padded
    }))
}

impl Store {
    /// Looks where a table's regions are.
    pub(crate) async fn look(&self, table: &TableName, call: &Call) -> peristyle_core::Result<Vec<Region>> {
        let mut regions = calls::regions(&self.gateways, call, table).await?;
        regions.sort_by(|a, b| a.start.cmp(&b.start));
        let seen = |region: &Region| SeenRegion {
            first: beginning(&region.start),
            place: self.gateways.place_of(&region.server),
            region: region.clone(),
        };
        let seen = Seen { regions: regions.iter().map(seen).collect(), at: Instant::now() };
        self.regions.of(&table.name).set(Some(seen));
        Ok(regions)
    }

    /// The gateway that sits with the region of this row, where there is a choice of gateways.
    pub(crate) fn place(&self, layout: &Layout, row: &[u8]) -> Option<Arc<str>> {
        if !self.gateways.have_choice() {
            return None;
        }
        layout.regions.with(|seen| seen.of(row)?.place.clone())
    }

    /// Forgets where regions are when one of them wasn't there.
    pub(crate) fn note(&self, error: &Error, table: &str) {
        if self.gateways.have_choice() && error.kind() == ErrorKind::Unavailable {
            self.regions.forget(table);
        }
    }

    /// Looks again in the background where locations matter and are old.
    pub(crate) fn refresh(self: &Arc<Self>, layout: &Arc<Layout>) {
        if !self.gateways.have_choice() || !layout.regions.is_stale() {
            return;
        }
        let (store, layout) = (Arc::clone(self), Arc::clone(layout));
        tokio::spawn(async move {
            let call = Call::new(
                &layout.table.name,
                false,
                &peristyle_core::request::RequestOptions::default(),
                &store.config,
            );
            if store.look(&layout.table, &call).await.is_err() {
                layout.regions.set(None);
            }
        });
    }
}

impl Store {
    /// The gateway that sits with the region of a partition, as far as it was looked for.
    fn place_of_partition(&self, table: &TableSpec, partition_key: &[Value]) -> Option<Arc<str>> {
        self.in_region(table, partition_key, |seen, row| seen.of(row)?.place.clone())
    }

    /// What is known of the region of a partition.
    fn in_region<T>(
        &self,
        table: &TableSpec,
        partition_key: &[Value],
        read: impl FnOnce(&Seen, &[u8]) -> Option<T>,
    ) -> Option<T> {
        self.with_known_layout(table, |layout| {
            layout.regions.with(|seen| {
                ROW.with_borrow_mut(|row| {
                    row.clear();
                    append_partition(layout, partition_key, row).ok()?;
                    read(seen, row)
                })
            })
        })
    }
}

thread_local! {
    /// Room for a row key: an owner is asked for with each row.
    static ROW: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Topology for Store {
    fn owner(&self, table: &TableSpec, partition_key: &[Value]) -> Option<Owner> {
        let layout = Layout::new(Arc::new(table.clone()), &self.namespace).ok()?;
        let row = encode_partition(&layout, partition_key).ok()?;
        self.regions.of(table.name()).with(|seen| {
            let SeenRegion { region, .. } = seen.of(&row)?;
            let name = Arc::from(region.id.to_string());
            Some(Owner { node: Arc::from(region.server.host.as_str()), shard: None, region: Some(name), local: false })
        })
    }

    fn owner_id(&self, table: &TableSpec, partition_key: &[Value]) -> u64 {
        let place = self.in_region(table, partition_key, Seen::index);
        place.and_then(|index| u64::try_from(index).ok()).unwrap_or(0)
    }

    fn endpoint_count(&self) -> usize {
        self.gateways.count()
    }

    fn only(&self) -> Option<Endpoint> {
        self.gateways.only()
    }

    /// The gateway that sits with the region of the rows, and then the others. Unknown for rows of several gateways: each is sent to
    /// its own.
    fn endpoints(&self, table: &TableSpec, partitions: &mut dyn Iterator<Item = &[Value]>) -> Endpoints {
        let mut places = partitions.map(|partition| self.place_of_partition(table, partition));
        match places.next() {
            Some(first) if places.all(|place| place == first) => self.gateways.endpoints(first.as_deref()),
            _ => Endpoints::unknown(),
        }
    }

    /// A gateway sends the rows of a request on to their servers.
    fn joins_owners(&self) -> bool {
        true
    }

    fn split(&self, table: &TableSpec, parts: usize) -> Vec<ScanRange> {
        let ranges = self.regions.of(table.name()).with(|seen| {
            let per_part = seen.regions.len().div_ceil(parts.max(1));
            (seen.regions.len() > 1).then(|| seen.regions.chunks(per_part).map(range).collect())
        });
        ranges.unwrap_or_else(|| vec![ScanRange::All])
    }
}

fn range(regions: &[SeenRegion]) -> ScanRange {
    let (first, last) = (regions.first().map(|first| &first.region), regions.last().map(|last| &last.region));
    ScanRange::Keys {
        from: first.map(|first| Bytes::from(first.start.clone())).unwrap_or_default(),
        to: last.map(|last| Bytes::from(last.end.clone())).filter(|end| !end.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Server;

    fn seen(starts: &[&[u8]]) -> Seen {
        let region = |start: &&[u8]| SeenRegion {
            first: beginning(start),
            region: Region {
                start: start.to_vec(),
                end: Vec::new(),
                server: Server { host: String::new(), port: 0 },
                id: 0,
            },
            place: None,
        };
        Seen { regions: starts.iter().map(region).collect(), at: Instant::now() }
    }

    #[test]
    fn a_row_is_in_the_last_region_that_starts_at_it_or_before() {
        let seen = seen(&[b"", b"a", b"a\0", b"abcdefgh", b"abcdefgh\0", b"abcdefghi", b"b"]);
        let places: Vec<Option<usize>> = [
            &b"A"[..],
            b"a",
            b"a\0",
            b"a\0\0\0\0\0\0\0\0",
            b"abcdefg",
            b"abcdefgh",
            b"abcdefgh\0\x01",
            b"abcdefghh",
            b"abcdefghiz",
            b"b",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ]
        .map(|row| seen.index(row))
        .into();
        assert_eq!(places, [0, 1, 2, 2, 2, 3, 4, 4, 5, 6, 6].map(Some));
        assert_eq!(self::seen(&[]).index(b"a"), None);
    }
}
