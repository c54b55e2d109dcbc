//! `tuner show` and `tuner apply`: results that are there already.

use std::path::Path;

use crate::console::Console;
use crate::failure::{Exit, Failure, Result};
use crate::report::ResultFile;

/// Prints the verdict of a result once more.
pub(crate) fn show(folder: &Path, json: bool) -> Result<Exit> {
    let result = ResultFile::read(folder)?;
    if json {
        Console::result(&serde_json::to_string(&result).map_err(|error| Failure::input(error.to_string()))?);
    } else {
        let console = Console::new(false);
        console.line(&format!("target    {}", result.target));
        console.line(&format!("workload  {}", result.workload));
        console.line(&format!("finished  {}, {} windows", result.environment.finished, result.windows));
        console.closing(&result);
    }
    Ok(Exit::Done)
}

/// Prints or writes what applications load.
pub(crate) fn apply(folder: &Path, to: Option<&Path>) -> Result<Exit> {
    let result = ResultFile::read(folder)?;
    let tuned = result
        .tuned()
        .ok_or_else(|| Failure::input(format!("{} has no point to apply: {}", folder.display(), result.stop_reason)))?;
    match to {
        Some(file) => std::fs::write(file, tuned.to_string()).map_err(|error| Failure::write(file, error))?,
        None => Console::result(tuned.to_string().trim_end()),
    }
    Ok(Exit::Done)
}
