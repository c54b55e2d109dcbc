//! The contract suite over every backend that is there.
//!
//! Memory and the embedded engine always are. A Cassandra is where `PERISTYLE_CQL=host:port` says; without it its cases are
//! reported as ignored, unless `REQUIRE_BACKENDS` lists `cql`. `PERISTYLE_SETTINGS` adds settings to its URI, such as
//! `batching=owner&concurrency=auto`, for the suite through other layers than the default ones.
#![expect(clippy::expect_used, reason = "a test stops where its set-up fails")]

use std::env;
use std::process::ExitCode;

use libtest_mimic::Arguments;
use peristyle::embedded::{Embedded, EmbeddedConfig};
use peristyle::memory::MemoryBackend;
use peristyle::request::Replication;
use peristyle::testkit::{Fixture, Suite};
use peristyle::{Client, Result};
use peristyle_core::clock::Clock;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = Runtime::new().expect("a runtime");
    let suites = [
        Suite { backend: "memory", fixture: Ok(memory()), runtime: runtime.handle().clone(), histories: 64 },
        Suite { backend: "embedded", fixture: embedded(), runtime: runtime.handle().clone(), histories: 200 },
        Suite { backend: "cql", fixture: runtime.block_on(cql()), runtime: runtime.handle().clone(), histories: 60 },
    ];
    let trials = suites.into_iter().flat_map(Suite::trials).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A clock that cases move, which starts now.
fn clock() -> Clock {
    Clock::manual(Clock::system().micros())
}

fn memory() -> Fixture {
    let clock = clock();
    let client = Client::builder(MemoryBackend::with_clock(clock.clone())).clock(clock.clone()).build();
    Fixture::with_clock(client, clock)
}

fn embedded() -> Result<Fixture, String> {
    let clock = clock();
    let config = EmbeddedConfig::temporary().clock(clock.clone());
    let engine = Embedded::open(&config).map_err(|error| error.to_string())?;
    let client = Client::builder(engine).clock(clock.clone()).build();
    Ok(Fixture::with_clock(client, clock))
}

async fn cql() -> Result<Fixture, String> {
    let address = env::var("PERISTYLE_CQL").map_err(|_| {
        "PERISTYLE_CQL=host:port isn't set; `cargo xtask test` starts a Cassandra and sets it".to_owned()
    })?;
    let settings = env::var("PERISTYLE_SETTINGS").map(|settings| format!("?{settings}")).unwrap_or_default();
    let client =
        peristyle::connect(&format!("cql://{address}/contract{settings}")).await.map_err(|error| error.to_string())?;
    client.create_namespace(Replication::default()).await.map_err(|error| error.to_string())?;
    Ok(Fixture::new(client))
}
