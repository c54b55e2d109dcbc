//! Reads. A page is one stateless request after another; nothing is kept at the gateway.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::try_join_all;
use peristyle_core::merge::{Part, Source, merge};
use peristyle_core::model::{Key, StoredRow};
use peristyle_core::request::{Projection, Query, Read, Scan};
use peristyle_core::response::Page;
use peristyle_core::{Response, Result};

use crate::codec::{Layout, RowKeys, Span, encode_row_key, just_below, query_span, scan_spans, stored_row, unsalted};
use crate::connection::Call;
use crate::store::Store;
use crate::wire::{RowCells, ScanSpan, calls};

/// The bytes of rows that one reply of a scan is meant to have.
const REPLY_BYTES: usize = 1 << 20;
/// The most rows that one reply of a scan has.
const REPLY_ROWS: usize = 10_000;

/// What the rows of a table were like lately, in bytes: how many fit a reply.
#[derive(Debug)]
pub(crate) struct RowSize(AtomicUsize);

impl Default for RowSize {
    fn default() -> Self {
        Self(AtomicUsize::new(4096))
    }
}

impl RowSize {
    fn rows_per_reply(&self) -> usize {
        (REPLY_BYTES / self.0.load(Ordering::Relaxed).max(1)).clamp(1, REPLY_ROWS)
    }

    fn learn(&self, rows: &[RowCells]) {
        let cells = rows.iter().flat_map(RowCells::cells);
        let bytes: usize = cells.map(|cell| cell.value.len() + cell.name.qualifier.len() + 24).sum();
        if let Some(average) = bytes.checked_div(rows.len()) {
            self.0.store(average.max(self.0.load(Ordering::Relaxed) / 2), Ordering::Relaxed);
        }
    }
}

impl Store {
    pub(crate) async fn read(&self, layout: &Layout, read: Read, call: &Call) -> Result<Response> {
        match read {
            Read::Get { key, columns } => self.get(layout, key, &columns, call).await.map(Response::Row),
            Read::GetAll { keys, columns } => self.get_all(layout, keys, &columns, call).await.map(Response::Rows),
            Read::Query(query) => self.query(layout, &query, call).await.map(Response::Page),
            Read::Scan(scan) => self.scan(layout, &scan, call).await.map(Response::Page),
        }
    }

    async fn get(&self, layout: &Layout, key: Key, columns: &Projection, call: &Call) -> Result<Option<StoredRow>> {
        let row = encode_row_key(layout, key.values())?;
        let call = call.at(self.place(layout, &row));
        let found = calls::get(&self.gateways, &call, &layout.table, &row).await?;
        found.map_or(Ok(None), |row| stored_row(layout, &row, Some(key), columns))
    }

    async fn get_all(
        &self,
        layout: &Layout,
        mut keys: Vec<Key>,
        columns: &Projection,
        call: &Call,
    ) -> Result<Vec<Option<StoredRow>>> {
        let mut rows = RowKeys::with_capacity(keys.len());
        keys.iter().try_for_each(|key| rows.push(layout, key.values()))?;
        let groups = self.by_place(layout, rows.iter().enumerate(), |(_, row)| row);
        let fetch = groups.into_iter().map(|(place, group)| async {
            let (places, rows): (Vec<usize>, Vec<&[u8]>) = group.into_iter().unzip();
            let found = calls::get_multiple(&self.gateways, &call.at(place), &layout.table, &rows).await?;
            Ok::<_, peristyle_core::Error>(places.into_iter().zip(found))
        });
        let mut answers: Vec<Option<StoredRow>> = keys.iter().map(|_| None).collect();
        for (place, row) in try_join_all(fetch).await?.into_iter().flatten() {
            if let (Some(row), Some(answer)) = (row, answers.get_mut(place)) {
                *answer = stored_row(layout, &row, keys.get_mut(place).map(std::mem::take), columns)?;
            }
        }
        Ok(answers)
    }

    async fn query(&self, layout: &Layout, query: &Query, call: &Call) -> Result<Page> {
        let span = query_span(layout, query)?;
        let call = call.at(self.place(layout, &span.start));
        self.page(layout, span, query.reverse, query.limit, &query.columns, &call).await
    }

    async fn scan(&self, layout: &Layout, scan: &Scan, call: &Call) -> Result<Page> {
        let mut spans = scan_spans(layout, scan)?;
        match (spans.pop(), spans.is_empty()) {
            (None, _) => Ok(Page::default()),
            (Some(only), true) => self.page(layout, only, false, scan.limit, &scan.columns, call).await,
            (Some(last), false) => {
                spans.push(last);
                let columns = &scan.columns;
                let rest = |span| Rest { store: self, layout, columns, call, span, reverse: false };
                merge(spans.into_iter().map(rest), scan.limit).await
            }
        }
    }

    /// A page of one span.
    async fn page(
        &self,
        layout: &Layout,
        span: Span,
        reverse: bool,
        limit: usize,
        columns: &Projection,
        call: &Call,
    ) -> Result<Page> {
        let mut rest = Rest { store: self, layout, columns, call, span, reverse };
        let mut page = Page { more: true, ..Page::default() };
        while page.more && page.rows.len() < limit {
            let (rows, more) = rest.fetch(limit - page.rows.len()).await?;
            for row in rows {
                page.rows.extend(stored_row(layout, &row, None, columns)?);
            }
            page.more = more;
        }
        Ok(page)
    }
}

/// The rows of one span that weren't read.
struct Rest<'a> {
    store: &'a Store,
    layout: &'a Layout,
    columns: &'a Projection,
    call: &'a Call,
    span: Span,
    reverse: bool,
}

impl Source for Rest<'_> {
    /// The order of salted tables is that of what is behind their salts.
    async fn next(&mut self, wanted: usize) -> Result<Part> {
        let (found, more) = self.fetch(wanted).await?;
        let mut rows = Vec::with_capacity(found.len());
        for row in found {
            let stored = stored_row(self.layout, &row, None, self.columns)?;
            rows.extend(stored.map(|stored| (unsalted(self.layout, row.row()).to_vec(), stored)));
        }
        Ok(Part { rows, more })
    }
}

impl Rest<'_> {
    /// The next rows, so many at most, and whether there may be more.
    async fn fetch(&mut self, wanted: usize) -> Result<(Vec<RowCells>, bool)> {
        if self.span.is_empty() {
            return Ok((Vec::new(), false));
        }
        // A reverse scan includes its start, which is this span's excluded end.
        let extra = usize::from(self.reverse && self.span.end.is_some());
        let limit = wanted.min(self.layout.row_size.rows_per_reply());
        let span = self.request(limit + extra);
        let mut rows = calls::scan(&self.store.gateways, self.call, &self.layout.table, &span).await?;
        self.layout.row_size.learn(&rows);
        let mut more = rows.len() >= limit + extra;
        if self.reverse {
            rows.retain(|row| self.span.end.as_deref() != Some(row.row()));
            // What it stops below isn't quite the start.
            if let Some(end) = rows.iter().position(|row| row.row() < self.span.start.as_slice()) {
                rows.truncate(end);
                more = false;
            }
        }
        if rows.len() > limit {
            rows.truncate(limit);
            more = true;
        }
        if let Some(last) = rows.last() {
            self.span.behind(last.row(), self.reverse);
        }
        Ok((rows, more))
    }

    fn request(&self, limit: usize) -> ScanSpan {
        let end = self.span.end.clone().unwrap_or_default();
        let (start, stop) =
            if self.reverse { (end, just_below(&self.span.start)) } else { (self.span.start.clone(), end) };
        ScanSpan { start, stop, reverse: self.reverse, limit }
    }
}
