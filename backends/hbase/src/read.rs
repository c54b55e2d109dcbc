//! Reads. A page is one stateless request after another; nothing is kept at the gateway.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::try_join_all;
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
                self.merged_page(layout, spans, scan, call).await
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
        let mut source = Source { span, reverse, rows: VecDeque::new(), done: false };
        let mut page = Page::default();
        while page.rows.len() < limit {
            match source.rows.pop_front() {
                Some(row) => page.rows.extend(stored_row(layout, &row, None, columns)?),
                None if source.done => return Ok(page),
                None => source.fill(self, layout, limit - page.rows.len(), call).await?,
            }
        }
        page.more = !source.done || !source.rows.is_empty();
        Ok(page)
    }

    /// A page of several spans, whose rows are merged by what is behind their salts.
    async fn merged_page(&self, layout: &Layout, spans: Vec<Span>, scan: &Scan, call: &Call) -> Result<Page> {
        let source = |span| Source { span, reverse: false, rows: VecDeque::new(), done: false };
        let mut sources: Vec<Source> = spans.into_iter().map(source).collect();
        let share = scan.limit.div_ceil(sources.len()) + 4;
        let mut page = Page::default();
        loop {
            let starved = sources.iter_mut().filter(|source| source.rows.is_empty() && !source.done);
            try_join_all(starved.map(|source| source.fill(self, layout, share, call))).await?;
            // A source may have had nothing but dead rows.
            if sources.iter().any(|source| source.rows.is_empty() && !source.done) {
                continue;
            }
            let heads = sources.iter_mut().filter(|source| !source.rows.is_empty());
            let least = heads.min_by(|a, b| a.head(layout).cmp(&b.head(layout)));
            let Some(row) = least.and_then(|source| source.rows.pop_front()) else { return Ok(page) };
            page.rows.extend(stored_row(layout, &row, None, &scan.columns)?);
            if page.rows.len() >= scan.limit {
                page.more = sources.iter().any(|source| !source.done || !source.rows.is_empty());
                return Ok(page);
            }
        }
    }
}

/// Rows that come from one span, part by part.
struct Source {
    span: Span,
    reverse: bool,
    rows: VecDeque<RowCells>,
    /// Whether no more come.
    done: bool,
}

impl Source {
    fn head<'a>(&'a self, layout: &Layout) -> Option<&'a [u8]> {
        self.rows.front().map(|row| unsalted(layout, row.row()))
    }

    /// Fetches the next rows, so many at most.
    async fn fill(&mut self, store: &Store, layout: &Layout, wanted: usize, call: &Call) -> Result<()> {
        if self.span.is_empty() {
            self.done = true;
            return Ok(());
        }
        // A reverse scan includes its start, which is this span's excluded end.
        let extra = usize::from(self.reverse && self.span.end.is_some());
        let limit = wanted.min(layout.row_size.rows_per_reply()) + extra;
        let span = self.request(limit);
        let rows = calls::scan(&store.gateways, call, &layout.table, &span).await?;
        layout.row_size.learn(&rows);
        self.done = rows.len() < limit;
        for row in rows {
            if self.reverse && row.row() < self.span.start.as_slice() {
                self.done = true;
                break;
            }
            let excluded = self.reverse && self.span.end.as_deref() == Some(row.row());
            if !excluded {
                self.rows.push_back(row);
            }
        }
        if let Some(last) = self.rows.back() {
            self.span.behind(last.row(), self.reverse);
        }
        Ok(())
    }

    fn request(&self, limit: usize) -> ScanSpan {
        let end = self.span.end.clone().unwrap_or_default();
        let (start, stop) =
            if self.reverse { (end, just_below(&self.span.start)) } else { (self.span.start.clone(), end) };
        ScanSpan { start, stop, reverse: self.reverse, limit }
    }
}
