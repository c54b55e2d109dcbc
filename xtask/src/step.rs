//! The steps of the suite and how each is run.

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use peristyle_servers::cache_folder;

use crate::cargo::{self, Cargo};
use crate::examples;
use crate::servers::{Servers, has_hbase_backend};
use crate::ycsb;

/// One check; they run in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// The source is formatted.
    Fmt,
    /// No lint warns.
    Clippy,
    /// A throwaway Cassandra starts, for the steps after it.
    Cassandra,
    /// A throwaway HBase starts, for the steps after it.
    Hbase,
    /// Unit, integration and contract tests, on every backend.
    Tests,
    /// The examples in the documentation run.
    Doctests,
    /// The documentation builds without a warning.
    Docs,
    /// Every example runs, on the embedded engine and on Cassandra.
    Examples,
    /// The core workloads by the real YCSB and by `tuner ycsb`, on every backend.
    Ycsb,
}

impl Step {
    /// The step's name, as on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether it uses the server that `other` starts.
    pub(crate) fn needs(self, other: Step) -> bool {
        match other {
            Step::Cassandra => matches!(self, Step::Tests | Step::Examples | Step::Ycsb),
            Step::Hbase => matches!(self, Step::Tests | Step::Ycsb),
            _ => false,
        }
    }

    /// Runs it. `servers` is filled by the steps that start them and used by those after them.
    pub(crate) fn run(self, servers: &mut Servers) -> Result<(), String> {
        match self {
            Step::Fmt => {
                cargo::demand("fmt", "rustfmt")?;
                Cargo::new(["fmt", "--all", "--check"]).run()
            }
            Step::Clippy => {
                cargo::demand("clippy", "clippy")?;
                Cargo::new(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()
            }
            Step::Cassandra => servers.start_cassandra(),
            Step::Hbase => servers.start_hbase(),
            Step::Tests => tests(servers),
            // The same selection of packages and targets as above, so that nothing is built twice.
            Step::Doctests => Cargo::new(["test", "--workspace", "--no-fail-fast", "--doc"]).run(),
            Step::Docs => Cargo::new(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings").run(),
            Step::Examples => examples::run(servers.cassandra.as_ref()),
            Step::Ycsb => ycsb::run_suite(servers),
        }
    }
}

/// A duration as in `2.4 s`.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Without a server the tests that want one fail, and the others still run.
fn tests(servers: &Servers) -> Result<(), String> {
    let cache = cache_folder().map_err(|error| error.to_string())?;
    let mut required = "memory,embedded,cql".to_owned();
    if has_hbase_backend()? {
        required += ",hbase,hbase_framed,hbase_thrift1";
    }
    let mut cargo = Cargo::new(["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"])
        .env("REQUIRE_BACKENDS", &required)
        .env("PERISTYLE_SERVERS", path_text(&cache)?);
    for (name, value) in servers.variables()? {
        cargo = cargo.env(name, &value);
    }
    cargo.run()
}

fn path_text(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{} is not valid UTF-8", path.display()))
}
