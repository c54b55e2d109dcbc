//! What the examples share: the URI of the database, from the command line.

use peristyle::request::Replication;
use peristyle::{Client, Result};

/// Connects to the URI in the first argument, by default the embedded engine in a temporary folder, and makes the keyspace
/// where there is one.
///
/// # Errors
/// Those of [`peristyle::connect`].
pub async fn connect() -> Result<Client> {
    let client = peristyle::connect(&uri()).await?;
    client.create_namespace(Replication::default()).await?;
    Ok(client)
}

fn uri() -> String {
    std::env::args().nth(1).unwrap_or_else(|| "embedded:".to_owned())
}

/// The keyspace that the URI names, for CQL of one's own.
pub fn keyspace() -> String {
    let uri = uri();
    let path = uri.split('?').next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().to_owned()
}
