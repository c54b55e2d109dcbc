//! From a URI to a client.

use std::sync::Arc;

use peristyle_core::client::ClientBuilder;
use peristyle_core::memory::MemoryBackend;
use peristyle_core::{Backend, Client, Error, Result};

use crate::settings::Settings;

/// Connects to the database that a URI names. The crate's documentation lists the URIs and their settings, which may stand in
/// the environment and in a file, too.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for an unknown scheme or setting,
/// [`Unavailable`](crate::ErrorKind::Unavailable) and others of the backend if it can't be reached in its connect timeout.
///
/// # Cancel safety
/// Dropping the future closes what was opened.
pub async fn connect(uri: &str) -> Result<Client> {
    let (settings, rest) = Settings::gather(uri)?;
    let backend: Arc<dyn Backend> = match rest.split_once(':').map(|(scheme, _)| scheme) {
        Some("memory") => Arc::new(memory(&rest)?),
        Some("embedded") => embedded(&rest)?,
        Some("cql") => cql(&settings.with_pool(rest)).await?,
        Some("hbase") => hbase(&settings.with_pool(rest)).await?,
        _ => return Err(unknown_scheme(&rest)),
    };
    Ok(settings.apply(ClientBuilder::new(backend)).build())
}

fn memory(uri: &str) -> Result<MemoryBackend> {
    match uri {
        "memory:" => Ok(MemoryBackend::new()),
        _ => Err(Error::invalid(format!("{uri:?}: memory: takes no folder and no settings of its own"))),
    }
}

#[cfg(feature = "embedded")]
fn embedded(uri: &str) -> Result<Arc<dyn Backend>> {
    use crate::embedded::{Embedded, EmbeddedConfig};
    Ok(Arc::new(Embedded::open(&EmbeddedConfig::from_uri(uri)?)?))
}

#[cfg(not(feature = "embedded"))]
fn embedded(_: &str) -> Result<Arc<dyn Backend>> {
    Err(missing_feature("embedded"))
}

#[cfg(feature = "cql")]
async fn cql(uri: &str) -> Result<Arc<dyn Backend>> {
    use crate::cql::{CqlBackend, CqlConfig};
    Ok(Arc::new(CqlBackend::connect(CqlConfig::from_uri(uri)?).await?))
}

#[cfg(not(feature = "cql"))]
async fn cql(_: &str) -> Result<Arc<dyn Backend>> {
    Err(missing_feature("cql"))
}

#[cfg(feature = "hbase")]
async fn hbase(uri: &str) -> Result<Arc<dyn Backend>> {
    use crate::hbase::{HBaseBackend, HBaseConfig};
    Ok(Arc::new(HBaseBackend::connect(HBaseConfig::from_uri(uri)?).await?))
}

#[cfg(not(feature = "hbase"))]
async fn hbase(_: &str) -> Result<Arc<dyn Backend>> {
    Err(missing_feature("hbase"))
}

#[cfg(not(all(feature = "embedded", feature = "cql", feature = "hbase")))]
fn missing_feature(feature: &str) -> Error {
    Error::invalid(format!(
        "this program is built without the {feature} backend; add features = [\"{feature}\"] to the dependency on peristyle"
    ))
}

fn unknown_scheme(uri: &str) -> Error {
    let scheme = uri.split([':', '/']).next().unwrap_or_default();
    Error::invalid(format!(
        "unknown scheme {scheme:?} in a database URI; use cql://host/keyspace, hbase://gateway/namespace, embedded:/folder, embedded: or memory:"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_unknown_scheme_is_named_with_the_known_ones() {
        for (uri, scheme) in
            [("mongodb://h/db", "\"mongodb\""), ("host:9042", "\"host\""), ("", "\"\""), ("/tmp", "\"\"")]
        {
            let message = connect(uri).await.unwrap_err().to_string();
            assert!(message.contains(scheme) && message.contains("cql://host/keyspace"), "{message}");
        }
    }

    #[tokio::test]
    async fn memory_takes_the_clients_settings_alone() {
        assert!(connect("memory:?deadline=5s").await.is_ok());
        assert!(connect("memory:?pool=5").await.unwrap_err().to_string().contains("pool=5"));
        assert!(connect("memory:/tmp").await.is_err());
    }
}
