//! What the tests of the engine share.
#![allow(dead_code, reason = "not every test needs everything")]
#![expect(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::path::Path;
use std::sync::Arc;

use peristyle_core::client::{Client, ClientBuilder};
use peristyle_core::clock::Clock;
use peristyle_core::model::{Row, TableSpec, Type};
use peristyle_core::table::Table;
use peristyle_core::{Backend, Result};
use peristyle_embedded::{Embedded, EmbeddedConfig};

/// A client of an engine, and the engine.
pub(crate) fn client(config: &EmbeddedConfig) -> Result<(Client, Arc<Embedded>)> {
    let engine = Arc::new(Embedded::open(config)?);
    let backend: Arc<dyn Backend> = engine.clone();
    Ok((ClientBuilder::new(backend).clock(config.clock.clone()).build(), engine))
}

pub(crate) fn at(folder: &Path) -> EmbeddedConfig {
    EmbeddedConfig::at(folder)
}

/// A config in a temporary folder on a clock that stands.
pub(crate) fn on_clock() -> (EmbeddedConfig, Clock) {
    let clock = Clock::manual(1_700_000_000_000_000);
    (EmbeddedConfig::temporary().clock(clock.clone()), clock)
}

/// `(id i64) → (a text, b text)`.
pub(crate) fn pairs() -> TableSpec {
    TableSpec::builder("pairs")
        .partition("id", Type::I64)
        .column("a", Type::Text)
        .column("b", Type::Text)
        .build()
        .unwrap()
}

/// `(id i64) → (hits counter)`.
pub(crate) fn counters() -> TableSpec {
    TableSpec::builder("counters").partition("id", Type::I64).column("hits", Type::Counter).build().unwrap()
}

pub(crate) fn pair(id: i64, text: &str) -> Row {
    Row::new().with("id", id).with("a", text).with("b", text)
}

/// Makes a table if it isn't there, and opens it.
pub(crate) async fn table(client: &Client, spec: TableSpec) -> Table {
    client.create_table_if_absent(&spec).await.unwrap();
    client.table(spec).await.unwrap()
}
