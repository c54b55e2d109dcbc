//! A backend in memory: the reference that the others are compared with, and what documentation examples run on.
//!
//! It keeps typed keys in typed order and filters row by row, so that it shares neither key bytes nor range arithmetic with
//! the backends it judges. Nothing survives it.

mod key;
mod table;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, ready};

use self::table::MemoryTable;
use crate::backend::{Backend, LocalTopology, ResponseFuture, Topology};
use crate::capability::{Capabilities, Capability, Limits};
use crate::clock::Clock;
use crate::declared::DeclaredColumns;
use crate::error::{Error, ErrorKind, Result};
use crate::model::TableSpec;
use crate::request::{Action, Request, Schema};
use crate::response::Response;

/// A backend in memory. Clones share their tables.
///
/// ```
/// use peristyle_core::client::Client;
/// use peristyle_core::memory::MemoryBackend;
/// use peristyle_core::model::{Row, TableSpec, Type};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> peristyle_core::Result<()> {
/// let client = Client::builder(MemoryBackend::new()).build();
/// let spec = TableSpec::builder("t1").partition("id", Type::I64).column("title", Type::Text).build()?;
/// client.create_table(&spec).await?;
/// let table = client.table(spec).await?;
/// table.put(&Row::new().with("id", 1_i64).with("title", "Dune")).await?;
/// let row: Option<Row> = table.get(1).await?;
/// assert_eq!(row.unwrap().get("title"), Some(&"Dune".into()));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct MemoryBackend {
    state: Arc<Mutex<State>>,
    capabilities: Capabilities,
    clock: Clock,
}

#[derive(Debug, Default)]
struct State {
    tables: BTreeMap<Arc<str>, MemoryTable>,
    closed: bool,
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self::with_clock(Clock::system())
    }
}

impl MemoryBackend {
    /// An empty backend on the system's clock.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty backend whose times to live run on this clock.
    pub fn with_clock(clock: Clock) -> Self {
        let capabilities = [
            Capability::OrderedScan,
            Capability::PartitionDelete,
            Capability::ReadWriteTime,
            Capability::ReadTtl,
            Capability::PerWriteTtl,
            Capability::Counters,
            Capability::CompareAndPut,
            Capability::AtomicReplace,
            Capability::Introspection,
            Capability::Truncate,
            Capability::SnapshotPage,
        ];
        Self { state: Arc::default(), capabilities: Capabilities::new(capabilities, Limits::default()), clock }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: Request) -> Result<Response> {
        let mut state = self.state();
        if state.closed {
            return Err(Error::new(ErrorKind::Closed, "the backend is closed; make a new client"));
        }
        match request.action {
            Action::Read { table, mut read } => {
                let (table, columns) = state.table(&table)?;
                if let Some(columns) = &columns {
                    columns.read(&mut read);
                }
                table.read(&read, self.clock.seconds()).map(|answer| DeclaredColumns::answer(columns.as_ref(), answer))
            }
            Action::Write { table, mut write } => {
                let (table, columns) = state.table(&table)?;
                if let Some(columns) = &columns {
                    columns.write(&mut write);
                }
                table.write(write, &self.clock).map(|answer| DeclaredColumns::answer(columns.as_ref(), answer))
            }
            Action::Schema(schema) => state.schema(schema),
        }
    }
}

impl State {
    /// The table, and how this declaration of it maps to it.
    fn table(&mut self, declared: &TableSpec) -> Result<(&mut MemoryTable, Option<DeclaredColumns>)> {
        let table = self.named(declared.name())?;
        let columns = DeclaredColumns::new(declared, table.spec())?;
        Ok((table, columns))
    }

    fn named(&mut self, name: &str) -> Result<&mut MemoryTable> {
        self.tables.get_mut(name).ok_or_else(|| no_table(name))
    }

    fn schema(&mut self, schema: Schema) -> Result<Response> {
        match schema {
            Schema::CreateNamespace { .. } => Ok(Response::Done),
            Schema::Create { table, if_absent } => self.create(table, if_absent),
            Schema::Drop { name, if_present } => match self.tables.remove(&name) {
                None if !if_present => Err(no_table(&name)),
                _ => Ok(Response::Done),
            },
            Schema::Truncate { name } => {
                self.named(&name)?.truncate();
                Ok(Response::Done)
            }
            Schema::Describe { name } => {
                let spec = self.tables.get(&name).map(|table| Box::new(table.spec().clone()));
                Ok(Response::Table(spec))
            }
        }
    }

    fn create(&mut self, spec: Arc<TableSpec>, if_absent: bool) -> Result<Response> {
        if self.tables.contains_key(spec.name()) {
            let message = format!("table {} exists already; drop it first, or create it if absent", spec.name());
            return if if_absent { Ok(Response::Done) } else { Err(Error::new(ErrorKind::AlreadyExists, message)) };
        }
        self.tables.insert(Arc::clone(spec.name()), MemoryTable::new(spec));
        Ok(Response::Done)
    }
}

fn no_table(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no table {name}; create it first"))
}

impl Backend for MemoryBackend {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn call(&self, request: Request) -> ResponseFuture {
        let backend = self.clone();
        async move { backend.answer(request) }.boxed()
    }

    fn topology(&self) -> &dyn Topology {
        &LocalTopology
    }

    fn native(&self) -> &dyn Any {
        self
    }

    fn close(&self) -> BoxFuture<'static, Result<()>> {
        self.state().closed = true;
        ready(Ok(())).boxed()
    }
}

#[cfg(test)]
mod tests;
