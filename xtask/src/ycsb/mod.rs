//! The real YCSB with Peristyle's binding: built, run, and checked against `tuner ycsb`.

mod build;
mod check;
mod suite;

use clap::Args;

pub(crate) use self::suite::run as run_suite;
use crate::cargo;

/// A run of YCSB.
#[derive(Debug, Args)]
pub(crate) struct Ycsb {
    /// Build the library without optimisation: quicker to build, slower to run.
    #[arg(long)]
    debug: bool,
    /// `load` or `run`, and YCSB's own options. Without any, the binding is built and its folder told.
    #[arg(last = true)]
    arguments: Vec<String>,
}

impl Ycsb {
    /// Fetches YCSB, builds the binding, and runs YCSB with it.
    pub(crate) fn run(self) -> Result<(), String> {
        let home = build::Home::build(self.debug)?;
        if self.arguments.is_empty() {
            println!("{}", home.launcher().display());
            return Ok(());
        }
        let mut command = home.ycsb();
        command.args(&self.arguments);
        cargo::run(command)
    }
}
