//! Queries of one partition.

use std::ops::{Bound, RangeBounds};

use futures::stream::{BoxStream, StreamExt};

use super::pages::{Paged, Pager};
use super::{ResumeToken, RowPage, Table, projection, request_options};
use crate::error::{Error, Result};
use crate::model::{FromRow, Key, ToKey, ToValue, Value};
use crate::request::{Projection, Query, RequestOptions};

/// A query of one partition, in clustering order. [`rows`](Self::rows) or [`page`](Self::page) sends it.
///
/// ```
/// # use futures::TryStreamExt;
/// # use peristyle_core::{client::Client, memory::MemoryBackend, model::{Order, Row, TableSpec, Timestamp, Type}};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> peristyle_core::Result<()> {
/// # let client = Client::builder(MemoryBackend::new()).build();
/// let spec = TableSpec::builder("property")
///     .partition("group", Type::Text)
///     .clustering("date", Type::Timestamp, Order::Descending)
///     .column("value", Type::Text)
///     .build()?;
/// client.create_table(&spec).await?;
/// let property = client.table(spec).await?;
/// for day in 1..=5 {
///     property.put(&Row::new().with("group", "g").with("date", Timestamp(day)).with("value", "v")).await?;
/// }
/// let days: Vec<Row> = property.query("g").range(2..5).limit(2).rows().try_collect().await?;
/// assert_eq!(days[0].get("date"), Some(&Timestamp(4).into()));
/// assert_eq!(days.len(), 2);
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a query is sent by `rows` or `page`"]
pub struct QueryBuilder {
    table: Table,
    partition: Result<Key>,
    prefix: Vec<Value>,
    range: (Bound<Value>, Bound<Value>),
    reverse: bool,
    limit: usize,
    page_size: usize,
    projection: Projection,
    options: RequestOptions,
    fault: Option<Error>,
}

impl QueryBuilder {
    pub(super) fn new(table: &Table, partition: Result<Key>) -> Self {
        Self {
            table: table.clone(),
            partition,
            prefix: Vec::new(),
            range: (Bound::Unbounded, Bound::Unbounded),
            reverse: false,
            limit: usize::MAX,
            page_size: 1_000,
            projection: Projection::default(),
            options: RequestOptions::default(),
            fault: None,
        }
    }

    /// Only rows that have these values in the first clustering columns. Set it before [`range`](Self::range).
    pub fn prefix(mut self, values: impl ToKey) -> Self {
        let clustering = self.table.spec.clustering_key();
        let fits = (0..=clustering.len()).rev().find_map(|len| values.to_key(clustering.get(..len)?).ok());
        match fits {
            Some(values) if self.is_unbounded() => self.prefix = values.values().to_vec(),
            Some(_) => {
                self.fail(Error::invalid("set the prefix before the range, which goes on where the prefix ends"));
            }
            None => {
                if let Err(error) = values.to_key(clustering) {
                    self.fail(error);
                }
            }
        }
        self
    }

    /// Only rows within this range of the next clustering column, by value, whatever the column's order: `start..end` has
    /// `start` and lacks `end`.
    pub fn range<V: ToValue>(mut self, range: impl RangeBounds<V>) -> Self {
        let bound = |bound: Bound<&V>| match bound {
            Bound::Included(value) => self.bound(value).map(Bound::Included),
            Bound::Excluded(value) => self.bound(value).map(Bound::Excluded),
            Bound::Unbounded => Ok(Bound::Unbounded),
        };
        match bound(range.start_bound()).and_then(|lower| Ok((lower, bound(range.end_bound())?))) {
            Ok(range) => self.range = range,
            Err(error) => self.fail(error),
        }
        self
    }

    fn bound<V: ToValue>(&self, value: &V) -> Result<Value> {
        let spec = &self.table.spec;
        let column = spec.clustering_key().get(self.prefix.len()).ok_or_else(|| {
            Error::invalid(format!("table {} has no clustering column left for a range", spec.name()))
        })?;
        value.to_value(column)
    }

    fn is_unbounded(&self) -> bool {
        matches!(self.range, (Bound::Unbounded, Bound::Unbounded))
    }

    fn fail(&mut self, error: Error) {
        self.fault.get_or_insert(error);
    }

    /// The last row comes first.
    pub fn reverse(mut self) -> Self {
        self.reverse = true;
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

    /// The rows, read page by page as the stream is polled. The stream ends after the first error. It holds no snapshot: each
    /// page sees what is there when it is read.
    pub fn rows<T: FromRow + Send + 'static>(self) -> BoxStream<'static, Result<T>> {
        match self.pager() {
            Ok(pager) => pager.rows().boxed(),
            Err(error) => futures::stream::iter([Err(error)]).boxed(),
        }
    }

    /// One page of at most the page size: the first one, or the one behind a token.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a token of another table.
    pub async fn page<T: FromRow>(self, after: Option<&ResumeToken>) -> Result<RowPage<T>> {
        let mut pager = self.pager()?;
        if let Some(token) = after {
            let key = token.key(&pager.table.spec)?;
            pager.paged.resume(key);
        }
        pager.page().await
    }

    fn pager(self) -> Result<Pager> {
        let context = |error: Error| error.with_context("query", self.table.spec.name());
        if let Some(fault) = self.fault {
            return Err(context(fault));
        }
        let query = Query {
            partition: self.partition.map_err(context)?,
            prefix: self.prefix,
            lower: self.range.0,
            upper: self.range.1,
            reverse: self.reverse,
            after: None,
            limit: self.page_size,
            columns: self.projection,
        };
        let (options, page_size, left) = (self.options, self.page_size, self.limit);
        Ok(Pager { table: self.table, paged: Paged::Query(query), options, page_size, left })
    }
}
