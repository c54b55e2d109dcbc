//! Reads of ranges: pages of a partition, and of the table.

use std::sync::Arc;

use peristyle_core::codec::token::serialise_partition;
use peristyle_core::model::{StoredRow, TableSpec, Value};
use peristyle_core::request::{Query, Scan, ScanOrder, ScanRange};
use peristyle_core::response::Page;
use peristyle_core::{Capability, Error, Response, Result};

use crate::backend::NAME;
use crate::codec::{Binder, Bound};
use crate::read::selection;
use crate::request::{Call, Shared};
use crate::segment::Segment;
use crate::statement::{ScanStart, Selection, Shape};

pub(crate) async fn query(shared: Arc<Shared>, table: Arc<TableSpec>, query: Query, call: Call) -> Result<Response> {
    let mut reader = Reader::new(shared, table, query.limit, call)?;
    reader.selection = selection(&query.columns, &reader.table);
    let clustering = reader.table.clustering_key().len();
    if query.partition.values().len() != reader.table.partition_len() || query.prefix.len() > clustering {
        return Err(Error::invalid(
            "a query takes the whole partition key, and no more values than clustering columns",
        ));
    }
    let bounded = query.prefix.len() < clustering;
    let whole = Segment {
        equal: &query.prefix,
        lower: if bounded { query.lower.as_ref() } else { std::ops::Bound::Unbounded },
        upper: if bounded { query.upper.as_ref() } else { std::ops::Bound::Unbounded },
    };
    let partition = query.partition.values();
    let segments = match &query.after {
        None => vec![whole],
        Some(after) => {
            let (same, clustering) = reader.divide(after.values());
            if same != partition {
                return Err(Error::invalid("the row to go on behind is of another partition"));
            }
            whole.behind(clustering, &reader.table, query.reverse)?
        }
    };
    reader.segments(partition, &segments, query.reverse).await?;
    Ok(reader.page())
}

pub(crate) async fn scan(shared: Arc<Shared>, table: Arc<TableSpec>, scan: Scan, call: Call) -> Result<Response> {
    let mut reader = Reader::new(shared, table, scan.limit, call)?;
    let (after_token, to) = match scan.range {
        _ if scan.order == ScanOrder::Key => return Err(Error::unsupported(Capability::OrderedScan, NAME)),
        ScanRange::Keys { .. } => return Err(Error::unsupported(Capability::OrderedScan, NAME)),
        ScanRange::All => (None, None),
        ScanRange::Tokens { after, to } => (Some(after).filter(|after| *after != i64::MIN), Some(to)),
    };
    reader.selection = selection(&scan.columns, &reader.table);
    let Some(after) = &scan.after else {
        reader.partitions(after_token, &[], to.filter(|to| *to != i64::MAX)).await?;
        return Ok(reader.page());
    };
    let (partition, clustering) = reader.divide(after.values());
    let rest = Segment::ALL.behind(clustering, &reader.table, false)?;
    reader.segments(partition, &rest, false).await?;
    for same in reader.partitions_behind(partition).await? {
        reader.segments(&same, &[Segment::ALL], false).await?;
    }
    reader.partitions(None, partition, to.filter(|to| *to != i64::MAX)).await?;
    Ok(reader.page())
}

/// Fills one page from several statements.
struct Reader {
    shared: Arc<Shared>,
    table: Arc<TableSpec>,
    call: Call,
    selection: Selection,
    limit: usize,
    rows: Vec<StoredRow>,
}

impl Reader {
    fn new(shared: Arc<Shared>, table: Arc<TableSpec>, limit: usize, call: Call) -> Result<Self> {
        Shared::check(&table)?;
        // The server's LIMIT has 31 bits.
        let limit = limit.min(i32::MAX as usize);
        if limit == 0 {
            return Err(Error::invalid("a page of 0 rows: give a limit above 0"));
        }
        let selection = selection(&peristyle_core::request::Projection::default(), &table);
        Ok(Self { shared, table, call, selection, limit, rows: Vec::new() })
    }

    fn divide<'k>(&self, key: &'k [Value]) -> (&'k [Value], &'k [Value]) {
        key.split_at(self.table.partition_len().min(key.len()))
    }

    /// A full page may have more behind it; one that isn't full ends the read.
    fn page(self) -> Response {
        Response::Page(Page { more: self.rows.len() >= self.limit, rows: self.rows })
    }

    fn left(&self) -> Option<i32> {
        i32::try_from(self.limit - self.rows.len().min(self.limit)).ok().filter(|left| *left > 0)
    }

    /// Reads parts of one partition, one after the other.
    async fn segments(&mut self, partition: &[Value], segments: &[Segment<'_>], reverse: bool) -> Result<()> {
        for segment in segments {
            let Some(left) = self.left() else { return Ok(()) };
            let shape = Shape::Query(self.selection.clone(), segment.slice(reverse));
            let values = Bound(|binder: &mut Binder<'_, '_, '_>| {
                binder.values(partition)?;
                binder.values(segment.equal)?;
                segment.bounds().try_for_each(|value| binder.value(value))?;
                binder.int(left)
            });
            self.read(shape, values).await?;
        }
        Ok(())
    }

    /// Reads partitions in token order: behind a token or behind that of a partition, up to and including `to`.
    async fn partitions(&mut self, after_token: Option<i64>, after_key: &[Value], to: Option<i64>) -> Result<()> {
        let Some(left) = self.left() else { return Ok(()) };
        let start = match (after_token, after_key) {
            (None, []) => ScanStart::First,
            (Some(_), _) => ScanStart::AfterToken,
            (None, _) => ScanStart::AfterKey,
        };
        let shape = Shape::Scan { selection: self.selection.clone(), start, end: to.is_some() };
        let values = Bound(|binder: &mut Binder<'_, '_, '_>| {
            after_token.map_or(Ok(()), |token| binder.bigint(token))?;
            binder.values(after_key)?;
            to.map_or(Ok(()), |token| binder.bigint(token))?;
            binder.int(left)
        });
        self.read(shape, values).await
    }

    /// The partitions that share a partition's token and come behind it: those with larger key bytes. There are hardly ever
    /// any, but a scan that skipped them would lose rows.
    async fn partitions_behind(&self, partition: &[Value]) -> Result<Vec<Vec<Value>>> {
        if self.left().is_none() {
            return Ok(Vec::new());
        }
        let statement = self.shared.statement(&self.table, Shape::SameToken, &self.call).await?;
        let values = Bound(|binder: &mut Binder<'_, '_, '_>| binder.values(partition));
        let mut found = Vec::new();
        self.shared.fetch(&self.table, &statement, &values, &self.call, usize::MAX, &mut found).await?;
        let own = serialise_partition(partition)?;
        let keys = found.into_iter().map(|row| row.values.into_iter().take(partition.len()).flatten().collect());
        Ok(keys.filter(|key: &Vec<Value>| serialise_partition(key).is_ok_and(|bytes| bytes > own)).collect())
    }

    async fn read(&mut self, shape: Shape, values: impl scylla::serialize::row::SerializeRow) -> Result<()> {
        let statement = self.shared.statement(&self.table, shape, &self.call).await?;
        self.shared.fetch(&self.table, &statement, &values, &self.call, self.limit, &mut self.rows).await
    }
}
