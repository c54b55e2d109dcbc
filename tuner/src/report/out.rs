//! The folder of the results: claimed before anything runs, and given back if nothing came of it.

use std::fs;
use std::path::{Path, PathBuf};

use super::journal::{self, Journal};
use super::{Terms, Window, result, terms};
use crate::failure::{Failure, Result};

/// A folder that is known to be writable.
#[derive(Debug)]
pub(crate) struct OutFolder {
    path: PathBuf,
    /// The folders that were made for it, the outermost first.
    made: Vec<PathBuf>,
    keep: bool,
}

impl OutFolder {
    /// Makes the folder and its journal, which shows that files can be written there.
    pub(crate) fn claim(path: &Path) -> Result<(Self, Journal)> {
        let folder = Self::make(path, &[result::FILE, journal::FILE])?;
        let journal = Journal::create(&path.join(journal::FILE)).map_err(|error| cannot_write(path, &error))?;
        Ok((folder, journal))
    }

    /// Makes the folder for a command that writes at its end, and shows that files can be written there. One that holds some of
    /// these files is another run's.
    pub(crate) fn make(path: &Path, files: &[&str]) -> Result<Self> {
        let missing: Vec<PathBuf> =
            path.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        let made = missing.into_iter().filter(|folder| !folder.as_os_str().is_empty()).rev().collect();
        let mut folder = Self { path: path.to_owned(), made, keep: false };
        if files.iter().any(|file| path.join(file).exists()) {
            folder.keep = true;
            return Err(Failure::input(format!(
                "--out {} holds the results of another run; choose another folder, or remove it",
                path.display()
            )));
        }
        let draft = path.join(".draft");
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(path)?;
            fs::write(&draft, "")?;
            fs::remove_file(&draft)
        };
        write().map_err(|error| cannot_write(path, &error))?;
        Ok(folder)
    }

    /// Takes up the folder of a run that was cut short, to go on behind these windows. The settings must be the same.
    pub(crate) fn resume(path: &Path, windows: &[Window]) -> Result<(Self, Journal)> {
        let journal = Journal::resume(&path.join(journal::FILE), windows)
            .map_err(|error| Failure::input(format!("can't write to {}: {error}", path.display())))?;
        Ok((Self { path: path.to_owned(), made: Vec::new(), keep: true }, journal))
    }

    /// Reads what a run in this folder was asked for, and refuses to go on with something else.
    pub(crate) fn check_terms(path: &Path, now: &Terms) -> Result<()> {
        let file = path.join(terms::FILE);
        let fail =
            |error: String| Failure::input(format!("can't resume {}: {}: {error}", path.display(), file.display()));
        let text = fs::read_to_string(&file).map_err(|error| fail(error.to_string()))?;
        let then: Terms = serde_json::from_str(&text).map_err(|error| fail(error.to_string()))?;
        match then.difference(now) {
            Some((name, was, is)) => Err(Failure::input(format!(
                "can't resume {}: {name} was {was:?} and is {is:?} now; give the same, or begin anew",
                path.display()
            ))),
            None => Ok(()),
        }
    }

    /// Keeps what is there, whatever comes.
    pub(crate) fn keep(&mut self) {
        self.keep = true;
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes something as JSON.
    pub(crate) fn write_json(&self, name: &str, content: &impl serde::Serialize) -> Result<()> {
        let json =
            serde_json::to_string_pretty(content).map_err(|error| Failure::write(&self.path.join(name), error))?;
        self.write(name, &(json + "\n"))
    }

    /// Writes a file whole or not at all.
    pub(crate) fn write(&self, name: &str, content: &str) -> Result<()> {
        let path = self.path.join(name);
        let draft = self.path.join(format!(".{name}.draft"));
        let write = || -> std::io::Result<()> {
            let mut file = fs::File::create(&draft)?;
            std::io::Write::write_all(&mut file, content.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, &path)
        };
        write().map_err(|error| Failure::write(&path, error))
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::input(format!("can't write to --out {}: {error}; choose another folder", path.display()))
}

impl Drop for OutFolder {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        // Only what was made here goes, and only folders that are empty again.
        let _ = fs::remove_file(self.path.join(journal::FILE));
        for folder in self.made.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_claimed_for_nothing_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        let (folder, journal) = OutFolder::claim(&path).unwrap();
        assert!(path.join(journal::FILE).exists());
        drop((journal, folder));
        assert!(!root.path().join("a").exists());
    }

    #[test]
    fn a_folder_that_was_there_stays_and_its_files_too() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("mine"), "x").unwrap();
        drop(OutFolder::claim(root.path()).unwrap());
        assert!(root.path().join("mine").exists() && !root.path().join(journal::FILE).exists());
    }

    #[test]
    fn results_are_not_overwritten() {
        let root = tempfile::tempdir().unwrap();
        let (mut folder, _journal) = OutFolder::claim(root.path()).unwrap();
        folder.keep();
        drop(folder);
        let message = OutFolder::claim(root.path()).unwrap_err().to_string();
        assert!(message.contains("another run"), "{message}");
        assert!(root.path().join(journal::FILE).exists());
    }
}
