//! The client: one backend behind one stack of layers.

mod builder;
mod layered;
mod stack;

use std::sync::Arc;

pub use self::builder::ClientBuilder;
use self::stack::Stack;
use crate::backend::{Backend, Topology};
use crate::capability::{Capabilities, Capability};
use crate::clock::WriteClock;
use crate::error::{Error, ErrorKind, Result};
use crate::grouping::Grouping;
use crate::layers::salt::SaltedTopology;
use crate::model::{ColumnKind, TableSpec, WriteTime};
use crate::request::{Replication, Request, Schema};
use crate::response::Response;
use crate::table::Table;

/// A connection to a database. Clones share everything and cost a reference count.
#[derive(Debug, Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    backend: Arc<dyn Backend>,
    /// The backend's, and what the layers add.
    capabilities: Capabilities,
    topology: SaltedTopology,
    stack: Box<dyn Stack>,
    writes: WriteClock,
    batch_rows: usize,
    batch_concurrency: usize,
    grouping: Grouping,
}

impl Client {
    /// Starts a client of this backend.
    pub fn builder(backend: impl Backend) -> ClientBuilder {
        ClientBuilder::new(Arc::new(backend))
    }

    /// Sends one request through the whole stack. The handles of [`Table`] are built on it.
    ///
    /// # Errors
    /// Whatever the layers and the backend report, with operation and table named.
    ///
    /// # Cancel safety
    /// Dropping the future sends nothing or the whole.
    pub async fn call(&self, request: Request) -> Result<Response> {
        let (operation, table) = (request.operation(), request.table());
        let answer = self.shared.stack.call(request).await;
        answer.map_err(|error| error.with_context(operation, table.as_deref().unwrap_or_default()))
    }

    /// Opens a table, checked against the live schema where the backend can tell it.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if there is no such table, [`SchemaMismatch`](ErrorKind::SchemaMismatch) that lists how
    /// the live columns differ. Live value columns that the declaration lacks are no difference.
    pub async fn table(&self, spec: impl Into<Arc<TableSpec>>) -> Result<Table> {
        let spec = spec.into();
        if self.capabilities().has(Capability::Introspection) {
            let live = self.describe_table(spec.name()).await?.ok_or_else(|| {
                let message = "there is no such table; create it, or check the keyspace";
                Error::new(ErrorKind::NotFound, message).with_context("table", spec.name())
            })?;
            compare(&spec, &live).map_err(|error| error.with_context("table", spec.name()))?;
        }
        Ok(Table::new(self.clone(), spec))
    }

    /// Opens a table as the live schema declares it.
    ///
    /// # Errors
    /// As [`table`](Self::table); [`Unsupported`](ErrorKind::Unsupported) where the backend can't tell its columns.
    pub async fn introspect(&self, name: &str) -> Result<Table> {
        let live = self.describe_table(name).await?;
        let spec =
            live.ok_or_else(|| Error::new(ErrorKind::NotFound, "there is no such table").with_context("table", name))?;
        Ok(Table::new(self.clone(), Arc::new(spec)))
    }

    /// Makes a table.
    ///
    /// # Errors
    /// [`AlreadyExists`](ErrorKind::AlreadyExists) if a table of that name exists.
    pub async fn create_table(&self, spec: &TableSpec) -> Result<()> {
        self.create(spec, false).await
    }

    /// Makes a table if there is none of its name; [`table`](Self::table) then tells whether the columns fit.
    pub async fn create_table_if_absent(&self, spec: &TableSpec) -> Result<()> {
        self.create(spec, true).await
    }

    async fn create(&self, spec: &TableSpec, if_absent: bool) -> Result<()> {
        let table = Arc::new(spec.clone());
        self.call(Request::schema(Schema::Create { table, if_absent })).await?.into_done()
    }

    /// Removes a table and its rows.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if there is no such table.
    pub async fn drop_table(&self, name: &str) -> Result<()> {
        self.call(Request::schema(Schema::Drop { name: name.into(), if_present: false })).await?.into_done()
    }

    /// Removes a table and its rows, if there is one.
    pub async fn drop_table_if_present(&self, name: &str) -> Result<()> {
        self.call(Request::schema(Schema::Drop { name: name.into(), if_present: true })).await?.into_done()
    }

