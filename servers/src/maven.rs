//! Jars from Maven Central: one artifact and what it needs at run time.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::installation::Product;
use crate::{Error, cache, process};

const ATTEMPTS: u32 = 3;
/// Goals are named with their version, so that every Maven does the same.
const GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// In milliseconds; by default Maven waits for half an hour.
const TIMEOUTS: [&str; 2] = ["-Daether.connector.connectTimeout=20000", "-Daether.connector.requestTimeout=60000"];
/// What `setpriv` ends with, as a shell does, when there is no such program.
const NOT_FOUND: i32 = 127;

/// Whether the product's jars are there. They appear by one rename, so the main one vouches for the
/// rest.
pub(crate) fn is_complete(product: &Product, jars: &Path) -> bool {
    jars.join(product.main_jar).is_file()
}

/// Fetches the product's jars into `folder/jars`, in a folder of its own until all are there.
pub(crate) fn download(product: &Product, folder: &Path, jars: &Path) -> Result<(), Error> {
    let partial = folder.join("partial");
    let mut reason = String::new();
    for attempt in 0..ATTEMPTS {
        thread::sleep(Duration::from_secs(3) * attempt);
        cache::remove_folder(&partial)?;
        let output = copy_dependencies(product, &partial)?;
        let fetched = partial.join("jars");
        if output.status.success() && is_complete(product, &fetched) {
            cache::remove_folder(jars)?;
            fs::rename(&fetched, jars).map_err(Error::io(format!("moving into {}", jars.display())))?;
            return cache::remove_folder(&partial);
        }
        reason = first_error(&output);
    }
    Err(Error::Fetch { product: product.name, from: "Maven Central", attempts: ATTEMPTS, reason })
}

/// Tethered, so that a fetch cut off does not write into the folder of the next one.
fn copy_dependencies(product: &Product, partial: &Path) -> Result<Output, Error> {
    cache::make_folder(partial)?;
    cache::write(&partial.join("pom.xml"), &pom(product.dependencies))?;
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

fn pom(dependencies: &str) -> String {
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">
  <modelVersion>4.0.0</modelVersion>
  <groupId>peristyle</groupId>
  <artifactId>server</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}  </dependencies>
</project>
"
    )
}

fn first_error(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let error = text.lines().find(|line| line.contains("ERROR"));
    error.map_or_else(|| format!("mvn ended with {}", output.status), str::to_owned)
}
