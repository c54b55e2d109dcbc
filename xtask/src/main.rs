//! The project's own commands.
//!
//! - `cargo xtask test` runs every check of the project, a real Cassandra and HBase included.
//! - `cargo xtask cassandra` runs a Cassandra in the foreground, `cargo xtask hbase` an HBase.
//! - `cargo xtask ycsb -- run …` runs YCSB with the project's binding.
//! - `cargo xtask fetch` gets the servers the tests need, and no more.

mod cargo;
mod examples;
mod serve;
mod servers;
mod step;
mod suite;
mod ycsb;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use peristyle_servers::{Cassandra, HBase};

use crate::serve::{ServeCassandra, ServeHBase};
use crate::step::Step;
use crate::ycsb::Ycsb;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run every check: format, lints, tests, documentation, examples.
    Test {
        /// Run these steps only; servers are started for those that need them.
        #[arg(long, value_enum, num_args = 1.., value_name = "STEP")]
        only: Vec<Step>,
    },
    /// Run one Cassandra in the foreground until Ctrl-C.
    Cassandra(ServeCassandra),
    /// Run an HBase with Thrift gateways in the foreground until Ctrl-C.
    Hbase(ServeHBase),
    /// Run YCSB with Peristyle's binding: `cargo xtask ycsb -- run -P workload -p peristyle.uri=URI`.
    Ycsb(Ycsb),
    /// Fetch the servers the tests need.
    Fetch,
}

fn main() -> ExitCode {
    let passed = match Arguments::parse().command {
        Command::Test { only } => suite::run(&only),
        Command::Cassandra(serve) => serve.run(),
        Command::Hbase(serve) => serve.run(),
        Command::Ycsb(ycsb) => ycsb.run(),
        Command::Fetch => fetch(),
    };
    match passed {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn fetch() -> Result<(), String> {
    for fetch in [Cassandra::fetch, HBase::fetch] {
        let installation = fetch().map_err(|error| error.to_string())?;
        println!("{}", installation.jars().display());
    }
    Ok(())
}
