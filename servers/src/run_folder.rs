//! Folders of running nodes, and the removal of what a killed process left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;
use crate::cache::{self, Lock};

/// A node's folder in `CACHE/runs`, removed when dropped. Its lock file, held while this process
/// lives, tells other processes that it is in use.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    _owner: Lock,
}

impl RunFolder {
    /// Makes a fresh folder, after removing those whose owners are gone.
    pub(crate) fn create(cache: &Path) -> Result<RunFolder, Error> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let runs = cache.join("runs");
        cache::make_folder(&runs)?;
        let _turn = Lock::wait(&runs.join("turn"))?;
        remove_abandoned(&runs)?;
        let name = format!("{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = runs.join(name);
        cache::make_folder(&path)?;
        let owner = Lock::wait(&owner_file(&path))?;
        Ok(RunFolder { path, _owner: owner })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // What resists now is removed as abandoned by a later start.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn owner_file(folder: &Path) -> PathBuf {
    folder.join("owner")
}

/// The kernel ends a node with its process, so an abandoned folder has no user.
fn remove_abandoned(runs: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(runs).map_err(Error::io(format!("reading {}", runs.display())))?;
    for folder in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        // A folder without an owner file is one whose removal was interrupted.
        let owner = owner_file(&folder);
        if !owner.exists() || Lock::attempt(&owner)?.is_some() {
            cache::remove_folder(&folder)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_folder_is_gone_and_a_held_one_stays() {
        let cache = tempfile::tempdir().unwrap();
        let held = RunFolder::create(cache.path()).unwrap();
        let dropped = RunFolder::create(cache.path()).unwrap();
        let gone = dropped.path().to_owned();
        drop(dropped);
        let _later = RunFolder::create(cache.path()).unwrap();
        assert!(held.path().exists());
        assert!(!gone.exists());
    }

    #[test]
    fn a_folder_left_by_a_dead_process_is_removed_at_the_next_start() {
        let cache = tempfile::tempdir().unwrap();
        let left = cache.path().join("runs/1-0");
        fs::create_dir_all(left.join("data")).unwrap();
        fs::write(owner_file(&left), "").unwrap();
        let _next = RunFolder::create(cache.path()).unwrap();
        assert!(!left.exists());
    }
}
