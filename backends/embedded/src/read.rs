//! Reads. Each page sees one snapshot of the table.

use std::ops::Bound;

use fjall::{Guard, Iter, Readable, Slice};
use peristyle_core::codec::range::clustering_range;
use peristyle_core::model::{Key, StoredRow};
use peristyle_core::request::{Projection, Query, Scan, ScanRange};
use peristyle_core::response::Page;
use peristyle_core::{Error, Result};

use crate::codec::{RowKey, Stored};
use crate::engine::View;
use crate::error::from_fjall;

/// How many stored rows a page looks at, once it has a row to return: dead rows end it early.
const PAGE_WORK: usize = 10_000;

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

impl View {
    /// One row.
    pub(crate) fn get(&self, key: &Key, columns: &Projection) -> Result<Option<StoredRow>> {
        let encoded = RowKey::new(&self.table.spec, key)?;
        let Some(value) = self.table.rows.get(&encoded.bytes).map_err(|error| self.fault(error))? else {
            return Ok(None);
        };
        let stored = Stored::decode(value)?;
        if stored.original.is_none() && encoded.original.is_none() {
            return stored.record.read(&self.table.spec, key, columns, self.now());
        }
        self.row(&encoded.bytes, &stored, columns)
    }

    /// Rows in the order of their keys.
    pub(crate) fn get_all(&self, keys: &[Key], columns: &Projection) -> Result<Vec<Option<StoredRow>>> {
        keys.iter().map(|key| self.get(key, columns)).collect()
    }

    /// A page of one partition.
    pub(crate) fn query(&self, query: &Query) -> Result<Page> {
        let mut bounds = clustering_range(
            self.table.spec.primary_key(),
            query.partition.values(),
            &query.prefix,
            query.lower.as_ref(),
            query.upper.as_ref(),
        )?;
        if let Some(after) = &query.after {
            self.resume(&mut bounds, after, query.reverse)?;
        }
        self.page(bounds, query.reverse, query.limit, &query.columns)
    }

    /// A page of the table, in key order whatever order is asked for.
    pub(crate) fn scan(&self, scan: &Scan) -> Result<Page> {
        let mut bounds = match &scan.range {
            ScanRange::All => (Bound::Unbounded, Bound::Unbounded),
            ScanRange::Keys { from, to } => (
                Bound::Included(from.to_vec()),
                to.as_ref().map_or(Bound::Unbounded, |to| Bound::Excluded(to.to_vec())),
            ),
            ScanRange::Tokens { .. } => {
                return Err(Error::invalid("a scan by tokens; the embedded engine splits tables by keys"));
            }
        };
        if let Some(after) = &scan.after {
            self.resume(&mut bounds, after, false)?;
        }
        self.page(bounds, false, scan.limit, &scan.columns)
    }

    /// Moves the bound where the page starts behind a row, unless it is behind it already.
    fn resume(&self, (start, end): &mut Bounds, after: &Key, reverse: bool) -> Result<()> {
        let after = RowKey::new(&self.table.spec, after)?.bytes.to_vec();
        let edge = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key.clone()),
            Bound::Unbounded => None,
        };
        if reverse && edge(end).is_none_or(|end| after < end) {
            *end = Bound::Excluded(after);
        } else if !reverse && edge(start).is_none_or(|start| after >= start) {
            *start = Bound::Excluded(after);
        }
        Ok(())
    }

    fn page(&self, bounds: Bounds, reverse: bool, limit: usize, columns: &Projection) -> Result<Page> {
        let mut page = Page::default();
        if is_empty(&bounds) {
            return Ok(page);
        }
        let rows = Rows { iter: self.store.db.snapshot().range(&self.table.rows, bounds), reverse };
        for (looked, entry) in rows.enumerate() {
            if page.rows.len() >= limit.max(1) || (looked >= PAGE_WORK && !page.rows.is_empty()) {
                page.more = true;
                break;
            }
            let (key, value) = entry.into_inner().map_err(|error| self.fault(error))?;
            page.rows.extend(self.row(&key, &Stored::decode(value)?, columns)?);
        }
        Ok(page)
    }

    fn row(&self, encoded: &Slice, stored: &Stored, columns: &Projection) -> Result<Option<StoredRow>> {
        let now = self.now();
        if !stored.record.exists(now) {
            return Ok(None);
        }
        let key = stored.key(&self.table.spec, encoded)?;
        stored.record.read(&self.table.spec, &key, columns, now)
    }

    fn now(&self) -> i64 {
        self.store.clock().seconds()
    }

    fn fault(&self, error: fjall::Error) -> Error {
        from_fjall(error, &self.store.settings.folder)
    }
}

/// The engine below panics on a range that ends before it begins.
fn is_empty(bounds: &Bounds) -> bool {
    match bounds {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => start >= end,
        _ => false,
    }
}

struct Rows {
    iter: Iter,
    reverse: bool,
}

impl Iterator for Rows {
    type Item = Guard;

    fn next(&mut self) -> Option<Guard> {
        if self.reverse { self.iter.next_back() } else { self.iter.next() }
    }
}
