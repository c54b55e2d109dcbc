//! The command line: definitions only.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::objective::Objective;
use crate::space::Span;

/// Finds how hard a wide-column database may be driven: the throughput knee without errors.
#[derive(Debug, Parser)]
#[command(name = "tuner", version, propagate_version = true, max_term_width = 110)]
#[command(after_help = "Examples:
  tuner sweep
  tuner sweep --target cql://127.0.0.1:9042/bench --create --budget 5m
  tuner workloads write-30b > mine.toml
  tuner run --workload mine.toml --threads 64 --batch 16 --budget 20s
  tuner sweep --target 'sim://usl?lambda=1000&sigma=0.05&kappa=0.0005'      a simulated server, in no time

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
    /// Offers one load after the other until one is too much
    #[command(after_help = "Examples:
  tuner ramp --target cql://h1/bench --rates 1000,2000,4000,8000 --threads 512 --step 1m --apdex 50ms
  tuner ramp --target cql://h1/bench --users 100,200,400 --step 5m

A step is too much when a request fails, an objective is missed, the offered rate is not reached, or throughput breaks down. The
ramp stops there, and the last step that held is the answer.")]
    Ramp(RampSettings),
    /// Compares the ways to write: single puts, many rows in one call, the streamer
    #[command(after_help = "Examples:
  tuner paths                                            on the embedded engine in a temporary folder
  tuner paths --target cql://h1,h2/bench --create --threads 128 --out paths

Each path writes the workload's rows for some seconds, in turns. Client processor time is that of this process: an engine in it is
part of it. Ends with 1 where rows failed.")]
    Paths(PathsSettings),
    /// Writes the rows that reading workloads read
    Load(LoadSettings),
    /// Runs YCSB's core workloads and prints its results, without Java
    #[command(subcommand)]
    Ycsb(YcsbCommand),
    /// Shows the result of a run or sweep again
    Show {
        /// The folder of its results
        dir: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Compares two results: of two servers, or of two settings of one
    #[command(after_help = "Examples:
  tuner compare runs/2026-11-30-write-30b runs/2026-12-01-write-30b

Compares the chosen points, and every point that both have measured. A difference counts as one when chance would show it in less
than 5 % of comparisons; of many points together (Holm). What is smaller than the least detectable difference needs longer runs.")]
    Compare {
        /// The folder of the first result
        first: PathBuf,
        /// The folder of the second
        second: PathBuf,
        /// Print the comparison as JSON
        #[arg(long)]
        json: bool,
    },
    /// Prints the tuned.toml of a result, or writes it for an application to load
    Apply {
        /// The folder of the result
        dir: PathBuf,
        /// The file to write
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Shows what a simulated server would answer
    #[command(subcommand)]
    Sim(SimCommand),
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
    /// Prints the manual page, or writes those of all commands into a folder
    Man {
        /// The folder to write to
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
    },
}

/// YCSB's phases. What follows is YCSB's own command line.
#[derive(Debug, Subcommand)]
pub(crate) enum YcsbCommand {
    /// Inserts the records
    #[command(after_help = YCSB_HELP)]
    Load {
        /// YCSB's options: -P, -p, -threads, -target, -db, -s, -l
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
        arguments: Vec<String>,
    },
    /// Does the operations of the workload
    #[command(after_help = YCSB_HELP)]
    Run {
        /// YCSB's options: -P, -p, -threads, -target, -db, -s, -l
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
        arguments: Vec<String>,
    },
    /// Searches for the settings that give the most operations per second without a failure, and writes what tuner sweep writes
    #[command(after_help = YCSB_HELP)]
    Sweep {
        /// YCSB's options, where -threads is a range such as 1..512 and maxexecutiontime the time for all of it; and --io-threads,
        /// --pool, --batch (of inserts) and --out as in tuner sweep
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
        arguments: Vec<String>,
    },
}

/// Examples and options of YCSB's command line.
const YCSB_HELP: &str = "Examples:
  tuner ycsb load -P workloads/workloada -db cql://127.0.0.1/ycsb -p peristyle.create=true -threads 64
  tuner ycsb run -P workloads/workloada -p recordcount=100000 -p operationcount=500000 -db cql://127.0.0.1/ycsb -threads 64 -s
  tuner ycsb sweep -P workloads/workloada -db cql://127.0.0.1/ycsb -threads 1..512 -p maxexecutiontime=120 --out runs/a

  -P FILE        read properties from a file, in Java's syntax; several are read in order
  -p NAME=VALUE  set a property; these count more than those of files
  -threads N     how many workers (threadcount; default 1)
  -target N      operations per second of all workers together (target)
  -db URI        the database: a URI, or peristyle, embedded, memory, cassandra-cql, scylla [default: embedded:]
  -s             status lines on standard error every ten seconds
  -l LABEL       what stands before them
  -load, -t      load, or run, whatever the command says

Properties of the table: peristyle.create, peristyle.table, peristyle.buckets, peristyle.fieldtype. Of writes and
threads: peristyle.batchsize, peristyle.async, peristyle.async.inflight, peristyle.iothreads, peristyle.config (a tuned.toml).
Ends with 1 where operations failed or records are not as dataintegrity demands.";

/// Simulated servers, whose truth is known.
#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Prints every point with its true throughput, as CSV; the best and the cheapest within 2 % on standard error
    #[command(after_help = "Examples:
  tuner sim grid --target 'sim://usl?lambda=1000&sigma=0.05&kappa=0.0005'
  tuner sim grid --target 'sim://usl?streams=8&nodes=3' --threads 1..200 --pool 1..4

The parameters of sim://usl, all optional: lambda, sigma, kappa (the law), cv (noise of a window), seed, streams (requests that a
connection carries; more wait, or fail with streams_refuse=true) and nodes, io_cost (µs of an io thread per request), errors_above, error_rate, error_class, batch_fixed and
batch_per_row (cost of a request and of a row), batch_fail_bytes, row_bytes, drift (share of capacity lost) and drift_at (s),
freeze_at and freeze_for (s), warmup (s), collapse_above, client_cpu (µs per request), bimodal, dip_at, rate_limit, zero_ops.
sim://table?file=points.csv takes the curve from columns n and x instead, or from the points.csv of a run.")]
    Grid(GridSettings),
    /// Judges the search on servers whose answer is known, beside the searches of other tools
    #[command(
        after_help = "A row for each server and noise: loss (95th percentile over the seeds) against the best possible, bias of the
