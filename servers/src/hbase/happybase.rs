//! happybase, the Python client of Thrift 1 that others' programs use, in a virtual environment of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;
use crate::cache::{self, Lock};

const REQUIREMENT: &str = "happybase==1.3.0";

/// Makes a virtual environment with happybase in the cache folder if it lacks one, and gives its Python.
///
/// The first call takes some ten seconds and fetches from the Python package index; later ones take a few milliseconds. Processes that call it at
/// the same time wait for one another.
pub fn happybase() -> Result<PathBuf, Error> {
    let folder = cache::folder()?.join(REQUIREMENT.replace("==", "-"));
    let (python, made) = (folder.join("bin/python"), folder.join("made"));
    cache::make_folder(&folder)?;
    let _lock = Lock::wait(&folder.join("lock"))?;
    if !made.is_file() {
        eprintln!("fetching {REQUIREMENT} from PyPI (once)");
        make(&folder, &python)?;
        cache::write(&made, REQUIREMENT)?;
    }
    Ok(python)
}

fn make(folder: &Path, python: &Path) -> Result<(), Error> {
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(folder);
    run(&mut venv).map_err(|problem| Error::Tool { problem, install: "python3-venv" })?;
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", REQUIREMENT]);
    run(&mut pip).map_err(|reason| Error::Fetch { product: REQUIREMENT, from: "PyPI", attempts: 1, reason })
}

/// Runs a command, and tells the last line that it wrote if it fails.
fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    Err(text.trim_end().lines().next_back().unwrap_or("no output").to_owned())
}
