//! The contract suite over real gateways.
//!
//! They are where `PERISTYLE_HBASE_THRIFT2=host:port` and the like say; without it the cases are reported as ignored, unless
//! `REQUIRE_BACKENDS` lists `hbase`.

use std::env;
use std::process::ExitCode;

use libtest_mimic::Arguments;
use peristyle_core::client::Client;
use peristyle_core::request::Replication;
use peristyle_core::testkit::{Fixture, Suite};
use peristyle_hbase::{HBaseBackend, HBaseConfig};
use tokio::runtime::Runtime;

/// How many cases run at a time.
const THREADS: usize = 16;

fn main() -> std::io::Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    // Cases wait for the master to make and drop their tables, most of their time.
    arguments.test_threads.get_or_insert(THREADS);
    let runtime = Runtime::new()?;
    let uris = [("hbase", thrift2()), ("hbase_framed", framed()), ("hbase_thrift1", thrift1())];
    let suite = |(backend, uri): (_, Result<String, String>)| Suite {
        backend,
        fixture: uri.and_then(|uri| runtime.block_on(fixture(&uri))),
        runtime: runtime.handle().clone(),
        histories: 60,
    };
    let trials = uris.into_iter().map(suite).flat_map(Suite::trials).collect();
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn thrift2() -> Result<String, String> {
    Ok(format!("hbase://{}/contract", gateway("PERISTYLE_HBASE_THRIFT2")?))
}

/// Thrift 1 makes no namespaces.
fn thrift1() -> Result<String, String> {
    Ok(format!("hbase://{}/default?api=thrift1", gateway("PERISTYLE_HBASE_THRIFT1")?))
}

/// Tables are made through the gateway without frames.
fn framed() -> Result<String, String> {
    let (framed, plain) = (gateway("PERISTYLE_HBASE_THRIFT2_FRAMED")?, gateway("PERISTYLE_HBASE_THRIFT2")?);
    Ok(format!("hbase://{framed}/contract?transport=framed&schema_gateways={plain}"))
}

fn gateway(variable: &str) -> Result<String, String> {
    env::var(variable).map_err(|_| format!("{variable}=host:port isn't set"))
}

async fn fixture(uri: &str) -> Result<Fixture, String> {
    let config = HBaseConfig::from_uri(uri).map_err(|error| error.to_string())?;
    let backend = HBaseBackend::connect(config).await.map_err(|error| error.to_string())?;
    let client = Client::builder(backend).build();
    client.create_namespace(Replication::default()).await.map_err(|error| error.to_string())?;
    // At equal write times the value that arrives last wins.
    Ok(Fixture::new(client).without_ties())
}
