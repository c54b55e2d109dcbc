//! The folder, before the engine below opens it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use fjall::{Database, DatabaseBuilder};
use peristyle_core::{Error, ErrorKind, Result};
use tempfile::TempDir;

use crate::error::{corrupt, from_fjall, from_io};

/// The file that the engine below writes last when it makes a database.
const VERSION: &str = "version";
const LOCK: &str = "lock";
/// What an interrupted making leaves.
const UNFINISHED: [&str; 3] = [LOCK, "keyspaces", "0.jnl"];

/// Where the data is, and whether it goes with the engine.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    /// Removes the folder when dropped.
    _temporary: Option<TempDir>,
}

impl Folder {
    /// The folder at this path, or a new temporary one.
    pub(crate) fn new(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            let temporary = tempfile::Builder::new().prefix("peristyle-").tempdir();
            let temporary = temporary.map_err(|error| from_io(error, &std::env::temp_dir()))?;
            return Ok(Self { path: temporary.path().to_owned(), _temporary: Some(temporary) });
        };
        prepare(path)?;
        Ok(Self { path: path.to_owned(), _temporary: None })
    }
}

/// Makes the folder, or checks that what is there is ours.
fn prepare(path: &Path) -> Result<()> {
    let fail = |error| from_io(error, path);
    if !path.exists() {
        fs::create_dir_all(path).map_err(fail)?;
        // A new folder is lost in a power loss until its parent is on the disk.
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            sync(parent).map_err(fail)?;
        }
        return Ok(());
    }
    if !path.is_dir() {
        let message = format!("{} is a file, not a folder; name another one, or move it away", path.display());
        return Err(Error::new(ErrorKind::Corrupt, message));
    }
    if path.join(VERSION).exists() {
        return Ok(());
    }
    let names = names(path).map_err(fail)?;
    match names.iter().find(|name| !UNFINISHED.contains(&name.as_str())) {
        Some(foreign) => {
            let message = format!(
                "{} has files of something else, such as {foreign}, and no database; name an empty or new folder",
                path.display()
            );
            Err(Error::new(ErrorKind::Corrupt, message))
        }
        None if names.is_empty() => Ok(()),
        None => clear_unfinished(path),
    }
}

/// Puts a folder's entries on the disk. Windows has nothing of the kind.
pub(crate) fn sync(path: &Path) -> std::io::Result<()> {
    if cfg!(windows) { Ok(()) } else { File::open(path)?.sync_all() }
}

fn names(path: &Path) -> std::io::Result<Vec<String>> {
    fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Nothing was ever acknowledged in a database whose making was interrupted, so it is made anew.
fn clear_unfinished(path: &Path) -> Result<()> {
    let fail = |error| from_io(error, path);
    let lock = File::create(path.join(LOCK)).map_err(fail)?;
    if lock.try_lock().is_err() {
        return Err(from_fjall(fjall::Error::Locked, path));
    }
    match fs::remove_file(path.join("0.jnl")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fail(error)),
        _ => {}
    }
    match fs::remove_dir_all(path.join("keyspaces")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(fail(error)),
        _ => Ok(()),
    }
}

/// Opens the database. The engine below panics on some damage, which is an error like any other here.
pub(crate) fn open(builder: DatabaseBuilder<Database>, path: &Path) -> Result<Database> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| builder.open())) {
        Ok(opened) => opened.map_err(|error| from_fjall(error, path)),
        Err(_) => Err(corrupt(path)),
    }
}
