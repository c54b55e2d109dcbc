//! What real gateways and region servers do wrong, and how the backend fares.
//!
//! The gateway of the traps is where `PERISTYLE_HBASE_THRIFT2=host:port` says, that of happybase where
//! `PERISTYLE_HBASE_THRIFT1=host:port` does; the failures start an HBase of their own then.
//! Without it all are reported as ignored, unless `REQUIRE_BACKENDS` lists `hbase`.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panic")]

mod failures;
mod gateways;
mod happybase;
mod traps;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use peristyle_core::client::Client;
use peristyle_core::testkit::is_required;
use peristyle_hbase::{HBaseBackend, HBaseConfig};
use tokio::runtime::Runtime;

fn main() -> std::io::Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    // Most of them wait.
    arguments.test_threads.get_or_insert(4);
    let runtime = Arc::new(Runtime::new()?);
    let Ok(address) = std::env::var("PERISTYLE_HBASE_THRIFT2") else {
        let missing = || Err(Failed::from("PERISTYLE_HBASE_THRIFT2=host:port isn't set"));
        let absent = Trial::test("live::is_there", missing).with_ignored_flag(!is_required("hbase"));
        return Ok(libtest_mimic::run(&arguments, vec![absent]).exit_code());
    };
    let mut trials = traps::trials(&runtime, &address);
    trials.extend(failures::trials(&runtime));
    trials.extend(gateways::trials(&runtime));
    trials.extend(happybase::trials(&runtime, &address));
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

/// A client with these parameters.
async fn client(address: &str, parameters: &str) -> Client {
    let config = HBaseConfig::from_uri(&format!("hbase://{address}/default?{parameters}")).unwrap();
    // Sent once, so that what is timed is the backend's own patience.
    Client::builder(HBaseBackend::connect(config).await.unwrap()).without_retry().build()
}

/// A name that no other run has.
fn name(what: &str) -> String {
    format!("live_{}_{what}", std::process::id())
}
