//! One server, one keyspace, and short words for requests.

use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use peristyle_core::clock::{Clock, WriteClock};
use peristyle_core::model::{Key, StoredRow, TableSpec, Ttl, Value, WriteTime};
use peristyle_core::request::{
    Mutation, Projection, Query, Read, Replication, Scan, ScanOrder, ScanRange, Schema, Write,
};
use peristyle_core::response::Page;
use peristyle_core::{Backend, Request, Result};
use peristyle_cql::{CqlBackend, CqlConfig};
use peristyle_servers::Cassandra;
use tokio::sync::OnceCell;

/// Where the server is. The node that was started here dies with this process.
pub(crate) fn address() -> &'static str {
    static ADDRESS: OnceLock<(String, Option<Cassandra>)> = OnceLock::new();
    let (address, _) = ADDRESS.get_or_init(|| match std::env::var("PERISTYLE_CQL") {
        Ok(address) => (address, None),
        Err(_) => {
            let node = Cassandra::builder().start().unwrap();
            (node.cql_address().to_string(), Some(node))
        }
    });
    address
}

/// The keyspace of this process.
pub(crate) fn keyspace() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        format!("Live_{}_{}", std::process::id(), now.as_millis())
    })
}

pub(crate) fn config() -> CqlConfig {
    CqlConfig::new([address()]).keyspace(keyspace())
}

/// A session of its own, in the keyspace of all tests.
pub(crate) async fn connect() -> CqlBackend {
    connect_with(config()).await
}

pub(crate) async fn connect_with(config: CqlConfig) -> CqlBackend {
    static MADE: OnceCell<()> = OnceCell::const_new();
    let backend = CqlBackend::connect(config).await.unwrap();
    let make = async || {
        let schema = Schema::CreateNamespace { replication: Replication::Simple(1), if_absent: true };
        backend.call(Request::schema(schema)).await.unwrap().into_done().unwrap();
    };
    MADE.get_or_init(make).await;
    backend
}

pub(crate) async fn create(backend: &CqlBackend, spec: TableSpec) -> Arc<TableSpec> {
    let table = Arc::new(spec);
    let schema = Schema::Create { table: Arc::clone(&table), if_absent: false };
    backend.call(Request::schema(schema)).await.unwrap().into_done().unwrap();
    table
}

/// Raw CQL on the native session.
pub(crate) async fn cql(backend: &CqlBackend, statement: &str) {
    backend.session().unwrap().query_unpaged(statement, ()).await.unwrap();
}

/// Later than any before.
pub(crate) fn now() -> WriteTime {
    static CLOCK: OnceLock<WriteClock> = OnceLock::new();
    CLOCK.get_or_init(|| WriteClock::new(Clock::system())).next()
}

pub(crate) fn key<const N: usize>(values: [Value; N]) -> Key {
    Key::new(values.to_vec())
}

pub(crate) fn put(key: &Key, cells: &[(usize, Value)]) -> Mutation {
    Mutation::put(key.clone(), now(), cells.to_vec(), Ttl::TableDefault)
}

pub(crate) async fn apply(backend: &CqlBackend, table: &Arc<TableSpec>, mutation: Mutation) -> Result<()> {
    let write = Write::Apply(mutation);
    backend.call(Request::write(Arc::clone(table), write)).await?.into_done()
}

pub(crate) async fn apply_all(backend: &CqlBackend, table: &Arc<TableSpec>, all: Vec<Mutation>) -> Vec<Result<()>> {
    let write = Write::ApplyAll(all);
    backend.call(Request::write(Arc::clone(table), write)).await.unwrap().into_outcomes().unwrap()
}

pub(crate) async fn read(backend: &CqlBackend, table: &Arc<TableSpec>, read: Read) -> Result<peristyle_core::Response> {
    backend.call(Request::read(Arc::clone(table), read)).await
}

pub(crate) async fn get(backend: &CqlBackend, table: &Arc<TableSpec>, key: &Key) -> Result<Option<StoredRow>> {
    get_columns(backend, table, key, Projection::default()).await
}

pub(crate) async fn get_columns(
    backend: &CqlBackend,
    table: &Arc<TableSpec>,
    key: &Key,
    columns: Projection,
) -> Result<Option<StoredRow>> {
    read(backend, table, Read::Get { key: key.clone(), columns }).await?.into_row()
}

pub(crate) async fn query(backend: &CqlBackend, table: &Arc<TableSpec>, query: Query) -> Result<Page> {
    read(backend, table, Read::Query(Box::new(query))).await?.into_page()
}

pub(crate) async fn scan_page(
    backend: &CqlBackend,
    table: &Arc<TableSpec>,
    range: ScanRange,
    after: Option<Key>,
    limit: usize,
) -> Result<Page> {
    let scan = Scan { range, order: ScanOrder::Any, after, limit, columns: Projection::default() };
    read(backend, table, Read::Scan(Box::new(scan))).await?.into_page()
}

/// Every row of a range, page by page.
pub(crate) async fn scan_all(
    backend: &CqlBackend,
    table: &Arc<TableSpec>,
    range: ScanRange,
    limit: usize,
) -> Vec<StoredRow> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = scan_page(backend, table, range.clone(), after, limit).await.unwrap();
        assert!(page.rows.len() <= limit);
        assert!(!page.more || !page.rows.is_empty(), "a page with more has rows");
        rows.extend(page.rows);
        if !page.more {
            return rows;
        }
        after = Some(rows.last().unwrap().key(table).unwrap());
    }
}

pub(crate) fn text(row: &StoredRow, column: usize) -> &str {
    match &row.values[column] {
        Some(Value::Text(text)) => text,
        other => panic!("{other:?}"),
    }
}
