//! The tables there are: a catalogue in a keyspace of its own, so that a folder describes itself.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use peristyle_core::declared::DeclaredColumns;
use peristyle_core::model::TableSpec;
use peristyle_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::engine::{Settings, sync_folder};
use crate::error::{corrupt, from_fjall, from_io, not_applied};

/// The keyspace of the catalogue.
const CATALOGUE: &str = "catalogue";
/// Rows are in keyspaces of this name with the table's number behind it.
pub(crate) const ROWS: &str = "rows-";
const FORMAT_KEY: &[u8] = b"format";
const FORMAT: &[u8] = b"1";
const TABLE_KEY: &str = "table/";
/// The next table's number, so that none is used twice.
const NEXT_KEY: &[u8] = b"next";

/// A table that is there.
pub(crate) struct Table {
    /// Its number; a table that is dropped or truncated and made again has another.
    pub(crate) id: u64,
    pub(crate) spec: Arc<TableSpec>,
    pub(crate) rows: Keyspace,
    gone: AtomicBool,
}

impl Table {
    /// Whether it was dropped or truncated.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}

/// How a table is stored in the catalogue, as JSON.
#[derive(Serialize, Deserialize)]
struct Entry {
    id: u64,
    table: TableSpec,
}

/// Every table, by name.
pub(crate) struct Catalogue {
    tables: RwLock<HashMap<Arc<str>, Arc<Table>>>,
    entries: Keyspace,
    db: Database,
    settings: Settings,
}

impl Catalogue {
    /// Reads the catalogue, or makes it in a new database.
    pub(crate) fn open(db: Database, settings: Settings) -> Result<Self> {
        let fail = |error| from_fjall(error, &settings.folder);
        if !db.keyspace_exists(CATALOGUE) && db.keyspace_count() > 0 {
            let message =
                format!("{} is a database of another program; name another folder", settings.folder.display());
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        let entries = db.keyspace(CATALOGUE, KeyspaceCreateOptions::default).map_err(fail)?;
        let catalogue = Self { tables: RwLock::default(), entries, db, settings };
        catalogue.check_format()?;
        catalogue.load()?;
        catalogue.remove_orphans()?;
        Ok(catalogue)
    }

    fn check_format(&self) -> Result<()> {
        let fail = |error| from_fjall(error, &self.settings.folder);
        match self.entries.get(FORMAT_KEY).map_err(fail)?.as_deref() {
            Some(FORMAT) => Ok(()),
            None => self.store(&[(FORMAT_KEY, Some(FORMAT))]),
            Some(other) => {
                let (folder, other) = (self.settings.folder.display(), String::from_utf8_lossy(other));
                let message = format!("{folder} has format {other}, but this version reads 1; upgrade the program");
                Err(Error::new(ErrorKind::SchemaMismatch, message))
            }
        }
    }

    fn load(&self) -> Result<()> {
        for entry in self.entries.prefix(TABLE_KEY) {
            let value = entry.value().map_err(|error| from_fjall(error, &self.settings.folder))?;
            let entry: Entry =
                serde_json::from_slice(&value).map_err(|error| corrupt(&self.settings.folder).with_source(error))?;
            if !self.db.keyspace_exists(&rows_name(entry.id)) {
                return Err(corrupt(&self.settings.folder));
            }
            self.insert(entry.id, Arc::new(entry.table))?;
        }
        Ok(())
    }

    /// A table whose making or removal was interrupted has rows but no entry.
    fn remove_orphans(&self) -> Result<()> {
        let known: Vec<String> = self.all().iter().map(|table| rows_name(table.id)).collect();
        for name in self.db.list_keyspace_names() {
            if name.starts_with(ROWS) && !known.iter().any(|known| **known == *name) {
                let rows = self.keyspace(&name)?;
                self.db.delete_keyspace(rows).map_err(|error| from_fjall(error, &self.settings.folder))?;
            }
        }
        Ok(())
    }

    /// The table of this name, and how a declaration of it maps to its columns.
    pub(crate) fn require(&self, declared: &TableSpec) -> Result<(Arc<Table>, Option<DeclaredColumns>)> {
        let table = self.find(declared.name()).ok_or_else(|| missing(declared.name()))?;
        let columns = DeclaredColumns::new(declared, &table.spec)?;
        Ok((table, columns))
    }

    /// The table of this name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Table>> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Every table.
    pub(crate) fn all(&self) -> Vec<Arc<Table>> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Makes a table. Its entry comes last, so it is there whole or not at all.
    pub(crate) fn create(&self, spec: &Arc<TableSpec>, if_absent: bool) -> Result<()> {
        match self.find(spec.name()) {
            Some(_) if if_absent => Ok(()),
            Some(_) => {
                let message = "the table exists; drop it first, or create it only if it is absent";
                Err(Error::new(ErrorKind::AlreadyExists, message))
            }
            None => self.make(Arc::clone(spec)),
        }
    }

    fn make(&self, spec: Arc<TableSpec>) -> Result<()> {
        let id = self.next_id()?;
        self.keyspace(&rows_name(id)).map_err(not_applied)?;
        // The engine below syncs the new folder, but not the one it is in.
        sync_folder(&self.settings.folder.join("keyspaces")).map_err(|error| from_io(error, &self.settings.folder))?;
        let entry = Entry { id, table: TableSpec::clone(&spec) };
        let entry = serde_json::to_vec(&entry).map_err(|error| {
            not_applied(Error::new(ErrorKind::Internal, format!("the table can't be stored: {error}")))
        })?;
        self.store(&[(&entry_key(spec.name()), Some(&entry)), (NEXT_KEY, Some(&(id + 1).to_be_bytes()))])?;
        self.insert(id, spec)
    }

    /// Removes a table. Its entry goes first, so it is there whole or not at all.
    pub(crate) fn remove(&self, name: &str, if_present: bool) -> Result<Option<u64>> {
        let Some(table) = self.find(name) else {
            return if if_present { Ok(None) } else { Err(missing(name)) };
        };
        self.store(&[(&entry_key(name), None)])?;
        self.tables.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.delete_rows(&table)?;
        Ok(Some(table.id))
    }

    /// Empties a table, by giving it other rows in one step.
    pub(crate) fn truncate(&self, name: &str) -> Result<u64> {
        let table = self.find(name).ok_or_else(|| missing(name))?;
        self.make(Arc::clone(&table.spec))?;
        self.delete_rows(&table)?;
        Ok(table.id)
    }

    fn delete_rows(&self, table: &Table) -> Result<()> {
        table.gone.store(true, Ordering::Release);
        self.db.delete_keyspace(table.rows.clone()).map_err(|error| from_fjall(error, &self.settings.folder))
    }

    fn insert(&self, id: u64, spec: Arc<TableSpec>) -> Result<()> {
        let rows = self.keyspace(&rows_name(id))?;
        let name = Arc::clone(spec.name());
        let table = Arc::new(Table { id, spec, rows, gone: AtomicBool::new(false) });
        self.tables.write().unwrap_or_else(PoisonError::into_inner).insert(name, table);
        Ok(())
    }

    fn keyspace(&self, name: &str) -> Result<Keyspace> {
        let options = || KeyspaceCreateOptions::default().max_memtable_size(self.settings.write_buffer_bytes);
        self.db.keyspace(name, options).map_err(|error| from_fjall(error, &self.settings.folder))
    }

    fn next_id(&self) -> Result<u64> {
        let stored = self.entries.get(NEXT_KEY).map_err(|error| from_fjall(error, &self.settings.folder))?;
        let Some(bytes) = stored else { return Ok(1) };
        let bytes = bytes.as_ref().try_into().map_err(|_| corrupt(&self.settings.folder))?;
        Ok(u64::from_be_bytes(bytes))
    }

    /// Schema changes are on the disk before they are acknowledged, whatever the durability of writes.
    fn store(&self, changes: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncAll));
        for (key, value) in changes {
            match value {
                Some(value) => batch.insert(&self.entries, *key, *value),
                None => batch.remove(&self.entries, *key),
            }
        }
        batch.commit().map_err(|error| from_fjall(error, &self.settings.folder))
    }
}

fn entry_key(name: &str) -> Vec<u8> {
    format!("{TABLE_KEY}{name}").into_bytes()
}

fn rows_name(id: u64) -> String {
    format!("{ROWS}{id}")
}

/// For a table that isn't there.
fn missing(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no table {name}; create it first"))
}
