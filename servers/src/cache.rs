//! The cache folder, and the lock that keeps processes out of each other's way in it.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::Error;

/// Where servers are kept: `$PERISTYLE_SERVERS`, else `$XDG_CACHE_HOME/peristyle/servers`, else
/// `~/.cache/peristyle/servers`. The folder is made if it is absent.
pub fn folder() -> Result<PathBuf, Error> {
    let folder = choose(|name| env::var_os(name))
        .ok_or_else(|| Error::Setting("no place for servers: set PERISTYLE_SERVERS to a folder".into()))?;
    let folder = std::path::absolute(&folder).map_err(Error::io(format!("resolving {}", folder.display())))?;
    make_folder(&folder)?;
    Ok(folder)
}

fn choose(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("PERISTYLE_SERVERS")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("peristyle/servers")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/peristyle/servers")))
}

pub(crate) fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io(format!("making {}", path.display())))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::io(format!("writing {}", path.display())))
}

pub(crate) fn remove_folder(path: &Path) -> Result<(), Error> {
    if !path.exists() {
        return Ok(());
    }
    fs::remove_dir_all(path).map_err(Error::io(format!("removing {}", path.display())))
}

/// An exclusive lock on a file, released when dropped or when the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, waiting for whoever holds it.
    pub(crate) fn wait(path: &Path) -> Result<Lock, Error> {
        let file = open(path)?;
        file.lock().map_err(Error::io(format!("locking {}", path.display())))?;
        Ok(Lock { _file: file })
    }

    /// Takes the lock, or gives `None` when a living process holds it.
    pub(crate) fn attempt(path: &Path) -> Result<Option<Lock>, Error> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(Error::io(format!("locking {}", path.display()))(source)),
        }
    }
}

fn open(path: &Path) -> Result<File, Error> {
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(Error::io(format!("opening {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(set: &[(&str, &str)]) -> Option<PathBuf> {
        choose(|name| {
            let (_, value) = set.iter().find(|(key, _)| *key == name)?;
            Some(OsString::from(value))
        })
    }

    #[test]
    fn the_most_specific_variable_names_the_cache() {
        let all = [("PERISTYLE_SERVERS", "/p"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(chosen(&all), Some("/p".into()));
        assert_eq!(chosen(&all[1..]), Some("/x/peristyle/servers".into()));
        assert_eq!(chosen(&all[2..]), Some("/h/.cache/peristyle/servers".into()));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let set = [("PERISTYLE_SERVERS", ""), ("HOME", "/h")];
        assert_eq!(chosen(&set), Some("/h/.cache/peristyle/servers".into()));
    }

    #[test]
    fn a_held_lock_is_seen_and_a_dropped_one_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = Lock::wait(&path).unwrap();
        assert!(Lock::attempt(&path).unwrap().is_none());
        drop(held);
        assert!(Lock::attempt(&path).unwrap().is_some());
    }
}
