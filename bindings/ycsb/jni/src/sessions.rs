//! The client that all threads share, and what each of YCSB's threads has for itself.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

use peristyle::{Client, Error, ErrorKind, Result};
use peristyle_ycsb::{Settings, Status, Store, Writer, uri};
use tokio::runtime::{Builder, Runtime};

use crate::clerk::{Answer, Clerk, ClerkDesk, ClerkWakeList, Errand};

/// The runtime, the client with its tables, and which failures were told.
#[derive(Debug)]
pub(crate) struct Shared {
    runtime: Runtime,
    wake_list: Arc<ClerkWakeList>,
    client: Client,
    stores: Mutex<HashMap<Settings, Store>>,
    told: Mutex<HashSet<Status>>,
    told_of_order: AtomicBool,
}

/// One of YCSB's threads.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) store: Store,
    desk: Arc<ClerkDesk>,
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
    let writer = Writer::new(&settings);
    let mut sessions = SESSIONS.write().unwrap_or_else(PoisonError::into_inner);
    let shared = match sessions.shared.entry(uri(get)) {
        Entry::Occupied(known) => Arc::clone(known.get()),
        Entry::Vacant(place) => {
            let shared = Shared::connect(place.key(), settings.io_threads.unwrap_or_else(io_threads))?;
            Arc::clone(place.insert(Arc::new(shared)))
        }
    };
    let store = shared.store(settings)?;
    let handle = NEXT.fetch_add(1, Ordering::Relaxed);
    let session = Session { store: store.clone(), desk: Arc::new(ClerkDesk::new(Arc::clone(&shared.wake_list))) };
    let clerk = Clerk { desk: Arc::clone(&session.desk), shared: Arc::clone(&shared), store, writer, failure: None };
    shared.runtime.spawn(clerk.serve());
    sessions.open.insert(handle, Arc::new(session));
    Ok(handle)
}

/// An open session.
pub(crate) fn get(handle: i64) -> Result<Arc<Session>> {
    let sessions = SESSIONS.read().unwrap_or_else(PoisonError::into_inner);
    sessions.open.get(&handle).map(Arc::clone).ok_or_else(closed)
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the session is closed")
}

/// Writes what waits, and closes the session.
///
/// # Errors
/// Writes whose status said nothing of it have failed: how many, and the first.
pub(crate) fn close(handle: i64) -> Result<()> {
    let session = get(handle)?;
    SESSIONS.write().unwrap_or_else(PoisonError::into_inner).open.remove(&handle);
    session.ask(Errand::Close).map(drop)
}

/// Closes the clients.
pub(crate) fn shut_down() -> Result<()> {
    let shared = std::mem::take(&mut SESSIONS.write().unwrap_or_else(PoisonError::into_inner).shared);
    let closed = shared.into_values().map(|shared| shared.runtime.block_on(shared.client.close()));
    closed.fold(Ok(()), Result::and)
}

/// One for every four processors: YCSB's own threads need the others, and each io thread more takes work from the caches of the
/// rest.
fn io_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| processors.get().div_ceil(4))
}

impl Session {
    /// Has something done on the io threads, and waits for the answer.
    pub(crate) fn ask(&self, errand: Errand) -> Result<Answer> {
        self.desk.ask(errand).unwrap_or_else(|| Err(closed()))
    }
}

impl Shared {
    fn connect(uri: &str, io_threads: usize) -> Result<Self> {
        let wake_list = Arc::new(ClerkWakeList::default());
        let answered = Arc::clone(&wake_list);
        let runtime = Builder::new_multi_thread()
            .worker_threads(io_threads)
            .thread_name("peristyle-io")
            .on_thread_park(move || answered.wake(1))
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| {
            Error::new(ErrorKind::Internal, format!("can't start the threads of the client: {error}"))
        })?;
        let client = runtime.block_on(peristyle::connect(uri))?;
        Ok(Self {
            runtime,
            wake_list,
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
