//! The steps of the suite and how each is run.

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use peristyle_servers::{Cassandra, cache_folder};

use crate::cargo::{self, Cargo};
use crate::examples;

/// One check; they run in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// The source is formatted.
    Fmt,
    /// No lint warns.
    Clippy,
    /// A throwaway Cassandra starts, for the steps after it.
    Cassandra,
    /// Unit, integration and contract tests, on every backend.
    Tests,
    /// The examples in the documentation run.
    Doctests,
    /// The documentation builds without a warning.
    Docs,
    /// Every example runs, on the embedded engine and on Cassandra.
    Examples,
}

impl Step {
    /// The step's name, as on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    pub(crate) fn needs_cassandra(self) -> bool {
        matches!(self, Step::Cassandra | Step::Tests | Step::Examples)
    }

    /// Runs it. `server` is filled by [`Step::Cassandra`] and used by the steps after it.
    pub(crate) fn run(self, server: &mut Option<Cassandra>) -> Result<(), String> {
        match self {
            Step::Fmt => {
                cargo::demand("fmt", "rustfmt")?;
                Cargo::new(["fmt", "--all", "--check"]).run()
            }
            Step::Clippy => {
                cargo::demand("clippy", "clippy")?;
                Cargo::new(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()
            }
            Step::Cassandra => {
                *server = Some(start()?);
                Ok(())
            }
            Step::Tests => tests(server.as_ref()),
            // The same selection of packages and targets as above, so that nothing is built twice.
            Step::Doctests => Cargo::new(["test", "--workspace", "--no-fail-fast", "--doc"]).run(),
            Step::Docs => Cargo::new(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings").run(),
            Step::Examples => examples::run(server.as_ref()),
        }
    }
}

fn start() -> Result<Cassandra, String> {
    let node = Cassandra::builder().start().map_err(|error| error.to_string())?;
    println!("{} {}", node.uri(), figures(&node));
    Ok(node)
}

/// Start time and memory, for people.
pub(crate) fn figures(node: &Cassandra) -> String {
    let mebibytes = node.resident_bytes().unwrap_or_default() >> 20;
    format!("(up in {}, {mebibytes} MiB)", seconds(node.start_time()))
}

/// A duration as in `2.4 s`.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Without a server the tests that want one fail, and the others still run.
fn tests(server: Option<&Cassandra>) -> Result<(), String> {
    let cache = cache_folder().map_err(|error| error.to_string())?;
    let mut cargo = Cargo::new(["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"])
        .env("REQUIRE_BACKENDS", "memory,embedded,cql")
        .env("PERISTYLE_SERVERS", path_text(&cache)?);
    if let Some(node) = server {
        cargo = cargo.env("PERISTYLE_CQL", &node.cql_address().to_string());
    }
    cargo.run()
}

fn path_text(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{} is not valid UTF-8", path.display()))
}