reported figure, share of confidence intervals that hold the truth, share of knees within 5 % of the best, share of right
verdicts, most windows, all but the last in percent; then what other tools' searches lose: doubling, golden section,
cassandra-stress's auto mode and NoSQLBench's findmax. Then comparisons of equals, and a line for each bar with its worst figure.
Ends with 1 where a bar is missed."
    )]
    Judge {
        /// Searches for each server and noise
        #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
        seeds: u64,
        /// Only the servers whose name contains this
        #[arg(long, value_name = "NAME", default_value = "")]
        only: String,
    },
}

/// The settings of a grid.
#[derive(Debug, Args)]
pub(crate) struct GridSettings {
    /// The simulated server
    #[arg(long, value_name = "URI", default_value = "sim://usl")]
    pub(crate) target: String,
    /// Requests in flight
    #[arg(long, value_name = "A..B", default_value = "1..64")]
    pub(crate) threads: Span,
    /// Worker threads of the client
    #[arg(long, value_name = "A..B", default_value = "1..4")]
    pub(crate) io_threads: Span,
    /// Connections per node
    #[arg(long, value_name = "A..B", default_value = "1..4")]
    pub(crate) pool: Span,
    /// Rows per request
    #[arg(long, value_name = "A..B", default_value = "1..64")]
    pub(crate) batch: Span,
}

/// Where and what.
#[derive(Debug, Args)]
pub(crate) struct Subject {
    /// `embedded:[/folder]`, `memory:`, `cql://host:9042/keyspace`, `hbase://gateway:9090/namespace` or `sim://usl`
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
    /// The most time that it may take, set-up included [default: 2m30s; in a run 20s]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) budget: Option<Duration>,
    /// A limit for latency that every point must meet, such as get:p99<10ms; may be given several times
    #[arg(long, value_name = "OPERATION:pNN<TIME")]
    pub(crate) objective: Vec<Objective>,
    /// Open loop: so many requests per second, whether earlier ones are answered or not; threads are then the most in flight, and
    /// what could not be started in time is caught up with, its wait included
    #[arg(long, value_name = "N", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// The T of APDEX: requests up to T satisfy, those up to 4T are tolerable
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) apdex: Option<Duration>,
    /// Hold the chosen point for so long at the end, to see a late collapse; on top of the budget
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) hold: Option<Duration>,
    /// Measure the chosen point and the settings of tuner run (32 threads, all cores, 1 connection, 1 row per request) in turns at the
    /// end, and say whether they differ; on top of the budget
    #[arg(long)]
    pub(crate) against_defaults: bool,
    /// The server's process on this machine, for its processor time, memory and disks
    #[arg(long, value_name = "PID", conflicts_with = "server_cgroup")]
    pub(crate) server_pid: Option<u32>,
    /// The same of its control group (version 2), where it is several processes, a service or a container: the folder that holds its
    /// cpu.stat, such as /sys/fs/cgroup/system.slice/cassandra.service
    #[arg(long, value_name = "DIR")]
    pub(crate) server_cgroup: Option<PathBuf>,
    /// The folder for the results [default: runs/<date>-<workload>]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with a run that was cut short, from its journal; with the same settings, or a larger budget
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    /// Print the result as JSON, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// The settings of a ramp.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("steps").required(true).args(["rates", "users"])))]
pub(crate) struct RampSettings {
    /// Requests per second of each step, in open loop
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', value_parser = rate, conflicts_with = "rate")]
    pub(crate) rates: Vec<f64>,
    /// Threads of each step, in closed loop
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', conflicts_with_all = ["rate", "threads"])]
    pub(crate) users: Vec<u32>,
    /// How long a step lasts
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    pub(crate) step: Duration,
    #[command(flatten)]
    pub(crate) settings: Settings,
}

/// A rate above 0.
fn rate(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1e9 => Ok(rate),
        _ => Err(format!("{text:?} is no rate; give requests per second, above 0")),
    }
}

/// The settings of a comparison of the ways to write.
#[derive(Debug, Args)]
pub(crate) struct PathsSettings {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Tasks that put single rows
    #[arg(long, value_name = "N", default_value = "64")]
    pub(crate) threads: Span,
    /// Worker threads of the client [default: the cores]
    #[arg(long, value_name = "N")]
    pub(crate) io_threads: Option<Span>,
    /// Connections per node, or per shard
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) pool: Span,
    /// How long each path writes in each round
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = humantime::parse_duration)]
    pub(crate) time: Duration,
    /// Rounds of each path
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// The folder for paths.json and paths.svg [default: none is written]
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
