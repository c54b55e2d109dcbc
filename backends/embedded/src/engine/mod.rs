//! The engine: a database, its tables, and the one thread that writes.

mod folder;
mod group;
mod partitions;
mod purge;
mod queue;
mod writer;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fjall::{Database, PersistMode};
use peristyle_core::clock::Clock;
use peristyle_core::declared::DeclaredColumns;
use peristyle_core::model::TableSpec;
use peristyle_core::{Error, ErrorKind, Response, Result};
use tokio::sync::oneshot;

use self::folder::Folder;
pub(crate) use self::folder::sync as sync_folder;
use self::partitions::Partitions;
use self::purge::{Grace, Purge};
use self::queue::Reply;
pub(crate) use self::queue::{Job, Message, Operation, Other, RowWrite, SchemaChange};
use self::writer::Lane;
use crate::config::{Durability, EmbeddedConfig};
use crate::error::closed;
use crate::schema::{Catalogue, ROWS, Table};

/// How long a dropped engine may take to write out what it holds.
const DROP_LIMIT: Duration = Duration::from_secs(10);

/// What of the configuration is used after opening.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) folder: PathBuf,
    pub(crate) write_buffer_bytes: u64,
    pub(crate) grace: Grace,
    pub(crate) persist: Option<PersistMode>,
}

/// What readers and the writer share. The fields go in this order, so the folder outlives the database.
pub(crate) struct Store {
    pub(crate) catalogue: Catalogue,
    pub(crate) db: Database,
    pub(crate) settings: Settings,
    _folder: Folder,
}

impl Store {
    pub(crate) fn clock(&self) -> &Clock {
        &self.settings.grace.clock
    }
}

/// A table as one request sees it. The fields go in this order, so the database outlives the table.
pub(crate) struct View {
    pub(crate) table: Arc<Table>,
    /// How the request's columns map to the table's, where they aren't the same.
    pub(crate) columns: Option<DeclaredColumns>,
    pub(crate) store: Arc<Store>,
}

struct Open {
    store: Arc<Store>,
    lane: Arc<Lane>,
    thread: JoinHandle<()>,
}

/// An open engine, or a closed one.
pub(crate) struct Engine {
    open: RwLock<Option<Open>>,
    folder: PathBuf,
}

impl Engine {
    /// Opens the folder, which takes as long as reading its journals does, and starts the writer.
    pub(crate) fn open(config: &EmbeddedConfig) -> Result<Self> {
        config.validate()?;
        let folder = Folder::new(config.path.as_deref())?;
        let path = folder.path.clone();
        let grace = Grace { clock: config.clock.clone(), grace: config.tombstone_grace };
        let db = open_database(config, &path, &grace)?;
        let settings = Settings {
            folder: path.clone(),
            write_buffer_bytes: config.write_buffer_bytes,
            grace,
            persist: match config.durability {
                Durability::Durable => Some(PersistMode::SyncData),
                Durability::Buffered => Some(PersistMode::Buffer),
                Durability::Relaxed => None,
            },
        };
        let catalogue = Catalogue::open(db.clone(), settings.clone())?;
        let ids: HashSet<u64> = catalogue.all().iter().map(|table| table.id).collect();
        let partitions = Partitions::open(&db, &path, &ids)?;
        let store = Arc::new(Store { catalogue, db, settings, _folder: folder });
        let (lane, thread) = Lane::start(Arc::clone(&store), partitions)?;
        Ok(Self { open: RwLock::new(Some(Open { store, lane, thread })), folder: path })
    }

    /// Where the data is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn with<T>(&self, take: impl FnOnce(&Open) -> T) -> Result<T> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(take).ok_or_else(closed)
    }

    pub(crate) fn store(&self) -> Result<Arc<Store>> {
        self.with(|open| Arc::clone(&open.store))
    }

    /// The table that a request is for.
    pub(crate) fn view(&self, spec: &TableSpec) -> Result<View> {
        let store = self.store()?;
        let (table, columns) = store.catalogue.require(spec)?;
        Ok(View { table, columns, store })
    }

    /// Hands a message to the writer and waits for the answer. Dropping the future hands over nothing or the whole.
    pub(crate) async fn ask(&self, message: impl FnOnce(Reply) -> Message) -> Result<Response> {
        let lane = self.with(|open| Arc::clone(&open.lane))?;
        let (reply, answer) = oneshot::channel();
        lane.push(message(reply)).await?;
        answer.await.unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::Internal, "the engine's writer ended early; open the folder again"))
        })
    }

    /// Writes out everything accepted, and gives up the folder.
    pub(crate) async fn close(&self) -> Result<()> {
        let Some(Open { store, lane, .. }) = self.take() else { return Ok(()) };
        drop(store);
        let (reply, answer) = oneshot::channel();
        lane.close(reply);
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// As [`close`](Self::close), but blocks, for a limited time, and errors are lost.
    pub(crate) fn close_now(&self) {
        let Some(Open { store, lane, thread }) = self.take() else { return };
        drop(store);
        lane.close(oneshot::channel().0);
        let patience = Instant::now() + DROP_LIMIT;
        while !thread.is_finished() && Instant::now() < patience {
            thread::sleep(Duration::from_micros(100));
        }
    }

    fn take(&self) -> Option<Open> {
        self.open.write().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn open_database(config: &EmbeddedConfig, path: &Path, grace: &Grace) -> Result<Database> {
    let grace = grace.clone();
    let filters = Arc::new(move |name: &str| name.starts_with(ROWS).then(|| Purge::factory(grace.clone())));
    let builder = Database::builder(path)
        .cache_size(config.cache_bytes)
        .max_journaling_size(config.journal_bytes)
        .with_compaction_filter_factories(filters);
    folder::open(builder, path)
}
