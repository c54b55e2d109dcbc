//! The binary, run in a folder of its own.

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// What a command left.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn tuner(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tuner"));
    command.current_dir(folder);
    command
}

pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Ended {
    Ended::of(tuner(folder).args(arguments).output().unwrap())
}