    /// Removes every row of a table.
    pub async fn truncate_table(&self, name: &str) -> Result<()> {
        self.call(Request::schema(Schema::Truncate { name: name.into() })).await?.into_done()
    }

    /// Tells a table's live declaration, or `None` if there is no such table.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where the backend can't tell.
    pub async fn describe_table(&self, name: &str) -> Result<Option<TableSpec>> {
        let answer = self.call(Request::schema(Schema::Describe { name: name.into() })).await?;
        Ok(answer.into_table()?.map(|spec| *spec))
    }

    /// Makes the keyspace or namespace that this client works in, if it is absent. Does nothing where the backend has none.
    pub async fn create_namespace(&self, replication: Replication) -> Result<()> {
        self.call(Request::schema(Schema::CreateNamespace { replication, if_absent: true })).await?.into_done()
    }

    /// The backend's name, such as `cql`.
    pub fn backend_name(&self) -> &'static str {
        self.shared.backend.name()
    }

    /// What the backend can do, and the layers above it: salts work on every backend.
    pub fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    /// Fails early if one of these is missing.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) that names the first missing one.
    pub fn require(&self, capabilities: &[Capability]) -> Result<()> {
        match capabilities.iter().find(|capability| !self.capabilities().has(**capability)) {
            Some(missing) => Err(Error::unsupported(*missing, self.backend_name())),
            None => Ok(()),
        }
    }

    /// Who owns which keys.
    pub fn topology(&self) -> &dyn Topology {
        &self.shared.topology
    }

    /// The backend's native handle, for what the contract doesn't cover; `None` if it is of another type.
    pub fn native<T: 'static>(&self) -> Option<&T> {
        self.shared.backend.native().downcast_ref()
    }

    /// A write time behind all that this client gave before.
    pub fn next_write_time(&self) -> WriteTime {
        self.shared.writes.next()
    }

    /// Write times for so many writes.
    pub(crate) fn next_write_times(&self, count: usize) -> impl Iterator<Item = WriteTime> + use<> {
        self.shared.writes.many(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// How many rows go into one request of many, and how many such requests run at a time.
    pub(crate) fn batching(&self) -> (usize, usize) {
        (self.shared.batch_rows, self.shared.batch_concurrency)
    }

    /// Which rows of many go into one request.
    pub(crate) fn grouping(&self) -> Grouping {
        self.shared.grouping
    }

    /// Ends background work and frees what is held, for all clones. Requests after it fail with
    /// [`Closed`](ErrorKind::Closed).
    pub async fn close(&self) -> Result<()> {
        self.shared.backend.close().await
    }
}

/// How the live table differs from the declared one.
fn compare(declared: &TableSpec, live: &TableSpec) -> Result<()> {
    let mut faults = Vec::new();
    for column in declared.columns() {
        match live.columns().iter().find(|other| other.name == column.name) {
            None => faults.push(format!("column {} is missing", column.name)),
            Some(other) if other.ty != column.ty => {
                faults.push(format!("column {} is {}, not {}", column.name, other.ty, column.ty));
            }
            Some(other) if other.kind != column.kind => {
                faults.push(format!("column {} is {}, not {}", column.name, role(other.kind), role(column.kind)));
            }
            Some(_) => {}
        }
    }
    let names = |spec: &TableSpec| spec.primary_key().iter().map(|column| column.name.to_string()).collect::<Vec<_>>();
    if names(declared) != names(live) {
        faults.push(format!("the primary key is ({}), not ({})", names(live).join(", "), names(declared).join(", ")));
    }
    if declared.salt() != live.salt() {
        faults.push(format!("the salt is {:?}, not {:?}", live.salt(), declared.salt()));
    }
    if faults.is_empty() {
        return Ok(());
    }
    let message = format!("the live table differs from the declared one: {}", faults.join("; "));
    Err(Error::new(ErrorKind::SchemaMismatch, message))
}

fn role(kind: ColumnKind) -> String {
    match kind {
        ColumnKind::Partition => "a partition key column".into(),
        ColumnKind::Clustering(order) => format!("a clustering column, {order:?}").to_lowercase(),
        ColumnKind::Value => "a value column".into(),
    }
}

#[cfg(test)]
mod tests;
