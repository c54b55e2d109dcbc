//! The client that all threads share, and what each of YCSB's threads has for itself.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, RwLock};

use peristyle::{Client, Error, ErrorKind, Result};
use peristyle_ycsb::{Batch, Settings, Status, Store, uri};
use tokio::runtime::{Builder, Runtime};

/// The runtime, the client with its tables, and which failures were told.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) runtime: Runtime,
    client: Client,
    stores: Mutex<HashMap<Settings, Store>>,
    told: Mutex<HashSet<Status>>,
    told_of_order: AtomicBool,
}

/// One of YCSB's threads.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) store: Store,
    pub(crate) batch: Mutex<Batch>,
}

/// The open sessions and the clients that they share: one for each database, so one in a run of YCSB. Clients stay until the
/// virtual machine ends, since a thread may be done before the next begins.
#[derive(Debug, Default)]
struct Sessions {
    shared: HashMap<String, Arc<Shared>>,
    open: HashMap<i64, Arc<Session>>,
}

static SESSIONS: LazyLock<RwLock<Sessions>> = LazyLock::new(RwLock::default);
static NEXT: AtomicI64 = AtomicI64::new(1);

/// Opens a session, and the client with the first.
pub(crate) fn open(properties: &HashMap<String, String>) -> Result<i64> {
    let get = |name: &str| properties.get(name).map(String::as_str);
    let settings = Settings::new(get)?;
    let batch = Mutex::new(Batch::new(settings.batch));
    let mut sessions = SESSIONS.write().unwrap_or_else(PoisonError::into_inner);
    let shared = match sessions.shared.entry(uri(get)) {
        Entry::Occupied(known) => Arc::clone(known.get()),
        Entry::Vacant(place) => {
            let shared = Shared::connect(place.key())?;
            Arc::clone(place.insert(Arc::new(shared)))
        }
    };
    let store = shared.store(settings)?;
    let handle = NEXT.fetch_add(1, Ordering::Relaxed);
    sessions.open.insert(handle, Arc::new(Session { shared, store, batch }));
    Ok(handle)
}

/// An open session.
pub(crate) fn get(handle: i64) -> Result<Arc<Session>> {
    let sessions = SESSIONS.read().unwrap_or_else(PoisonError::into_inner);
    sessions.open.get(&handle).map(Arc::clone).ok_or_else(|| Error::new(ErrorKind::Closed, "the session is closed"))
}

/// Writes what waits in the session's batch, and closes the session.
pub(crate) fn close(handle: i64) -> Result<()> {
    let session = get(handle)?;
    SESSIONS.write().unwrap_or_else(PoisonError::into_inner).open.remove(&handle);
    let (shared, mut batch) = (&session.shared, session.batch());
    shared.runtime.block_on(batch.flush(&session.store));
    match batch.example() {
        Some(example) if batch.failed() > 0 => {
            let message = format!("{} of {} inserts failed; the first: {example}", batch.failed(), batch.inserted());
            Err(Error::new(example.kind(), message))
        }
        _ => Ok(()),
    }
}

/// Closes the clients.
pub(crate) fn shut_down() -> Result<()> {
    let shared = std::mem::take(&mut SESSIONS.write().unwrap_or_else(PoisonError::into_inner).shared);
    let closed = shared.into_values().map(|shared| shared.runtime.block_on(shared.client.close()));
    closed.fold(Ok(()), Result::and)
}

impl Session {
    pub(crate) fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn connect(uri: &str) -> Result<Self> {
        let runtime = Builder::new_multi_thread().thread_name("peristyle-io").enable_all().build();
        let runtime = runtime.map_err(|error| {
            Error::new(ErrorKind::Internal, format!("can't start the threads of the client: {error}"))
        })?;
        let client = runtime.block_on(peristyle::connect(uri))?;
        Ok(Self {
            runtime,
            client,
            stores: Mutex::default(),
            told: Mutex::default(),
            told_of_order: AtomicBool::new(false),
        })
    }

    /// A table, opened by the first session that asks for it.
    fn store(&self, settings: Settings) -> Result<Store> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores.get(&settings) {
            return Ok(store.clone());
        }
        let store = self.runtime.block_on(Store::open(self.client.clone(), &settings))?;
        stores.insert(settings, store.clone());
        Ok(store)
    }

    /// The status of a failure. The first of each is told on standard error: YCSB's results have no messages.
    pub(crate) fn failed(&self, error: &Error) -> Status {
        let status = Status::from(error);
        if self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(status) {
            eprintln!("peristyle: {}: {error}", status.name());
        }
        status
    }

    /// Tells, once, where scans aren't in key order.
    pub(crate) fn tell_order(&self, store: &Store) {
        if !store.scans_in_key_order() && !self.told_of_order.swap(true, Ordering::Relaxed) {
            eprintln!(
                "peristyle: scans come in the order of the keys' hashes; make the table with peristyle.buckets=N for the order of keys"
            );
        }
    }
}
