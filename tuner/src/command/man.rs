//! `tuner man`: manual pages from the definitions of the command line.

use std::path::Path;

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::failure::{Exit, Failure, Result};

/// Prints the page of the program, or writes those of all commands.
pub(crate) fn run(to: Option<&Path>) -> Result<Exit> {
    match to {
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .map_err(|error| Failure::input(format!("--to {}: {error}", folder.display())))?;
            clap_mangen::generate_to(Cli::command(), folder).map_err(|error| Failure::write(folder, error))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command())
                .render(&mut page)
                .map_err(|error| Failure::input(format!("can't make the page: {error}")))?;
            // A closed pipe is no failure.
            let _ = std::io::Write::write_all(&mut std::io::stdout(), &page);
        }
    }
    Ok(Exit::Done)
}
