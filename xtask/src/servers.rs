//! The servers that the steps of the suite share.

use std::time::Duration;

use peristyle_servers::{Cassandra, Gateway, HBase};
use serde_json::Value;

use crate::cargo::{Cargo, list, text};
use crate::step::seconds;

/// The environment variables that tell tests where the gateways are, in the order of [`gateways`].
const GATEWAY_VARIABLES: [&str; 3] =
    ["PERISTYLE_HBASE_THRIFT2", "PERISTYLE_HBASE_THRIFT2_FRAMED", "PERISTYLE_HBASE_THRIFT1"];

/// What is up.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    pub(crate) cassandra: Option<Cassandra>,
    pub(crate) hbase: Option<HBase>,
}

impl Servers {
    /// Starts a throwaway Cassandra.
    pub(crate) fn start_cassandra(&mut self) -> Result<(), String> {
        let node = Cassandra::builder().start().map_err(|error| error.to_string())?;
        println!("{} {}", node.uri(), figures(node.start_time(), node.resident_bytes()));
        self.cassandra = Some(node);
        Ok(())
    }

    /// Starts a throwaway HBase, if there is a backend that is tested on it.
    pub(crate) fn start_hbase(&mut self) -> Result<(), String> {
        if !has_hbase_backend()? {
            println!("not started: no package of the workspace is its backend");
            return Ok(());
        }
        let hbase = HBase::builder().gateways(gateways()).start().map_err(|error| error.to_string())?;
        println!("{} {}", hbase.uri(), figures(hbase.start_time(), hbase.resident_bytes()));
        self.hbase = Some(hbase);
        Ok(())
    }

    /// The variables that tell tests where the servers are.
    pub(crate) fn variables(&self) -> Result<Vec<(&'static str, String)>, String> {
        let mut variables = Vec::new();
        if let Some(node) = &self.cassandra {
            variables.push(("PERISTYLE_CQL", node.cql_address().to_string()));
        }
        if let Some(hbase) = &self.hbase {
            for (index, variable) in GATEWAY_VARIABLES.into_iter().enumerate() {
                let address = hbase.gateway(index).map_err(|error| error.to_string())?;
                variables.push((variable, address.to_string()));
            }
        }
        Ok(variables)
    }
}

/// Thrift 2 buffered and framed, and Thrift 1.
pub(crate) fn gateways() -> [Gateway; 3] {
    [Gateway::thrift2(), Gateway::thrift2().framed(), Gateway::thrift1()]
}

/// Whether the workspace has a package in `backends/hbase`.
pub(crate) fn has_hbase_backend() -> Result<bool, String> {
    Ok(has_package_in(&Cargo::metadata()?, "backends/hbase"))
}

fn has_package_in(metadata: &Value, folder: &str) -> bool {
    let manifest = format!("{}/{folder}/Cargo.toml", text(metadata, "workspace_root"));
    list(metadata, "packages").iter().any(|package| text(package, "manifest_path") == manifest)
}

/// Start time and memory, for people.
pub(crate) fn figures(start_time: Duration, resident_bytes: Option<u64>) -> String {
    let mebibytes = resident_bytes.unwrap_or_default() >> 20;
    format!("(up in {}, {mebibytes} MiB)", seconds(start_time))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_backend_is_a_member_in_its_folder() {
        let with = |path: &str| json!({"workspace_root": "/w", "packages": [{"manifest_path": path}]});
        assert!(has_package_in(&with("/w/backends/hbase/Cargo.toml"), "backends/hbase"));
        assert!(!has_package_in(&with("/w/backends/cql/Cargo.toml"), "backends/hbase"));
    }
}
