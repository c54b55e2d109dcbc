//! Cassandra from Maven Central: one artifact and what it needs at run time.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::Error;
use crate::cache::{self, Lock};
use crate::cds;
use crate::java::Java;
use crate::process;

/// The release of Apache Cassandra that is fetched.
pub const CASSANDRA_VERSION: &str = "5.0.6";

const ATTEMPTS: u32 = 3;
/// Goals are named with their version, so that every Maven does the same.
const GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// In milliseconds; by default Maven waits for half an hour.
const TIMEOUTS: [&str; 2] = ["-Daether.connector.connectTimeout=20000", "-Daether.connector.requestTimeout=60000"];
/// What `setpriv` ends with, as a shell does, when there is no such program.
const NOT_FOUND: i32 = 127;

/// A fetched Cassandra, ready to start.
#[derive(Clone, Debug)]
pub struct Installation {
    jars: PathBuf,
    archive: Option<PathBuf>,
}

impl Installation {
    /// The folder that holds the jars.
    pub fn jars(&self) -> &Path {
        &self.jars
    }

    /// The class-data archive, if there is one for these jars and this Java.
    pub(crate) fn archive(&self) -> Option<&Path> {
        self.archive.as_deref()
    }

    /// All jars in a fixed order, as the archive demands.
    pub(crate) fn classpath(&self) -> Result<OsString, Error> {
        let mut path = OsString::new();
        for jar in jar_files(&self.jars)? {
            if !path.is_empty() {
                path.push(":");
            }
            path.push(jar);
        }
        Ok(path)
    }
}

/// Fetches Cassandra if the cache lacks it, and makes the class-data archive for quick starts.
///
/// The first call takes from ten seconds to minutes, by the network; later ones a few milliseconds.
/// Processes that call it at the same time wait for one another. Each of three attempts is made by
/// Maven in a folder of its own, and only a complete one is moved into place.
pub fn fetch() -> Result<Installation, Error> {
    let java = Java::find()?;
    let folder = cache::folder()?.join(format!("cassandra-{CASSANDRA_VERSION}"));
    let jars = folder.join("jars");
    if !is_complete(&jars) || cds::existing(&jars, java)?.is_none() {
        prepare(&folder, &jars, java)?;
    }
    let archive = cds::existing(&jars, java)?.and_then(cds::Archive::usable);
    Ok(Installation { jars, archive })
}

fn prepare(folder: &Path, jars: &Path, java: &Java) -> Result<(), Error> {
    cache::make_folder(folder)?;
    let _lock = Lock::wait(&folder.join("lock"))?;
    if !is_complete(jars) {
        eprintln!("fetching Cassandra {CASSANDRA_VERSION} from Maven Central (66 MB, once)");
        download(folder, jars)?;
    }
    if cds::existing(jars, java)?.is_none() {
        eprintln!("making the class-data archive for quick starts (once)");
        let bare = Installation { jars: jars.to_owned(), archive: None };
        cds::make(&bare, java)?;
    }
    Ok(())
}

/// The jars appear by one rename, so the main one vouches for the rest.
fn is_complete(jars: &Path) -> bool {
    jars.join(format!("cassandra-all-{CASSANDRA_VERSION}.jar")).is_file()
}

fn download(folder: &Path, jars: &Path) -> Result<(), Error> {
    let partial = folder.join("partial");
    let mut reason = String::new();
    for attempt in 0..ATTEMPTS {
        thread::sleep(Duration::from_secs(3) * attempt);
        cache::remove_folder(&partial)?;
        let output = copy_dependencies(&partial)?;
        let fetched = partial.join("jars");
        if output.status.success() && is_complete(&fetched) {
            cache::remove_folder(jars)?;
            fs::rename(&fetched, jars).map_err(Error::io(format!("moving into {}", jars.display())))?;
            return cache::remove_folder(&partial);
        }
        reason = first_error(&output);
    }
    Err(Error::Fetch { attempts: ATTEMPTS, reason })
}

/// Tethered, so that a fetch cut off does not write into the folder of the next one.
fn copy_dependencies(partial: &Path) -> Result<Output, Error> {
    cache::make_folder(partial)?;
    cache::write(&partial.join("pom.xml"), &pom())?;
    let output = process::tethered()
        .args(["mvn", "--quiet", "--batch-mode", GOAL])
        .args(TIMEOUTS)
        .args(["-DincludeScope=runtime", "-DoutputDirectory=jars"])
        .current_dir(partial)
        .stdin(Stdio::null())
        .output()
        .map_err(process::no_setpriv)?;
    if output.status.code() == Some(NOT_FOUND) {
        return Err(Error::Tool { problem: "mvn was not found".into(), install: "maven" });
    }
    Ok(output)
}

fn pom() -> String {
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">
  <modelVersion>4.0.0</modelVersion>
  <groupId>peristyle</groupId>
  <artifactId>cassandra</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.cassandra</groupId>
      <artifactId>cassandra-all</artifactId>
      <version>{CASSANDRA_VERSION}</version>
    </dependency>
  </dependencies>
</project>
"
    )
}

fn first_error(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let error = text.lines().find(|line| line.contains("ERROR"));
    error.map_or_else(|| format!("mvn ended with {}", output.status), str::to_owned)
}

/// The jars of a folder, sorted.
pub(crate) fn jar_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
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
