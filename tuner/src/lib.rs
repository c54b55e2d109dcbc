//! Finds how hard a wide-column database may be driven: the throughput knee without errors.
//!
//! The way of a run: `cli` → `plan` → `search` (which point next, pure) → `target` (measures it) → `load` (workers, recorders)
//! → `report`. A search never touches the network, the load never decides, a report never computes what a search decides by.

mod cli;
mod command;
mod console;
mod failure;
mod interrupt;
mod judge;
mod load;
mod machine;
mod objective;
mod paths;
mod plan;
mod report;
mod search;
mod space;
mod stats;
mod target;
mod workload;
mod ycsb;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::failure::Exit;

/// Runs the command line and returns its exit code: 0 found, 2 bad input or unreachable target, 3 no point without errors,
/// 4 budget exhausted, 5 the target drifted, 130 Ctrl-C.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let exit = match cli::Cli::try_parse_from(arguments) {
        Ok(cli) => command::run(cli.command).unwrap_or_else(|failure| {
            eprintln!("error: {failure}");
            failure.exit()
        }),
        Err(error) => refuse(&error),
    };
    ExitCode::from(exit as u8)
}

/// Help and version go out whole; a mistake is one line.
fn refuse(error: &clap::Error) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed pipe is no failure.
            let _ = error.print();
            Exit::Done
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            Exit::BadInput
        }
        _ => {
            let text = error.to_string();
            let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
            let parts: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with("For more")).collect();
            eprintln!("{}", parts.join("; "));
            Exit::BadInput
        }
    }
}
