//! Scans of the whole table.

use std::num::NonZeroUsize;

use futures::stream::{self, BoxStream, StreamExt};

use super::pages::{Paged, Pager};
use super::{ResumeToken, RowPage, Table, projection, request_options};
use crate::error::{Error, Result};
use crate::model::FromRow;
use crate::request::{Projection, RequestOptions, Scan, ScanOrder, ScanRange};

/// A scan of the whole table. [`rows`](Self::rows) or [`page`](Self::page) sends it.
#[derive(Debug)]
#[must_use = "a scan is sent by `rows` or `page`"]
pub struct ScanBuilder {
    table: Table,
    order: ScanOrder,
    parallel: usize,
    limit: usize,
    page_size: usize,
    projection: Projection,
    options: RequestOptions,
    fault: Option<Error>,
}

impl ScanBuilder {
    pub(super) fn new(table: &Table) -> Self {
        Self {
            table: table.clone(),
            order: ScanOrder::Any,
            parallel: 1,
            limit: usize::MAX,
            page_size: 1_000,
            projection: Projection::default(),
            options: RequestOptions::default(),
            fault: None,
        }
    }

    /// Returns the rows in the order of their typed primary keys.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the layout doesn't allow it.
    pub fn key_order(mut self) -> Self {
        self.order = ScanOrder::Key;
        self
    }

    /// Reads this many token or region ranges at a time, in no order; default 1. Has no effect on a scan in key order, nor on
    /// [`page`](Self::page).
    pub fn parallel(mut self, ranges: NonZeroUsize) -> Self {
        self.parallel = ranges.get();
        self
    }

    /// At most this many rows in all; default: all.
    pub fn limit(mut self, rows: usize) -> Self {
        self.limit = rows;
        self
    }

    /// At most this many rows in one request; default 1000.
    pub fn page_size(mut self, rows: usize) -> Self {
        self.page_size = rows;
        self
    }

    projection!();
    request_options!();

    /// The rows, read page by page as the stream is polled. It holds no snapshot: each page sees what is there when it is
    /// read. After an error, what follows of that range is missing: take the rows as incomplete.
    pub fn rows<T: FromRow + Send + 'static>(self) -> BoxStream<'static, Result<T>> {
        let (limit, parallel) = (self.limit, self.parallel);
        if self.order == ScanOrder::Key || parallel == 1 {
            return match self.pager(ScanRange::All) {
                Ok(pager) => pager.rows().boxed(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            };
        }
        let ranges = self.table.client.topology().split(&self.table.spec, parallel);
        let pagers: Result<Vec<Pager>> = ranges.into_iter().map(|range| self.pager(range)).collect();
        match pagers {
            Ok(pagers) => {
                let streams = stream::iter(pagers).map(|pager| pager.rows().boxed());
                streams.flatten_unordered(parallel).take(limit).boxed()
            }
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    /// One page of at most the page size: the first one, or the one behind a token.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a token of another table.
    pub async fn page<T: FromRow>(self, after: Option<&ResumeToken>) -> Result<RowPage<T>> {
        let mut pager = self.pager(ScanRange::All)?;
        if let Some(token) = after {
            let key = token.key(&pager.table.spec)?;
            pager.paged.resume(key);
        }
        pager.page().await
    }

    fn pager(&self, range: ScanRange) -> Result<Pager> {
        if let Some(fault) = &self.fault {
            return Err(fault.share().with_context("scan", self.table.spec.name()));
        }
        let columns = self.projection.clone();
        let scan = Scan { range, order: self.order, after: None, limit: self.page_size, columns };
        let table = self.table.clone();
        let paged = Paged::Scan(scan);
        Ok(Pager { table, paged, options: self.options, page_size: self.page_size, left: self.limit })
    }
}
