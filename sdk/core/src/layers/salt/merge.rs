//! Scans in key order: the buckets side by side, merged.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use tower::Service;

use super::Work;
use super::layout::Layout;
use crate::capability::Capability;
use crate::codec::ordered::encode_key;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Key, StoredRow};
use crate::request::{Action, Projection, Query, Read, Request, Scan};
use crate::response::{Page, Response};

/// Buckets that are asked at a time.
const AT_A_TIME: usize = 32;
/// Rows asked of a bucket beyond its share of the page: buckets are not quite equal.
const SPARE: usize = 4;

/// A page in the order of the declared keys.
pub(super) async fn page<S>(work: &Work<S>, layout: &Layout, scan: Scan) -> Result<Page>
where
    S: Service<Request, Response = Response, Error = Error> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    let Some(buckets) = layout.buckets() else {
        let message = "a table whose salt is a prefix has no key order: scan in any order, or salt it in buckets";
        return Err(Error::new(ErrorKind::Unsupported(Capability::OrderedScan), message));
    };
    let share = scan.limit.div_ceil(usize::from(buckets).max(1)) + SPARE;
    let mut sources: Vec<Bucket> = (0..buckets).map(|bucket| Bucket::new(bucket, scan.after.clone())).collect();
    let mut page = Page::default();
    while page.rows.len() < scan.limit {
        let starved = sources.iter_mut().filter(|source| source.rows.is_empty() && !source.done);
        let fills = starved.map(|source| source.fill(work, layout, share, &scan.columns));
        let fills: Vec<_> = fills.collect();
        stream::iter(fills).buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
        let heads = sources.iter_mut().filter(|source| !source.rows.is_empty());
        let least = heads.min_by(|a, b| a.head().cmp(&b.head()));
        let Some((_, row)) = least.and_then(|source| source.rows.pop_front()) else { return Ok(page) };
        page.rows.push(row);
    }
    page.more = sources.iter().any(|source| !source.done || !source.rows.is_empty());
    Ok(page)
}

/// The rows of one bucket, part by part.
struct Bucket {
    number: u16,
    /// The key behind which the next part begins.
    after: Option<Key>,
    /// By encoded key.
    rows: VecDeque<(Vec<u8>, StoredRow)>,
    /// Whether no more come.
    done: bool,
}

impl Bucket {
    fn new(number: u16, after: Option<Key>) -> Self {
        Self { number, after, rows: VecDeque::new(), done: false }
    }

    fn head(&self) -> Option<&[u8]> {
        self.rows.front().map(|(key, _)| key.as_slice())
    }

    async fn fill<S>(&mut self, work: &Work<S>, layout: &Layout, limit: usize, columns: &Projection) -> Result<()>
    where
        S: Service<Request, Response = Response, Error = Error> + Clone + Send + Sync + 'static,
        S::Future: Send,
    {
        while self.rows.is_empty() && !self.done {
            let read = self.query(layout, limit, columns);
            let table = Arc::clone(&layout.stored);
            let page = layout.answer(work.send(Action::Read { table, read }).await?).into_page()?;
            self.done = !page.more;
            for row in page.rows {
                let key = row.key(&layout.declared)?;
                let mut encoded = Vec::with_capacity(32);
                encode_key(key.values(), layout.declared.primary_key(), &mut encoded)?;
                self.rows.push_back((encoded, row));
                self.after = Some(key);
            }
        }
        Ok(())
    }

    fn query(&self, layout: &Layout, limit: usize, columns: &Projection) -> Read {
        let salt = layout.bucket_value(self.number);
        let after = self.after.as_ref().map(|after| Layout::behind(&salt, after));
        let mut read = Read::Query(Query {
            partition: Key::new(vec![salt]),
            prefix: Vec::new(),
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
            reverse: false,
            after,
            limit,
            columns: columns.clone(),
        });
        layout.projection(&mut read);
        read
    }
}
