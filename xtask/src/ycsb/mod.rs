//! The real YCSB with Peristyle's binding: built, run, and checked against `tuner ycsb`.

mod bench;
mod build;
mod check;
mod cost;
mod suite;

use clap::{Args, Subcommand};

use self::bench::Bench;
use self::build::{Home, Library};
pub(crate) use self::suite::run as run_suite;
use crate::cargo;

/// A run of YCSB.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Ycsb {
    #[command(subcommand)]
    command: Option<YcsbCommand>,
    /// Build the library without optimisation: quicker to build, slower to run.
    #[arg(long)]
    debug: bool,
    /// `load` or `run`, and YCSB's own options. Without any, the binding is built and its folder told.
    #[arg(last = true)]
    arguments: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum YcsbCommand {
    /// Measure what an operation costs the client: YCSB with a Java driver, YCSB with the binding, and tuner ycsb.
    Bench(Bench),
}

impl Ycsb {
    /// Fetches YCSB, builds the binding, and runs YCSB with it.
    pub(crate) fn run(self) -> Result<(), String> {
        if let Some(YcsbCommand::Bench(bench)) = self.command {
            return bench.run();
        }
        let home = Home::build(if self.debug { Library::Debug } else { Library::Release })?;
        if self.arguments.is_empty() {
            println!("{}", home.launcher().display());
            return Ok(());
        }
        let mut command = home.ycsb();
        command.args(&self.arguments);
        cargo::run(command)
    }
}
