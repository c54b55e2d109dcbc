//! Finding a Java that the servers run on, and the development kit that compiles for it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::Error;

/// Cassandra 5.0 and HBase 2.6 support 11 and 17, and run on 21. From 24 on, Java lacks the security
/// manager that both need.
const FITTING: [u32; 3] = [11, 17, 21];
/// What launchers are compiled for: the first of those above.
pub(crate) const OLDEST: &str = "11";
/// The first release that can compile for that one.
const OLDEST_COMPILER: u32 = 11;
/// From this release on, the security manager has to be allowed; 11 does not know the option.
const MANAGER_FORBIDDEN: u32 = 18;
const PACKAGE: &str = "openjdk-17-jdk-headless";

/// A Java runtime.
#[derive(Clone, Debug)]
pub(crate) struct Java {
    pub(crate) program: PathBuf,
    /// The text of `java -version`, which tells builds apart.
    pub(crate) version: String,
    pub(crate) release: u32,
}

impl Java {
    /// The first fitting runtime of `$JAVA_HOME`, the `PATH` and `/usr/lib/jvm`. Looked for once
    /// per process.
    pub(crate) fn find() -> Result<&'static Java, Error> {
        static FOUND: OnceLock<Java> = OnceLock::new();
        if let Some(java) = FOUND.get() {
            return Ok(java);
        }
        let java = first_fitting(folders().iter().map(|folder| folder.join("java")))?;
        Ok(FOUND.get_or_init(|| java))
    }

    /// What this release needs to be told before it runs a server.
    pub(crate) fn arguments(&self) -> &'static [&'static str] {
        if self.release < MANAGER_FORBIDDEN { &[] } else { &["-Djava.security.manager=allow"] }
    }
}

/// The programs of a Java development kit.
#[derive(Clone, Debug)]
pub(crate) struct Kit {
    folder: PathBuf,
}

impl Kit {
    /// The first kit, new enough, of `$JAVA_HOME`, the `PATH` and `/usr/lib/jvm`.
    pub(crate) fn find() -> Result<Kit, Error> {
        Kit::first_fitting(folders())
    }

    fn first_fitting(folders: Vec<PathBuf>) -> Result<Kit, Error> {
        let mut fitting = folders.into_iter().map(|folder| Kit { folder }).filter(Kit::fits);
        fitting.next().ok_or_else(|| Error::Tool {
            problem: "javac was not found, which compiles the program that starts HBase".into(),
            install: PACKAGE,
        })
    }

    pub(crate) fn javac(&self) -> PathBuf {
        self.folder.join("javac")
    }

    pub(crate) fn jar(&self) -> PathBuf {
        self.folder.join("jar")
    }

    fn fits(&self) -> bool {
        let version = Command::new(self.javac()).arg("-version").stdin(Stdio::null()).output();
        let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let release = version.ok().and_then(|text| leading_number(text.strip_prefix("javac ")?));
        release.is_some_and(|release| release >= OLDEST_COMPILER) && self.jar().is_file()
    }
}

/// Where Java's programs may be, in the order of preference.
fn folders() -> Vec<PathBuf> {
    let home = env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin"));
    let mut found: Vec<PathBuf> = home.into_iter().collect();
    found.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let installed = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    found.extend(installed.map(|entry| entry.path().join("bin")));
    found
}

fn first_fitting(candidates: impl IntoIterator<Item = PathBuf>) -> Result<Java, Error> {
    let mut unfit = None;
    for program in candidates {
        let Some(version) = version_of(&program) else {
            continue;
        };
        match major(&version) {
            Some(release) if FITTING.contains(&release) => {
                return Ok(Java { program, version, release });
            }
            _ => unfit = unfit.or_else(|| version.lines().next().map(str::to_owned)),
        }
    }
    let problem = unfit.map_or_else(
        || "java was not found".to_owned(),
        |found| format!("the servers run on Java 11, 17 or 21, and here is {found}"),
    );
    Err(Error::Tool { problem, install: PACKAGE })
}

fn version_of(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("-version").stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The release in `openjdk version "17.0.15" 2025-04-15`.
fn major(version: &str) -> Option<u32> {
    let quoted = version.split('"').nth(1)?;
    leading_number(quoted)
}

fn leading_number(text: &str) -> Option<u32> {
    let digits = text.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_read_from_what_java_prints() {
        assert_eq!(major("openjdk version \"17.0.15\" 2025-04-15\nOpenJDK"), Some(17));
        assert_eq!(major("openjdk version \"25\" 2025-09-16"), Some(25));
        assert_eq!(major("java version \"1.8.0_442\""), Some(1));
        assert_eq!(major("no java here"), None);
    }

    #[test]
    fn only_releases_that_know_the_option_are_told_to_allow_the_security_manager() {
        let java = |release| Java { program: "java".into(), version: String::new(), release };
        assert!(java(11).arguments().is_empty());
        assert_eq!(java(21).arguments().len(), 1);
    }

    #[test]
    fn a_machine_without_java_is_told_what_to_install() {
        let error = first_fitting(["/nonexistent/java".into()]).unwrap_err();
        assert_eq!(error.to_string(), "java was not found; install openjdk-17-jdk-headless");
    }

    #[test]
    fn a_machine_with_a_runtime_alone_is_told_to_install_a_kit() {
        let error = Kit::first_fitting(vec!["/nonexistent".into()]).unwrap_err();
        assert!(error.to_string().ends_with("; install openjdk-17-jdk-headless"), "{error}");
    }
}
