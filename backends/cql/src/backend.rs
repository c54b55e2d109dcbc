//! The backend: requests in, futures out.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures::FutureExt;
use futures::future::{self, BoxFuture};
use peristyle_core::request::{Action, Read, Write};
use peristyle_core::{
    Backend, Capabilities, Capability, Error, ErrorKind, Limits, Request, Response, ResponseFuture, Result, Topology,
};
use scylla::client::session::Session;

use crate::config::CqlConfig;
use crate::fleet::Fleet;
use crate::pin::pinned;
use crate::recycle::{Office, recycled};
use crate::request::{Call, Shared};
use crate::spread::Spread;
use crate::{batch, query, read, schema, session, write};

pub(crate) const NAME: &str = "cql";

thread_local! {
    static PUTS: Office<write::Apply> = const { Office::new() };
    static GETS: Office<read::Get> = const { Office::new() };
}

/// A cluster that speaks CQL: Apache Cassandra, `ScyllaDB`, or any other with version 4 of the protocol.
///
/// Its [`native`](Backend::native) handle is itself; [`session`](Self::session) gives the driver's session for raw CQL.
#[derive(Debug)]
pub struct CqlBackend {
    capabilities: Capabilities,
    /// `None` once closed.
    shared: ArcSwapOption<Spread<Shared>>,
    pub(crate) fleet: Arc<Fleet>,
}

impl CqlBackend {
    /// Opens a session. The keyspace need not exist yet, so that it can be made.
    ///
    /// # Errors
    /// Within [`connect_timeout`](CqlConfig::connect_timeout): [`Unavailable`](ErrorKind::Unavailable) where no server answers,
    /// [`Unauthenticated`](ErrorKind::Unauthenticated) for a refused login, [`InvalidArgument`](ErrorKind::InvalidArgument)
    /// for an impossible configuration.
    pub async fn connect(config: CqlConfig) -> Result<Self> {
        let fleet = Arc::new(Fleet::new(config.datacenter.clone()));
        let session = session::open(&config, &fleet).await?;
        fleet.look(&session.get_cluster_state());
        let shared = Spread::new(&Shared::new(session, config));
        tokio::spawn(Arc::clone(&fleet).watch(Arc::downgrade(&shared.get())));
        Ok(Self { capabilities: capabilities(), shared: ArcSwapOption::from_pointee(shared), fleet })
    }

    /// The driver's session, for what the contract doesn't cover. Nothing here retries for it: see
    /// [the crate's documentation](crate).
    ///
    /// # Errors
    /// [`Closed`](ErrorKind::Closed) after [`close`](Backend::close).
    pub fn session(&self) -> Result<impl std::ops::Deref<Target = Session> + Send + Sync + use<>> {
        self.shared().map(SessionHandle)
    }

    pub(crate) fn shared(&self) -> Result<Arc<Shared>> {
        let shared = self.shared.load();
        let shared = shared.as_ref().map(|shared| shared.get());
        shared.ok_or_else(|| Error::new(ErrorKind::Closed, "the backend is closed"))
    }
}

/// Keeps the session open while it is used.
struct SessionHandle(Arc<Shared>);

impl std::ops::Deref for SessionHandle {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0.session
    }
}

fn capabilities() -> Capabilities {
    let mut limits = Limits::default();
    limits.partition_key_bytes = 65_535;
    limits.clustering_key_bytes = 65_535;
    // Half of a commit log segment of Cassandra's default size, and room for the key.
    limits.value_bytes = (16 << 20) - (1 << 10);
    limits.batch_rows = 65_535;
    limits.ttl = Duration::from_secs(630_720_000);
    Capabilities::new(
        [
            Capability::PartitionDelete,
            Capability::ReadWriteTime,
            Capability::ReadTtl,
            Capability::PerWriteTtl,
            Capability::Counters,
            Capability::CompareAndPut,
            Capability::AtomicReplace,
            Capability::RowMarker,
            Capability::ConsistencyLevel,
            Capability::Introspection,
            Capability::Truncate,
        ],
        limits,
    )
}

/// Makes a future where it will be, for it is of several kilobytes and takes long to move.
fn boxed<F>(make: impl FnOnce() -> F) -> ResponseFuture
where
    F: Future<Output = Result<Response>> + Send + 'static,
{
    let place = Box::<F>::new_uninit();
    let future: Box<F> = Box::write(place, make());
    Box::into_pin(future)
}

impl Backend for CqlBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn call(&self, request: Request) -> ResponseFuture {
        pinned(request.options.endpoint, self.answer(request))
    }

    fn topology(&self) -> &dyn Topology {
        self
    }

    fn native(&self) -> &dyn Any {
        self
    }

    fn close(&self) -> BoxFuture<'static, Result<()>> {
        self.end();
        future::ok(()).boxed()
    }
}

impl CqlBackend {
    // Each operation is boxed on its own, so that a put doesn't carry the state of a scan.
    fn answer(&self, request: Request) -> ResponseFuture {
        let shared = match self.shared() {
            Ok(shared) => shared,
            Err(error) => return future::err(error).boxed(),
        };
        let call = Call::new(&request.options, shared.config.request_timeout);
        match request.action {
            Action::Write { table, write } => match write {
                Write::Apply(mutation) => recycled(&PUTS, write::Apply { shared, table, mutation, call }, write::apply),
                Write::ApplyAll(mutations) => boxed(|| batch::apply_all(shared, table, mutations, call)),
                Write::Increment { key, deltas } => boxed(|| write::increment(shared, table, key, deltas, call)),
                Write::CompareAndPut { mutation, condition } => {
                    boxed(|| write::compare_and_put(shared, table, mutation, condition, call))
                }
            },
            Action::Read { table, read } => match read {
                Read::Get { key, columns } => {
                    recycled(&GETS, read::Get { shared, table, key, columns, call }, read::get)
                }
                Read::GetAll { keys, columns } => boxed(|| read::get_all(shared, table, keys, columns, call)),
                Read::Query(query) => boxed(|| query::query(shared, table, *query, call)),
                Read::Scan(scan) => boxed(|| query::scan(shared, table, *scan, call)),
            },
            Action::Schema(schema) => {
                let call = Call::new(&request.options, shared.config.schema_timeout * 2);
                boxed(|| schema::change(shared, schema, call))
            }
        }
    }

    /// Lets go of the session, which closes its connections once the last request is answered. A preparation that was
    /// abandoned would keep it alive.
    fn end(&self) {
        if let Some(shared) = self.shared.swap(None) {
            shared.get().statements.clear();
        }
    }
}

impl Drop for CqlBackend {
    fn drop(&mut self) {
        self.end();
    }
}
