//! The class-data archive: the JVM's memory image of the loaded classes, which halves start time.
//!
//! The JVM ignores an archive, silently, when a jar's path or time or its own build differs. So an
//! archive's name is a digest of all three, and a new one is made when they change.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::installation::Installation;
use crate::java::Java;
use crate::{Error, cache};

/// An archive's file. An empty one records that making it failed, so that it is not tried again.
#[derive(Debug)]
pub(crate) struct Archive {
    path: PathBuf,
    bytes: u64,
}

impl Archive {
    /// Its path, unless it is the record of a failure.
    pub(crate) fn usable(self) -> Option<PathBuf> {
        (self.bytes > 0).then_some(self.path)
    }
}

/// What a JVM is told so that it records the classes it loads into this file at its end.
pub(crate) fn recording(target: &Path) -> [String; 3] {
    let target = format!("-XX:ArchiveClassesAtExit={}", target.display());
    [target, "-Xlog:cds=error".into(), "-Xlog:cds+dynamic=error".into()]
}

/// The archive for these classes and this Java, if it was made.
pub(crate) fn existing(bare: &Installation, java: &Java) -> Result<Option<Archive>, Error> {
    let path = path(bare, java)?;
    Ok(fs::metadata(&path).ok().map(|file| Archive { path, bytes: file.len() }))
}

/// Makes the archive by starting and stopping a server that records what it loads. A start without
/// one works too, so a failure here is told and remembered, not returned.
pub(crate) fn make(
    bare: &Installation,
    java: &Java,
    record: fn(&Installation, &Path) -> Result<(), Error>,
) -> Result<(), Error> {
    let path = path(bare, java)?;
    remove_others(bare.jars())?;
    let partial = path.with_extension("partial");
    if let Err(error) = record(bare, &partial).and_then(|()| check(&partial)) {
        eprintln!("no class-data archive, starts will be slower: {error}");
        return cache::write(&path, "");
    }
    fs::rename(&partial, &path).map_err(Error::io(format!("moving to {}", path.display())))
}

fn check(recorded: &Path) -> Result<(), Error> {
    let recorded = fs::metadata(recorded).map_err(Error::io("the JVM wrote no archive"))?;
    if recorded.len() == 0 {
        return Err(Error::Setting("the JVM wrote an empty archive".into()));
    }
    Ok(())
}

fn path(bare: &Installation, java: &Java) -> Result<PathBuf, Error> {
    let mut digest = DefaultHasher::new();
    java.version.hash(&mut digest);
    for jar in bare.classes().unwrap_or_default() {
        let file = fs::metadata(&jar).map_err(Error::io(format!("reading {}", jar.display())))?;
        (&jar, file.modified().ok(), file.len()).hash(&mut digest);
    }
    Ok(bare.jars().with_file_name(format!("classes-{:016x}.jsa", digest.finish())))
}

fn remove_others(jars: &Path) -> Result<(), Error> {
    let folder = jars.parent().unwrap_or(jars);
    let entries = fs::read_dir(folder).map_err(Error::io(format!("reading {}", folder.display())))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == "jsa" || extension == "partial") {
            let removing = Error::io(format!("removing {}", path.display()));
            fs::remove_file(&path).map_err(removing)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_jar_touched_since_asks_for_a_new_archive() {
        let folder = tempfile::tempdir().unwrap();
        let bare = Installation::with_jar(folder.path(), "a.jar");
        let java = Java { program: "java".into(), version: "17".into(), release: 17 };
        fs::write(path(&bare, &java).unwrap(), "image").unwrap();
        assert!(existing(&bare, &java).unwrap().unwrap().usable().is_some());

        let jar = fs::File::options().write(true).open(bare.jars().join("a.jar")).unwrap();
        jar.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
        assert!(existing(&bare, &java).unwrap().is_none());
    }

    #[test]
    fn another_java_asks_for_a_new_archive() {
        let folder = tempfile::tempdir().unwrap();
        let java = |version: &str| Java { program: "java".into(), version: version.into(), release: 17 };
        let bare = Installation::with_jar(folder.path(), "a.jar");
        assert_ne!(path(&bare, &java("17")).unwrap(), path(&bare, &java("11")).unwrap());
    }

    #[test]
    fn a_remembered_failure_is_not_used() {
        let failed = Archive { path: "classes.jsa".into(), bytes: 0 };
        assert!(failed.usable().is_none());
    }
}
