//! The contract on the engine.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use fjall::Database;
use futures::future::BoxFuture;
use peristyle_core::declared::DeclaredColumns;
use peristyle_core::model::{TableSpec, Type};
use peristyle_core::request::{Action, CellWrite, Condition, Mutation, Read, RequestOptions, Schema, Wipe, Write};
use peristyle_core::{
    Backend, Capabilities, Capability, Error, Limits, LocalTopology, Request, Response, ResponseFuture, Result,
    Topology,
};

use crate::codec::RowKey;
use crate::config::EmbeddedConfig;
use crate::engine::{Engine, Job, Message, Operation, Other, RowWrite, SchemaChange, View};

const NAME: &str = "embedded";
/// Reads of more rows than this leave the caller's thread: a row from the cache takes about a microsecond, and handing work to
/// another thread about ten.
const INLINE_ROWS: usize = 64;

const CAPABILITIES: [Capability; 11] = [
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

/// The embedded engine: tables in a folder of this machine, held by this process.
///
/// A read of a few rows runs on the caller's thread. Writes go to one thread, which makes all that wait durable together.
/// Dropping it does what [`close`](Backend::close) does, as far as ten seconds go.
pub struct Embedded {
    engine: Arc<Engine>,
    capabilities: Capabilities,
    native: NativeDatabase,
}

/// The database below, for what the contract doesn't cover: what [`Backend::native`] downcasts to.
///
/// What is written through it passes by the engine's merging of rows.
pub struct NativeDatabase(Arc<Engine>);

impl NativeDatabase {
    /// The database. The folder stays locked until this is dropped too.
    ///
    /// # Errors
    /// [`Closed`](peristyle_core::ErrorKind::Closed).
    pub fn database(&self) -> Result<Database> {
        Ok(self.0.store()?.db.clone())
    }
}

impl fmt::Debug for NativeDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NativeDatabase").field(&self.0.folder()).finish()
    }
}

impl Embedded {
    /// Opens the folder, or makes it. Blocks for as long as its journals take to read: after a clean close next to nothing.
    ///
    /// # Errors
    /// [`Locked`](peristyle_core::ErrorKind::Locked) while another process has it open;
    /// [`Corrupt`](peristyle_core::ErrorKind::Corrupt) where it is damaged or holds something else;
    /// [`SchemaMismatch`](peristyle_core::ErrorKind::SchemaMismatch) where a newer version wrote it;
    /// [`PermissionDenied`](peristyle_core::ErrorKind::PermissionDenied) and [`DiskFull`](peristyle_core::ErrorKind::DiskFull).
    pub fn open(config: &EmbeddedConfig) -> Result<Self> {
        let engine = Arc::new(Engine::open(config)?);
        let native = NativeDatabase(Arc::clone(&engine));
        Ok(Self { engine, capabilities: Capabilities::new(CAPABILITIES, Limits::default()), native })
    }

    /// Where the data is.
    pub fn folder(&self) -> &std::path::Path {
        self.engine.folder()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.engine.close_now();
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("folder", &self.engine.folder()).finish_non_exhaustive()
    }
}

impl Backend for Embedded {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn call(&self, request: Request) -> ResponseFuture {
        let engine = Arc::clone(&self.engine);
        Box::pin(async move {
            check_options(&request.options)?;
            match request.action {
                Action::Read { table, read } => self::read(engine.view(&table)?, read).await,
                Action::Write { table, write } => self::write(&engine, &table, write).await,
                Action::Schema(schema) => self::schema(&engine, schema).await,
            }
        })
    }

    fn topology(&self) -> &dyn Topology {
        &LocalTopology
    }

    fn native(&self) -> &dyn Any {
        &self.native
    }

    fn close(&self) -> BoxFuture<'static, Result<()>> {
        let engine = Arc::clone(&self.engine);
        Box::pin(async move { engine.close().await })
    }
}

fn check_options(options: &RequestOptions) -> Result<()> {
    if options.consistency.is_some() || options.serial_consistency.is_some() {
        return Err(Error::unsupported(Capability::ConsistencyLevel, NAME));
    }
    Ok(())
}

async fn read(view: View, mut read: Read) -> Result<Response> {
    if let Some(columns) = &view.columns {
        columns.read(&mut read);
    }
    let rows = match &read {
        Read::Get { .. } => 1,
        Read::GetAll { keys, .. } => keys.len(),
        Read::Query(query) => query.limit,
        Read::Scan(scan) => scan.limit,
    };
    let run = move || {
        let answer = match &read {
            Read::Get { key, columns } => view.get(key, columns).map(Response::Row),
            Read::GetAll { keys, columns } => view.get_all(keys, columns).map(Response::Rows),
            Read::Query(query) => view.query(query).map(Response::Page),
            Read::Scan(scan) => view.scan(scan).map(Response::Page),
        };
        answer.map(|answer| DeclaredColumns::answer(view.columns.as_ref(), answer))
    };
    blocking(rows > INLINE_ROWS, run).await
}

