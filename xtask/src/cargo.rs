//! Running cargo on this workspace.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A cargo command in the making.
#[derive(Debug)]
pub(crate) struct Cargo {
    command: Command,
}

impl Cargo {
    pub(crate) fn new<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Cargo {
        let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(program);
        command.args(arguments).current_dir(root()).stdin(Stdio::null());
        Cargo { command }
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Cargo {
        self.command.env(name, value);
        self
    }

    /// What the workspace holds, as `cargo metadata` tells it.
    pub(crate) fn metadata() -> Result<Value, String> {
        let metadata = Cargo::new(["metadata", "--no-deps", "--format-version", "1"]).read()?;
        serde_json::from_slice(&metadata).map_err(|error| format!("cargo metadata cannot be read: {error}"))
    }

    /// Where cargo builds.
    pub(crate) fn target_folder() -> Result<PathBuf, String> {
        Ok(text(&Cargo::metadata()?, "target_directory").into())
    }

    /// Runs it with its output shown.
    pub(crate) fn run(self) -> Result<(), String> {
        run(self.command)
    }

    /// Runs it and gives what it wrote to standard output.
    pub(crate) fn read(mut self) -> Result<Vec<u8>, String> {
        let output = self.command.stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("cargo cannot be run: {error}"))?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(format!("{} ended with {}", line(&self.command), output.status))
        }
    }
}

/// A string in what cargo tells; empty if it is absent.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A list in what cargo tells; empty if it is absent.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Runs a command with its output shown, and fails if it does.
pub(crate) fn run(mut command: Command) -> Result<(), String> {
    println!("$ {}", line(&command));
    let status = command.status().map_err(|error| format!("{}: {error}", line(&command)))?;
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", line(&command))) }
}

/// Checks that a component of the toolchain is there, and tells how to get it.
pub(crate) fn demand(subcommand: &str, component: &str) -> Result<(), String> {
    Cargo::new([subcommand, "--version"])
        .read()
        .map(drop)
        .map_err(|_| format!("{component} is missing: run `rustup component add {component}`"))
}

/// The workspace's folder.
pub(crate) fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// The command as one would type it.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_is_named_with_its_status() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exit 3"]);
        assert_eq!(run(command).unwrap_err(), "sh -c exit 3 ended with exit status: 3");
    }

    #[test]
    fn a_missing_component_is_told_how_to_get() {
        let error = demand("no-such-subcommand", "rustfmt").unwrap_err();
        assert_eq!(error, "rustfmt is missing: run `rustup component add rustfmt`");
    }
}
