//! Handles of tables: the operations, each a builder that is awaited.

mod bulk;
mod conditional;
mod pages;
mod query;
mod read;
mod resume;
mod scan;
mod write;

use std::sync::Arc;

use futures::Stream;

pub use self::bulk::{GetAll, PutAll, PutAllReport};
pub use self::conditional::{CompareAndPut, Compared, Increment};
pub use self::pages::RowPage;
pub use self::query::QueryBuilder;
pub use self::read::Get;
pub use self::resume::ResumeToken;
pub use self::scan::ScanBuilder;
pub use self::write::{Delete, Put};
use crate::client::Client;
use crate::error::Result;
use crate::model::{FromRow, TableSpec, ToKey, ToRow};
use crate::request::Mutation;
use crate::streamer::StreamerBuilder;

/// A table of a [`Client`], made by [`Client::table`]. Clones cost two reference counts.
///
/// Every operation is a builder: it is sent when it is awaited. Faults of the arguments are reported then, too, as
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument). Dropping an operation's future sends nothing or the whole.
#[derive(Debug, Clone)]
pub struct Table {
    client: Client,
    spec: Arc<TableSpec>,
}

impl Table {
    pub(crate) fn new(client: Client, spec: Arc<TableSpec>) -> Self {
        Self { client, spec }
    }

    /// The table's declaration.
    pub fn spec(&self) -> &Arc<TableSpec> {
        &self.spec
    }

    /// The client it belongs to.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Puts the present columns of a row; the others stay as they are. Idempotent: its write time is fixed here.
    pub fn put<R: ToRow + ?Sized>(&self, row: &R) -> Put<'_> {
        Put::new(self, Mutation::put_row(row, &self.spec))
    }

    /// Puts many rows, put together into requests by [owner](crate::Grouping); each row has an outcome of its own, and only
    /// those that failed are sent again. Of several writes of one row, the last wins. Rows are taken as there is room for
    /// them: of 65 536 rows and 64 MiB without an outcome.
    ///
    /// # Cancel safety
    /// Dropping the future sends no further rows. The requests under way, up to the concurrency, were sent or not.
    pub fn put_all<'a, R: ToRow>(&'a self, rows: impl IntoIterator<Item = R, IntoIter: Send + 'a>) -> PutAll<'a> {
        PutAll::new(self, futures::stream::iter(rows))
    }

    /// Puts the rows of a stream, as [`put_all`](Self::put_all) puts those of an iterator. A row waits until its request is
    /// full, or the stream ends, or there is no more room; a [streamer](Self::streamer) lingers for nobody.
    pub fn put_stream<'a, R: ToRow>(&'a self, rows: impl Stream<Item = R> + Send + 'a) -> PutAll<'a> {
        PutAll::new(self, rows)
    }

    /// Writes rows without end in the background: see [`Streamer`](crate::Streamer). Puts and deletes only: a write that isn't
    /// idempotent is sent by itself.
    pub fn streamer(&self) -> StreamerBuilder {
        StreamerBuilder::new(self.clone())
    }

    /// Reads one row by its full primary key.
    ///
    /// ```
    /// # use peristyle_core::{model::Row, table::Table, Result};
    /// # async fn example(table: &Table) -> Result<()> {
    /// let row: Option<Row> = table.get(("g", "a_0", 17)).await?;
    /// # Ok(()) }
    /// ```
    pub fn get<T: FromRow>(&self, key: impl ToKey) -> Get<'_, T> {
        Get::new(self, key.to_key(self.spec.primary_key()))
    }

    /// Reads many rows by their full primary keys, in the order of the keys, which may repeat.
    pub fn get_all<T: FromRow>(&self, keys: impl IntoIterator<Item = impl ToKey>) -> GetAll<'_, T> {
        let keys: Result<_> = keys.into_iter().map(|key| key.to_key(self.spec.primary_key())).collect();
        GetAll::new(self, keys)
    }

    /// Deletes a row, or some of its columns. Idempotent: its write time is fixed here.
    pub fn delete<K: ToKey>(&self, key: K) -> Delete<'_> {
        Delete::row(self, key.to_key(self.spec.primary_key()))
    }

    /// Deletes every row of a partition.
    pub fn delete_partition<K: ToKey>(&self, partition_key: K) -> Delete<'_> {
        Delete::partition(self, partition_key.to_key(self.spec.partition_key()))
    }

    /// Adds to counters of a row. Not idempotent: after an error with [`Outcome::Unknown`](crate::Outcome::Unknown) it may or
    /// may not have been added.
    pub fn increment<K: ToKey>(&self, key: K) -> Increment<'_> {
        Increment::new(self, key.to_key(self.spec.primary_key()))
    }

    /// Puts a row if a condition holds, in one atomic step; by default, if the row is absent. Not idempotent.
    ///
    /// The server decides when it happens. Don't mix it with plain puts of the same columns that carry write times of their
    /// own: a plain write ahead of the server's clock hides it.
    pub fn compare_and_put<R: ToRow + ?Sized>(&self, row: &R) -> CompareAndPut<'_> {
        CompareAndPut::new(self, Mutation::put_row(row, &self.spec))
    }

    /// Reads rows of one partition, in clustering order.
    pub fn query<K: ToKey>(&self, partition_key: K) -> QueryBuilder {
        QueryBuilder::new(self, partition_key.to_key(self.spec.partition_key()))
    }

    /// Reads the whole table.
    pub fn scan(&self) -> ScanBuilder {
        ScanBuilder::new(self)
    }
}

/// What builders of requests have in common: options, set by name.
macro_rules! request_options {
    () => {
        /// How many replicas must answer; default: the client's setting.
        pub fn consistency(mut self, level: $crate::request::Consistency) -> Self {
            self.options.consistency = Some(level);
            self
        }

        /// The limit for one attempt at one server; default: the backend's setting.
        pub fn attempt_timeout(mut self, limit: std::time::Duration) -> Self {
            self.options.attempt_timeout = Some(limit);
            self
        }

        /// How long it may take in all, from now; default: the client's setting.
        pub fn timeout(mut self, limit: std::time::Duration) -> Self {
            self.options.deadline = std::time::Instant::now().checked_add(limit);
            self
        }
    };
}
use request_options;

/// What builders of reads have in common: which columns come back.
macro_rules! projection {
    () => {
        /// Returns only these value columns, and the key; default: all.
        pub fn columns<'c>(mut self, names: impl IntoIterator<Item = &'c str>) -> Self {
            match $crate::table::project(&self.table, names) {
                Ok(columns) => self.projection.columns = Some(columns),
                Err(error) => self.fault = self.fault.or(Some(error)),
            }
            self
        }
    };
}
use projection;

/// The indexes of these value columns, ascending.
fn project<'c>(table: &Table, names: impl IntoIterator<Item = &'c str>) -> Result<Arc<[usize]>> {
    let spec = &table.spec;
    let mut indexes = names.into_iter().map(|name| spec.require(name)).collect::<Result<Vec<_>>>()?;
    indexes.retain(|index| *index >= spec.key_len());
    indexes.sort_unstable();
    indexes.dedup();
    Ok(indexes.into())
}
