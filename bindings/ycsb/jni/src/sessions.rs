//! The one client of the process, and what each of YCSB's threads has for itself.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, RwLock};

use peristyle::{Error, ErrorKind, Result};
use peristyle_ycsb::{Batch, Settings, Status, Store, uri};
use tokio::runtime::{Builder, Runtime};

/// The runtime, the table, and which failures were told.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) runtime: Runtime,
    pub(crate) store: Store,
    told: Mutex<HashSet<Status>>,
    told_of_order: AtomicBool,
}

/// One of YCSB's threads.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) batch: Mutex<Batch>,
}

/// The open sessions and the client that they share.
#[derive(Debug, Default)]
struct Sessions {
    shared: Option<Arc<Shared>>,
    open: HashMap<i64, Arc<Session>>,
}

static SESSIONS: LazyLock<RwLock<Sessions>> = LazyLock::new(RwLock::default);
static NEXT: AtomicI64 = AtomicI64::new(1);

/// Opens a session, and the client with the first.
pub(crate) fn open(properties: &HashMap<String, String>) -> Result<i64> {
    let get = |name: &str| properties.get(name).map(String::as_str);
    let settings = Settings::new(get)?;
    let mut sessions = SESSIONS.write().unwrap_or_else(PoisonError::into_inner);
    let shared = match &sessions.shared {
        Some(shared) => Arc::clone(shared),
        None => Arc::new(Shared::connect(&uri(get), &settings)?),
    };
    sessions.shared = Some(Arc::clone(&shared));
    let handle = NEXT.fetch_add(1, Ordering::Relaxed);
    let session = Session { shared, batch: Mutex::new(Batch::new(settings.batch)) };
    sessions.open.insert(handle, Arc::new(session));
    Ok(handle)
}

/// An open session.
pub(crate) fn get(handle: i64) -> Result<Arc<Session>> {
    let sessions = SESSIONS.read().unwrap_or_else(PoisonError::into_inner);
    sessions.open.get(&handle).map(Arc::clone).ok_or_else(|| Error::new(ErrorKind::Closed, "the session is closed"))
}

/// Writes what waits in the session's batch and closes it, and the client with the last one.
pub(crate) fn close(handle: i64) -> Result<()> {
    let session = get(handle)?;
    let shared = Arc::clone(&session.shared);
    let mut batch = session.batch();
    shared.runtime.block_on(batch.flush(&shared.store));
    let mut sessions = SESSIONS.write().unwrap_or_else(PoisonError::into_inner);
    sessions.open.remove(&handle);
    if sessions.open.is_empty() {
        sessions.shared = None;
        shared.runtime.block_on(shared.store.client().close())?;
    }
    drop(sessions);
    match batch.example() {
        Some(example) if batch.failed() > 0 => {
            let message = format!("{} of {} inserts failed; the first: {example}", batch.failed(), batch.inserted());
            Err(Error::new(example.kind(), message))
        }
        _ => Ok(()),
    }
}

impl Session {
    pub(crate) fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn connect(uri: &str, settings: &Settings) -> Result<Self> {
        let runtime = Builder::new_multi_thread().thread_name("peristyle-io").enable_all().build();
        let runtime = runtime.map_err(|error| {
            Error::new(ErrorKind::Internal, format!("can't start the threads of the client: {error}"))
        })?;
        let store = runtime.block_on(async { Store::open(peristyle::connect(uri).await?, settings).await })?;
        Ok(Self { runtime, store, told: Mutex::default(), told_of_order: AtomicBool::new(false) })
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
    pub(crate) fn tell_order(&self) {
        if !self.store.scans_in_key_order() && !self.told_of_order.swap(true, Ordering::Relaxed) {
            eprintln!(
                "peristyle: scans come in the order of the keys' hashes; make the table with peristyle.buckets=N for the order of keys"
            );
        }
    }
}
