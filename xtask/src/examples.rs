//! The examples, each run on the embedded engine and on Cassandra with the URI as its argument.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use peristyle_servers::Cassandra;
use serde_json::Value;

use crate::cargo::{self, Cargo, list, text};

const PACKAGE: &str = "peristyle-examples";
const KEYSPACE: &str = "examples";

/// Builds and runs all examples; a failing one does not keep the others from running.
pub(crate) fn run(server: Option<&Cassandra>) -> Result<(), String> {
    // The workspace's own selection and features, so that nothing is built twice.
    Cargo::new(["build", "--workspace", "--examples"]).run()?;
    let programs = programs(&Cargo::metadata()?);
    if programs.is_empty() {
        return Err(format!("package {PACKAGE} has no examples"));
    }
    let mut failures = Vec::new();
    let mut uris = vec!["embedded:".to_owned()];
    match server.map_or(Err("Cassandra is not up".into()), create_keyspace) {
        Ok(uri) => uris.push(uri),
        Err(reason) => failures.push(format!("not run on Cassandra: {reason}")),
    }
    for program in &programs {
        for uri in &uris {
            let mut command = Command::new(program);
            command.arg(uri).current_dir(cargo::root()).stdin(Stdio::null());
            failures.extend(cargo::run(command).err());
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

/// Makes the keyspace the examples work in, and gives its URI.
pub(crate) fn create_keyspace(node: &Cassandra) -> Result<String, String> {
    let statement = format!(
        "CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} \
         WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    );
    let mut client = node.client().map_err(|error| error.to_string())?;
    client.query(&statement).map_err(|error| error.to_string())?;
    Ok(format!("{}/{KEYSPACE}", node.uri()))
}

/// Where cargo puts the package's example programs.
fn programs(metadata: &Value) -> Vec<PathBuf> {
    let folder: PathBuf = text(metadata, "target_directory").into();
    let packages = list(metadata, "packages");
    let package = packages.iter().find(|package| text(package, "name") == PACKAGE);
    let targets = package.map(|package| list(package, "targets")).unwrap_or_default();
    let examples = targets.iter().filter(|target| list(target, "kind").contains(&"example".into()));
    examples.map(|target| folder.join("debug/examples").join(text(target, "name"))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_example_targets_of_the_package_are_run() {
        let metadata = json!({
            "target_directory": "/t",
            "packages": [
                {"name": "other", "targets": [{"name": "a", "kind": ["example"]}]},
                {"name": PACKAGE, "targets": [
                    {"name": "peristyle_examples", "kind": ["lib"]},
                    {"name": "history", "kind": ["example"]},
                ]},
            ],
        });
        assert_eq!(programs(&metadata), [PathBuf::from("/t/debug/examples/history")]);
    }
}
