//! A folder with YCSB, the binding's jar, its library beside it, and a launcher.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{Cargo, root, run};

/// Goals are named with their version, so that every Maven does the same.
const GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
/// The jars that vouch for the rest.
const MAIN_JAR: &str = "core-0.17.0.jar";
const DRIVER_JAR: &str = "cassandra-driver-core-3.0.0.jar";

/// How the native library is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    Release,
    Debug,
    /// With panics that the tests ask for.
    Faults,
}

/// Where the binding is built.
#[derive(Debug)]
pub(crate) struct Home(PathBuf);

impl Home {
    /// Builds everything that is not there, and the binding anew.
    pub(crate) fn build(library: Library) -> Result<Self, String> {
        let target = Cargo::target_folder()?;
        let home = Self(target.join("ycsb"));
        make(&home.0)?;
        fetch(&binding().join("pom.xml"), &home.0.join("lib"), MAIN_JAR)?;
        let (profile, options): (_, &[&str]) = match library {
            Library::Release => ("release", &["--release"]),
            Library::Debug => ("debug", &[]),
            Library::Faults => ("debug", &["--features", "faults"]),
        };
        let package = ["build", "-p", "peristyle-ycsb-jni"];
        Cargo::new(package.into_iter().chain(options.iter().copied())).run()?;
        let library = format!("{}peristyle_ycsb_jni{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        copy(&target.join(profile).join(&library), &home.0.join(&library))?;
        home.compile()?;
        make(&home.0.join("bin"))?;
        copy(&binding().join("bin/ycsb"), &home.launcher())?;
        Ok(home)
    }

    /// The program `ycsb`.
    pub(crate) fn launcher(&self) -> PathBuf {
        self.0.join("bin/ycsb")
    }

    /// A run of YCSB with the binding.
    pub(crate) fn ycsb(&self) -> Command {
        Command::new(self.launcher())
    }

    /// A Java program of one file beside YCSB and the binding.
    pub(crate) fn java(&self, source: &str) -> Command {
        let (jar, jars) = (self.0.join("peristyle-ycsb.jar"), self.0.join("lib/*"));
        let mut command = Command::new("java");
        command.arg("-cp").arg(format!("{}:{}", jar.display(), jars.display()));
        command.arg(binding().join("samples").join(source));
        command
    }

    /// Builds the class that drives Cassandra by the Java driver, which YCSB's own binding uses.
    pub(crate) fn build_java_driver(&self) -> Result<(), String> {
        let (home, sources) = (self.java_driver_folder(), binding().join("bench"));
        make(&home)?;
        fetch(&sources.join("pom.xml"), &home.join("lib"), DRIVER_JAR)?;
        let mut compile = Command::new("javac");
        compile.args(["--release", "8", "-Xlint:-options", "-cp"]);
        compile.arg(format!("{}:{}", self.0.join("lib/*").display(), home.join("lib/*").display()));
        compile.arg("-d").arg(&home).arg(sources.join("JavaDriverClient.java"));
        run(compile)
    }

    /// YCSB with that class, or with YCSB's own binding in this folder.
    pub(crate) fn java_driver(&self, own: Option<&Path>) -> Command {
        let (folder, class) = match own {
            Some(folder) => (folder.to_owned(), "site.ycsb.db.CassandraCQLClient"),
            None => (self.java_driver_folder(), "JavaDriverClient"),
        };
        let folders = [self.0.join("lib/*"), folder.join("lib/*"), folder.join("*"), folder];
        let mut command = Command::new("java");
        command.arg("-cp").arg(folders.map(|folder| folder.display().to_string()).join(":"));
        command.args(["site.ycsb.Client", "-db", class]);
        command
    }

    fn java_driver_folder(&self) -> PathBuf {
        self.0.join("java-driver")
    }

    /// The class, in a jar.
    fn compile(&self) -> Result<(), String> {
        let classes = self.0.join("classes");
        let mut compile = Command::new("javac");
        compile.args(["--release", "8", "-Xlint:-options", "-cp"]).arg(self.0.join("lib/*")).arg("-d").arg(&classes);
        compile.arg(binding().join("java/io/peristyle/ycsb/PeristyleClient.java"));
        run(compile)?;
        let mut pack = Command::new("jar");
        pack.arg("cf").arg(self.0.join("peristyle-ycsb.jar")).arg("-C").arg(&classes).arg(".");
        run(pack)
    }
}

/// What a `pom.xml` names and what that needs, from Maven Central. They appear by one rename.
fn fetch(pom: &Path, jars: &Path, main_jar: &str) -> Result<(), String> {
    let partial = jars.with_extension("partial");
    if jars.join(main_jar).is_file() {
        return Ok(());
    }
    let mut command = Command::new("mvn");
    command.args(["--quiet", "--batch-mode", "--file"]).arg(pom).arg(GOAL);
    command.arg("-DincludeScope=runtime").arg(format!("-DoutputDirectory={}", partial.display()));
    run(command).map_err(|why| format!("{why}; YCSB comes from Maven Central, with mvn"))?;
    if jars.exists() {
        fs::remove_dir_all(jars).map_err(|error| format!("{}: {error}", jars.display()))?;
    }
    fs::rename(&partial, jars).map_err(|error| format!("{}: {error}", jars.display()))
}

/// The binding's sources.
fn binding() -> PathBuf {
    root().join("bindings/ycsb")
}

fn make(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Copies by a rename, since a running program may have the old file open.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let partial = to.with_extension("partial");
    fs::copy(from, &partial).map_err(|error| format!("{}: {error}", from.display()))?;
    fs::rename(&partial, to).map_err(|error| format!("{}: {error}", to.display()))
}
