//! The command line: definitions only.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::space::Span;

/// Finds how hard a wide-column database may be driven: the throughput knee without errors.
#[derive(Debug, Parser)]
#[command(name = "tuner", version, propagate_version = true, max_term_width = 110)]
#[command(after_help = "Examples:
  tuner sweep
  tuner sweep --target cql://127.0.0.1:9042/bench --create --budget 5m
  tuner workloads write-30b > mine.toml
  tuner run --workload mine.toml --threads 64 --batch 16 --budget 20s

Exit codes: 0 found (or no peak in the ranges), 2 bad input or unreachable target, 3 no point without errors,
4 budget exhausted, 5 the target drifted, 130 Ctrl-C.")]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measures one point
    Run(Settings),
    /// Searches threads x io threads x pool x batch for the knee
    #[command(after_help = "Examples:
  tuner sweep                                  the embedded engine in a temporary folder
  tuner sweep --target cql://h1,h2/bench --create --threads 1..256 --batch 1..64
  tuner sweep --workload point-read --target cql://h1/bench --out results/point-read

The peak is the point with the most rows per second and no error. The knee is the cheapest point within 2 % of it:
fewest threads first, then io threads, pool, batch. Figures come from a fresh run of the chosen point.")]
    Sweep(Settings),
    /// Writes the rows that reading workloads read
    Load(LoadSettings),
    /// Lists the built-in workloads, or prints one as TOML to copy and change
    Workloads {
        /// The workload to print
        name: Option<String>,
    },
    /// Prints completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Where and what.
#[derive(Debug, Args)]
pub(crate) struct Subject {
    /// `embedded:[/folder]`, `memory:` or `cql://host:9042/keyspace`
    #[arg(long, value_name = "URI", default_value = "embedded:")]
    pub(crate) target: String,
    /// A built-in workload or a TOML file; see `tuner workloads`
    #[arg(long, value_name = "NAME|FILE", default_value = "write-30b")]
    pub(crate) workload: String,
    /// The seed of everything that is random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Make the keyspace and the table where they are absent
    #[arg(long)]
    pub(crate) create: bool,
}

/// The settings of a run or sweep.
#[derive(Debug, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Requests in flight, from independent clients [default: 1..512; in a run 32]
    #[arg(long, value_name = "A..B")]
    pub(crate) threads: Option<Span>,
    /// Worker threads of the client [default: 1 to the cores, at most 16; in a run the cores]
    #[arg(long, value_name = "A..B")]
    pub(crate) io_threads: Option<Span>,
    /// Connections per node, or per shard [default: 1..4; in a run 1]
    #[arg(long, value_name = "A..B")]
    pub(crate) pool: Option<Span>,
    /// Rows per request [default: 1..256; in a run 1]
    #[arg(long, value_name = "A..B")]
    pub(crate) batch: Option<Span>,
    /// The most time that it may take, set-up included [default: 2m; in a run 20s]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) budget: Option<Duration>,
    /// The folder for the results [default: runs/<date>-<workload>]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print the result as JSON, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// The settings of a load.
#[derive(Debug, Args)]
pub(crate) struct LoadSettings {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// How many rows, instead of the workload's count
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rows: Option<u64>,
    /// Requests in flight
    #[arg(long, value_name = "N", default_value = "32")]
    pub(crate) threads: Span,
    /// Worker threads of the client [default: the cores]
    #[arg(long, value_name = "N")]
    pub(crate) io_threads: Option<Span>,
    /// Connections per node, or per shard
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) pool: Span,
    /// Rows per request
    #[arg(long, value_name = "N", default_value = "50")]
    pub(crate) batch: Span,
}
