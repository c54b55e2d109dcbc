//! A folder with YCSB, the binding's jar, its library beside it, and a launcher.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{Cargo, root, run};

/// Goals are named with their version, so that every Maven does the same.
const GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
/// The jar that vouches for the rest.
const MAIN_JAR: &str = "core-0.17.0.jar";

/// Where the binding is built.
#[derive(Debug)]
pub(crate) struct Home(PathBuf);

impl Home {
    /// Builds everything that is not there, and the binding anew.
    pub(crate) fn build(debug: bool) -> Result<Self, String> {
        let target = Cargo::target_folder()?;
        let home = Self(target.join("ycsb"));
        make(&home.0)?;
        home.fetch()?;
        let profile = if debug { "debug" } else { "release" };
        let arguments = ["build", "-p", "peristyle-ycsb-jni", "--release"];
        Cargo::new(arguments.into_iter().take(if debug { 3 } else { 4 })).run()?;
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

    /// YCSB and what it needs, from Maven Central. They appear by one rename.
    fn fetch(&self) -> Result<(), String> {
        let (jars, partial) = (self.0.join("lib"), self.0.join("partial"));
        if jars.join(MAIN_JAR).is_file() {
            return Ok(());
        }
        let mut command = Command::new("mvn");
        command.args(["--quiet", "--batch-mode", "--file"]).arg(binding().join("pom.xml")).arg(GOAL);
        command.arg("-DincludeScope=runtime").arg(format!("-DoutputDirectory={}", partial.display()));
        run(command).map_err(|why| format!("{why}; YCSB comes from Maven Central, with mvn"))?;
        if jars.exists() {
            fs::remove_dir_all(&jars).map_err(|error| format!("{}: {error}", jars.display()))?;
        }
        fs::rename(&partial, &jars).map_err(|error| format!("{}: {error}", jars.display()))
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