/// Runs it here, or on a thread for blocking work if it is long and there is a runtime to ask for one.
async fn blocking<T: Send + 'static>(long: bool, run: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) if long => runtime.spawn_blocking(run).await.unwrap_or_else(|error| {
            let message = format!("the read ended early: {error}");
            Err(Error::new(peristyle_core::ErrorKind::Internal, message))
        }),
        _ => run(),
    }
}

async fn write(engine: &Engine, declaration: &TableSpec, mut write: Write) -> Result<Response> {
    let View { table, columns, .. } = engine.view(declaration)?;
    if let Some(columns) = &columns {
        columns.write(&mut write);
    }
    let operation = operation(&table.spec, write)?;
    let answer = engine.ask(|reply| Message::Write(Job { table, operation, reply })).await?;
    Ok(DeclaredColumns::answer(columns.as_ref(), answer))
}

fn operation(spec: &TableSpec, write: Write) -> Result<Operation> {
    Ok(match write {
        Write::Apply(mutation) if mutation.wipe == Wipe::Partition => {
            if !mutation.cells.is_empty() || mutation.marker.is_some() {
                return Err(Error::invalid("a delete of a partition that also writes; do it in two operations"));
            }
            Operation::DeletePartition(mutation)
        }
        Write::Apply(mutation) => Operation::Apply(row_write(spec, mutation)?),
        Write::ApplyAll(mutations) => {
            Operation::ApplyAll(mutations.into_iter().map(|mutation| row_write(spec, mutation)).collect())
        }
        Write::Increment { key, deltas } => {
            for (column, _) in &deltas {
                check_column(spec, *column, Type::Counter)?;
            }
            Operation::Increment { key: RowKey::new(spec, &key)?, deltas }
        }
        Write::CompareAndPut { mutation, condition } => {
            match &condition {
                Condition::RowAbsent => {}
                Condition::ColumnAbsent(column) => check_column(spec, *column, column_type(spec, *column)?)?,
                Condition::ColumnEquals(column, value) => check_column(spec, *column, value.ty())?,
            }
            if mutation.wipe != Wipe::Nothing {
                return Err(Error::invalid("a conditional put that also wipes; put the columns alone"));
            }
            Operation::CompareAndPut { write: row_write(spec, mutation)?, condition }
        }
    })
}

fn row_write(spec: &TableSpec, mutation: Mutation) -> Result<RowWrite> {
    if mutation.wipe == Wipe::Partition {
        return Err(Error::invalid("the delete of a partition among writes of rows; send it alone"));
    }
    for cell in &*mutation.cells {
        match &cell.write {
            CellWrite::Put(value, _) => check_column(spec, cell.column, value.ty())?,
            CellWrite::Delete => {
                column_type(spec, cell.column)?;
            }
        }
    }
    Ok(RowWrite { key: RowKey::new(spec, &mutation.key)?, mutation })
}

/// The type of a value column.
fn column_type(spec: &TableSpec, column: usize) -> Result<Type> {
    let found = spec.columns().get(column).filter(|_| column >= spec.key_len());
    found.map(|column| column.ty).ok_or_else(|| Error::invalid(format!("column {column} is no value column")))
}

fn check_column(spec: &TableSpec, column: usize, ty: Type) -> Result<()> {
    match column_type(spec, column)? {
        expected if expected == ty => Ok(()),
        expected => Err(Error::invalid(format!("column {column} takes {expected}, not {ty}"))),
    }
}

async fn schema(engine: &Engine, schema: Schema) -> Result<Response> {
    let change = match schema {
        Schema::Describe { name } => {
            let table = engine.store()?.catalogue.find(&name);
            return Ok(Response::Table(table.map(|table| Box::new(TableSpec::clone(&table.spec)))));
        }
        Schema::CreateNamespace { .. } => return engine.store().map(|_| Response::Done),
        Schema::Create { table, .. } if table.salt().is_some() => {
            return Err(Error::unsupported(Capability::Salt, NAME));
        }
        Schema::Create { table, if_absent } => SchemaChange::Create { table, if_absent },
        Schema::Drop { name, if_present } => SchemaChange::Drop { name, if_present },
        Schema::Truncate { name } => SchemaChange::Truncate { name },
        other => return Err(Error::invalid(format!("the embedded engine knows no {}", other.operation()))),
    };
    engine.ask(|reply| Message::Other(Other::Schema(change, reply))).await
}
