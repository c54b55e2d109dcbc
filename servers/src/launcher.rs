//! A small Java program of ours, compiled against a server's jars.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::java::{self, Kit};
use crate::{Error, cache};

/// Its source files: their names and texts.
#[derive(Debug)]
pub(crate) struct Launcher {
    pub(crate) sources: &'static [(&'static str, &'static str)],
}

impl Launcher {
    /// Named after the sources, so that every version of them has a file of its own.
    pub(crate) fn file_name(&self) -> String {
        let mut digest = DefaultHasher::new();
        self.sources.hash(&mut digest);
        format!("launcher-{:016x}.jar", digest.finish())
    }

    /// Compiles it into the jar `target`, which appears whole or not at all. It is a jar because a
    /// class-data archive takes no classes from folders.
    pub(crate) fn compile(&self, jars: &[PathBuf], target: &Path) -> Result<(), Error> {
        let kit = Kit::find()?;
        let folder = target.with_file_name("launcher");
        cache::remove_folder(&folder)?;
        cache::make_folder(&folder)?;
        for (name, text) in self.sources {
            cache::write(&folder.join(name), text)?;
        }
        let classpath = jars.iter().map(|jar| jar.as_os_str()).collect::<Vec<_>>().join(&OsString::from(":"));
        let mut compile = Command::new(kit.javac());
        compile.args(["--release", java::OLDEST, "-nowarn", "-d", "classes", "-classpath"]).arg(classpath);
        run(compile.args(self.sources.iter().map(|(name, _)| name)), &folder)?;
        run(Command::new(kit.jar()).args(["--create", "--file", "launcher.jar", "-C", "classes", "."]), &folder)?;
        fs::rename(folder.join("launcher.jar"), target)
            .map_err(Error::io(format!("moving to {}", target.display())))?;
        cache::remove_folder(&folder)
    }
}

fn run(command: &mut Command, folder: &Path) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output =
        command.current_dir(folder).stdin(Stdio::null()).output().map_err(Error::io(format!("running {program}")))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let first = words.lines().next().unwrap_or_default();
    Err(Error::Setting(format!("{program} ended with {}: {first}", output.status)))
}
