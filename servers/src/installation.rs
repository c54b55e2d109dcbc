//! A server's files in the cache, fetched and prepared once.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::{self, Lock};
use crate::cds::{self, Archive};
use crate::java::Java;
use crate::launcher::Launcher;
use crate::{Error, maven};

/// A server that can be fetched.
#[derive(Debug)]
pub(crate) struct Product {
    /// For people: name and release.
    pub(crate) name: &'static str,
    /// Its folder in the cache.
    pub(crate) folder: &'static str,
    /// The jar that the others come with.
    pub(crate) main_jar: &'static str,
    /// What goes between `<dependencies>` and its end.
    pub(crate) dependencies: &'static str,
    /// The size of the download.
    pub(crate) megabytes: u32,
    /// A program of ours that starts it, if its own will not do.
    pub(crate) launcher: Option<Launcher>,
    /// Starts and stops the server with the JVM told to record the classes it loads in this file.
    pub(crate) record: fn(&Installation, &Path) -> Result<(), Error>,
}

/// A fetched server, ready to start.
#[derive(Clone, Debug)]
pub struct Installation {
    jars: PathBuf,
    launcher: Option<PathBuf>,
    archive: Option<PathBuf>,
}

impl Installation {
    /// The folder that holds the jars.
    pub fn jars(&self) -> &Path {
        &self.jars
    }

    /// The class-data archive, if there is one for these files and this Java.
    pub(crate) fn archive(&self) -> Option<&Path> {
        self.archive.as_deref()
    }

    /// All that is on the class path, in a fixed order, as the archive demands.
    pub(crate) fn classes(&self) -> Result<Vec<PathBuf>, Error> {
        let mut files = jar_files(&self.jars)?;
        files.extend(self.launcher.clone());
        Ok(files)
    }

    pub(crate) fn classpath(&self) -> Result<OsString, Error> {
        let mut path = OsString::new();
        for file in self.classes()? {
            if !path.is_empty() {
                path.push(":");
            }
            path.push(file);
        }
        Ok(path)
    }
}

/// Fetches a product if the cache lacks it, compiles its launcher, and makes its class-data archive.
///
/// The first call takes from ten seconds to minutes, by the network; later ones a few milliseconds.
/// Processes that call it at the same time wait for one another.
pub(crate) fn fetch(product: &Product) -> Result<Installation, Error> {
    let java = Java::find()?;
    let folder = cache::folder()?.join(product.folder);
    let launcher = product.launcher.as_ref().map(|launcher| folder.join(launcher.file_name()));
    let bare = Installation { jars: folder.join("jars"), launcher, archive: None };
    if !is_ready(product, &bare, java)? {
        prepare(product, &folder, &bare, java)?;
    }
    let archive = cds::existing(&bare, java)?.and_then(Archive::usable);
    Ok(Installation { archive, ..bare })
}

fn is_ready(product: &Product, bare: &Installation, java: &Java) -> Result<bool, Error> {
    let launcher = bare.launcher.as_ref().is_none_or(|launcher| launcher.is_file());
    Ok(maven::is_complete(product, &bare.jars) && launcher && cds::existing(bare, java)?.is_some())
}

fn prepare(product: &Product, folder: &Path, bare: &Installation, java: &Java) -> Result<(), Error> {
    cache::make_folder(folder)?;
    let _lock = Lock::wait(&folder.join("lock"))?;
    if !maven::is_complete(product, &bare.jars) {
        eprintln!("fetching {} from Maven Central ({} MB, once)", product.name, product.megabytes);
        maven::download(product, folder, &bare.jars)?;
    }
    if let (Some(launcher), Some(target)) = (&product.launcher, &bare.launcher)
        && !target.is_file()
    {
        launcher.compile(&jar_files(&bare.jars)?, target)?;
    }
    if cds::existing(bare, java)?.is_none() {
        eprintln!("making the class-data archive of {} for quick starts (once)", product.name);
        cds::make(bare, java, product.record)?;
    }
    Ok(())
}

/// The jars of a folder, sorted.
fn jar_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let reading = || Error::io(format!("reading {}", folder.display()));
    let mut jars = Vec::new();
    for entry in fs::read_dir(folder).map_err(reading())? {
        let path = entry.map_err(reading())?.path();
        if path.extension().is_some_and(|extension| extension == "jar") {
            jars.push(path);
        }
    }
    jars.sort();
    Ok(jars)
}

#[cfg(test)]
impl Installation {
    /// One with a single jar, for tests.
    pub(crate) fn with_jar(folder: &Path, name: &str) -> Installation {
        let jars = folder.join("jars");
        fs::create_dir_all(&jars).unwrap();
        fs::write(jars.join(name), "").unwrap();
        Installation { jars, launcher: None, archive: None }
    }
}
