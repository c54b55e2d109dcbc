//! The contract on HBase.

use std::any::Any;
use std::sync::Arc;

use futures::future::BoxFuture;
use peristyle_core::request::{Action, RequestOptions, Schema};
use peristyle_core::{
    Backend, Capabilities, Capability, Error, Limits, Request, Response, ResponseFuture, Result, Topology,
};

use crate::codec::max_row_key;
use crate::config::{Api, HBaseConfig};
use crate::connection::Call;
use crate::store::Store;
use crate::wire::calls;

/// The name in messages.
pub(crate) const NAME: &str = "hbase";

/// What Thrift 1 has of them: no more than a put or a delete of a row at a time, and no place for a declaration.
const THRIFT1_CAPABILITIES: [Capability; 5] = [
    Capability::OrderedScan,
    Capability::ReadWriteTime,
    Capability::PerWriteTtl,
    Capability::Counters,
    Capability::Salt,
];

const CAPABILITIES: [Capability; 9] = [
    Capability::OrderedScan,
    Capability::ReadWriteTime,
    Capability::PerWriteTtl,
    Capability::Counters,
    Capability::CompareAndPut,
    Capability::AtomicReplace,
    Capability::Introspection,
    Capability::Truncate,
    Capability::Salt,
];

/// The longest name of a table.
const NAME_BYTES: usize = 48;
/// What is left of a row key for a salt, and for the end of a text.
const KEY_OVERHEAD: usize = 6;

/// HBase, through its Thrift gateways.
#[derive(Debug)]
pub struct HBaseBackend {
    store: Arc<Store>,
    capabilities: Capabilities,
}

impl HBaseBackend {
    /// Looks whether a gateway answers.
    ///
    /// # Errors
    /// [`Unavailable`](peristyle_core::ErrorKind::Unavailable) where none can be reached; what the gateway answers where it is of another kind
    /// than the configuration says; [`InvalidArgument`](peristyle_core::ErrorKind::InvalidArgument) for a configuration that can't be.
    pub async fn connect(config: HBaseConfig) -> Result<Self> {
        config.validate()?;
        let mut limits = Limits::default();
        let key_bytes = max_row_key(config.namespace.len() + 1 + NAME_BYTES) - KEY_OVERHEAD;
        limits.partition_key_bytes = key_bytes;
        limits.clustering_key_bytes = key_bytes;
        limits.value_bytes = limits.value_bytes.min(config.max_request_bytes.saturating_sub(64 << 10));
        let capabilities: &[Capability] = match config.api {
            Api::Thrift2 => &CAPABILITIES,
            Api::Thrift1 => &THRIFT1_CAPABILITIES,
        };
        let capabilities = Capabilities::new(capabilities.iter().copied(), limits);
        let backend = Self { store: Arc::new(Store::new(config)?), capabilities };
        backend.greet().await?;
        Ok(backend)
    }

    async fn greet(&self) -> Result<()> {
        let store = &self.store;
        let call = Call::new(&Arc::from(""), false, &RequestOptions::default(), &store.config);
        calls::greet(&store.gateways, &call).await
    }
}

impl Backend for HBaseBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn call(&self, request: Request) -> ResponseFuture {
        let store = Arc::clone(&self.store);
        Box::pin(async move {
            store.check_open()?;
            answer(&store, request).await
        })
    }

    fn topology(&self) -> &dyn Topology {
        &*self.store
    }

    fn native(&self) -> &dyn Any {
        self
    }

    fn close(&self) -> BoxFuture<'static, Result<()>> {
        self.store.close();
        Box::pin(async { Ok(()) })
    }
}

async fn answer(store: &Arc<Store>, request: Request) -> Result<Response> {
    let Request { action, options } = request;
    if options.consistency.is_some() || options.serial_consistency.is_some() {
        return Err(Error::unsupported(Capability::ConsistencyLevel, NAME));
    }
    match action {
        Action::Read { table, read } => {
            let layout = store.layout(&table)?;
            store.refresh(&layout);
            let call = Call::new(table.name(), false, &options, &store.config);
            let answer = store.read(&layout, read, &call).await;
            answer.inspect_err(|error| store.note(error, table.name()))
        }
        Action::Write { table, write } => {
            let layout = store.layout(&table)?;
            store.refresh(&layout);
            let call = Call::new(table.name(), true, &options, &store.config);
            let answer = store.write(&layout, write, &call).await;
            answer.inspect_err(|error| store.note(error, table.name()))
        }
        Action::Schema(schema) => {
            let call = schema_call(store, &schema, &options);
            store.schema(schema, &call).await
        }
    }
}

fn schema_call(store: &Store, schema: &Schema, options: &RequestOptions) -> Call {
    let table = schema.table().unwrap_or_default();
    let writes = !matches!(schema, Schema::Describe { .. });
    let mut call = Call::new(&table, writes, options, &store.config);
    call.timeout = options.attempt_timeout.unwrap_or(store.config.schema_timeout);
    call.schema = true;
    call
}
