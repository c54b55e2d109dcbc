//! A table shared with a program that uses happybase.

use std::process::Command;
use std::sync::Arc;

use libtest_mimic::{Failed, Trial};
use peristyle_core::model::Row;
use tokio::runtime::Runtime;

use super::traps::existing;
use super::{client, name};

/// The same as in the program.
const THEIRS: [i64; 12] = [0, 1, 2, 3, 42, 255, 256, 1_000, 1_000_000, -1, i64::MAX, i64::MIN];
const OURS: [i64; 3] = [5, -5, 12_345_678_901];

pub(super) fn trials(runtime: &Arc<Runtime>, address: &str) -> Vec<Trial> {
    let (runtime, address) = (Arc::clone(runtime), address.to_owned());
    vec![Trial::test("happybase::reads_what_is_written_here_and_is_read_here", move || {
        let thrift1 = std::env::var("PERISTYLE_HBASE_THRIFT1")
            .map_err(|_| Failed::from("PERISTYLE_HBASE_THRIFT1=host:port isn't set"))?;
        runtime.block_on(share(&address, &thrift1));
        Ok(())
    })]
}

fn titled(id: i64, title: &str) -> Row {
    Row::new().with("id", id).with("title", title)
}

async fn share(address: &str, thrift1: &str) {
    let client = client(address, "").await;
    let spec = existing(&name("shared")).build().unwrap();
    client.create_table(&spec).await.unwrap();
    let table = client.table(spec).await.unwrap();
    let rows = THEIRS.map(|id| titled(id, &format!("title {id} é")));
    table.put_all(rows.clone()).await.unwrap().into_result().unwrap();
    run(thrift1, table.spec().name());
    for id in OURS {
        assert_eq!(table.get(id).await.unwrap(), Some(titled(id, &format!("from python {id}"))));
    }
    assert_eq!(table.get(1).await.unwrap(), Some(titled(1, "overwritten")));
    assert_eq!(table.get::<Row>(2).await.unwrap(), None);
    // What they wrote is behind what they wrote over, and what is written now is behind that.
    table.put_all([titled(1, "back"), titled(2, "back")]).await.unwrap().into_result().unwrap();
    assert_eq!(table.get_all([1, 2]).await.unwrap(), [1, 2].map(|id| Some(titled(id, "back"))));
    client.drop_table(table.spec().name()).await.unwrap();
}

/// Runs the program, which fails where anything isn't as it should be.
fn run(thrift1: &str, table: &str) {
    let python = peristyle_servers::happybase().unwrap();
    let (host, port) = thrift1.rsplit_once(':').unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/shared.py");
    let output = Command::new(python).args([script, host, port, table]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout.starts_with(b"done"), "{told}");
}
