//! Scans in key order: the buckets side by side, merged.

use std::ops::Bound;
use std::sync::Arc;

use tower::Service;

use super::Work;
use super::layout::Layout;
use crate::capability::Capability;
use crate::codec::ordered::encode_key;
use crate::error::{Error, ErrorKind, Result};
use crate::merge::{Part, Source, merge};
use crate::model::Key;
use crate::request::{Action, Projection, Query, Read, Request, Scan};
use crate::response::{Page, Response};

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
    let Scan { after, columns, limit, .. } = scan;
    let bucket = |number| Bucket { work, layout, columns: &columns, number, after: after.clone() };
    merge((0..buckets).map(bucket), limit).await
}

/// The rows of one bucket.
struct Bucket<'a, S> {
    work: &'a Work<S>,
    layout: &'a Layout,
    columns: &'a Projection,
    number: u16,
    /// The key behind which the next part begins.
    after: Option<Key>,
}

impl<S> Source for Bucket<'_, S>
where
    S: Service<Request, Response = Response, Error = Error> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    async fn next(&mut self, wanted: usize) -> Result<Part> {
        let (read, layout) = (self.query(wanted), self.layout);
        let table = Arc::clone(&layout.stored);
        let page = layout.answer(self.work.send(Action::Read { table, read }).await?).into_page()?;
        let mut rows = Vec::with_capacity(page.rows.len());
        for row in page.rows {
            let key = row.key(&layout.declared)?;
            let mut encoded = Vec::with_capacity(32);
            encode_key(key.values(), layout.declared.primary_key(), &mut encoded)?;
            rows.push((encoded, row));
            self.after = Some(key);
        }
        Ok(Part { rows, more: page.more })
    }
}

impl<S> Bucket<'_, S> {
    fn query(&self, limit: usize) -> Read {
        let salt = self.layout.bucket_value(self.number);
        let after = self.after.as_ref().map(|after| Layout::behind(&salt, after));
        let mut read = Read::Query(Box::new(Query {
            partition: Key::new([salt]),
            prefix: Vec::new(),
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
            reverse: false,
            after,
            limit,
            columns: self.columns.clone(),
        }));
        self.layout.projection(&mut read);
        read
    }
}
