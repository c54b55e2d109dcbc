//! Where the cluster is and how to talk to it.

mod uri;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use peristyle_core::request::{Consistency, SerialConsistency};
use peristyle_core::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize};

/// The port of CQL, where a host has none.
pub const DEFAULT_PORT: u16 = 9042;

/// Where the cluster is and how to talk to it: built in code, read from TOML, or from a
/// [URI](CqlConfig::from_uri). In TOML the fields have the names of the URI's parameters, durations are written `5s`,
/// and unknown fields are refused. `Debug` hides the password.
///
/// ```
/// use peristyle_cql::{CqlConfig, PoolPer};
///
/// let config = CqlConfig::new(["10.0.0.1", "10.0.0.2:9142"]).keyspace("iot").datacenter("dc1").pool(4, PoolPer::Host);
/// assert_eq!(config.hosts, ["10.0.0.1:9042", "10.0.0.2:9142"]);
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CqlConfig {
    /// Contact points, `host:port`; the others are learnt from them.
    #[serde(deserialize_with = "uri::hosts")]
    pub hosts: Vec<String>,
    /// The keyspace that tables are in. It need not exist yet.
    pub keyspace: Option<String>,
    /// Who logs in.
    pub user: Option<String>,
    /// With which password.
    pub password: Option<Secret>,
    /// The datacenter whose nodes are talked to; default: all.
    pub datacenter: Option<String>,
    /// How many replicas must answer, where a request doesn't say; default `local_quorum`.
    pub consistency: Consistency,
    /// How many replicas must agree on a conditional write, where a request doesn't say; default `local_serial`.
    pub serial_consistency: SerialConsistency,
    /// Connections per node or shard; default 1.
    pub pool: NonZeroUsize,
    /// What `pool` counts for; default: each shard, and a Cassandra node is one shard.
    pub pool_per: PoolPer,
    /// How frames are compressed; default: not at all.
    pub compression: Compression,
    /// The limit for opening the session, all hosts together; default 5 s.
    #[serde(deserialize_with = "duration")]
    pub connect_timeout: Duration,
    /// The limit for one attempt, where a request doesn't say; default 10 s.
    #[serde(deserialize_with = "duration")]
    pub request_timeout: Duration,
    /// The limit for a change of the schema, and again for all nodes to agree on it; default 60 s.
    #[serde(deserialize_with = "duration")]
    pub schema_timeout: Duration,
    /// The most rows in one answer of the server; larger pages are put together from several. Default 5000.
    pub page_size: u16,
    /// Which rows of a `put_all` travel together; default [`BatchGrouping::Mixed`].
    pub batch_grouping: BatchGrouping,
    /// The latest expiry that the server takes, in seconds since 1970; default 2147483646, in January 2038. Cassandra 5 with
    /// `storage_compatibility_mode: NONE` and `ScyllaDB` take 4294967294.
    pub max_expiry: i64,
    /// Whether connections are encrypted; default: no.
    pub tls: bool,
    /// A PEM file of the authorities that are trusted; default: the system's.
    pub tls_ca: Option<PathBuf>,
    /// A PEM file of the certificate that this client shows, for servers that demand one.
    pub tls_cert: Option<PathBuf>,
    /// A PEM file of its private key.
    pub tls_key: Option<PathBuf>,
    /// How the server's certificate is checked; default: fully.
    pub tls_verify: TlsVerify,
}

impl Default for CqlConfig {
    /// No hosts yet; the rest as documented at the fields.
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            keyspace: None,
            user: None,
            password: None,
            datacenter: None,
            consistency: Consistency::LocalQuorum,
            serial_consistency: SerialConsistency::LocalSerial,
            pool: NonZeroUsize::MIN,
            pool_per: PoolPer::default(),
            compression: Compression::default(),
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(10),
            schema_timeout: Duration::from_secs(60),
            page_size: 5_000,
            batch_grouping: BatchGrouping::default(),
            max_expiry: 2_147_483_646,
            tls: false,
            tls_ca: None,
            tls_cert: None,
            tls_key: None,
            tls_verify: TlsVerify::default(),
        }
    }
}

/// What the pool's size counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolPer {
    /// Each node, whatever its shards.
    Host,
    /// Each shard of a `ScyllaDB` node; a Cassandra node counts as one.
    #[default]
    Shard,
}

/// How frames are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// LZ4: little CPU.
    Lz4,
    /// Snappy.
    Snappy,
}

/// Which rows of a `put_all` travel together in one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchGrouping {
    /// Rows of one partition; a row alone in its partition travels alone.
    Partition,
    /// Rows of one partition, and rows that are alone in theirs with others of the same owner, at most 100 rows and 5 KiB: of
    /// each larger batch Cassandra warns. Of those with more partitions than its `unlogged_batch_across_partitions_warn_threshold`
    /// (10) it warns once a minute, which means nothing here: each row has an outcome of its own. It takes less CPU on both sides.
    #[default]
    Mixed,
}

/// How the server's certificate is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsVerify {
    /// Its authority, and that it is for the address that was called.
    #[default]
    Full,
    /// Its authority alone, for nodes whose certificates don't name their addresses.
    Authority,
    /// Not at all: anyone on the way can read and change everything.
    Nothing,
}

/// A password: shown as `***`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The password itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(secret: T) -> Self {
        Self(secret.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl CqlConfig {
    /// A cluster with these contact points, `host` or `host:port`, IPv6 addresses in brackets; everything else by default.
    pub fn new(hosts: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let hosts = hosts.into_iter().map(|host| uri::with_port(host.as_ref())).collect();
        Self { hosts, ..Self::default() }
    }

    /// Reads `cql://user:password@host:9042,host2/keyspace?parameter=value&…`. User and password are percent-encoded, and
    /// so are values. The parameters are the names of the fields of this type, and `tls`, `tls_ca`, `tls_cert`, `tls_key`
    /// and `tls_verify` for encryption; user and password may be parameters too.
    ///
    /// # Errors
    /// [`InvalidArgument`](peristyle_core::ErrorKind::InvalidArgument) that names the part which can't be understood, and what
    /// would be.
    ///
    /// ```
    /// use peristyle_cql::CqlConfig;
    ///
    /// let config = CqlConfig::from_uri("cql://me:p%40ss@h1,[::1]:9142/iot?datacenter=dc1&request_timeout=2s")?;
    /// assert_eq!(config.hosts, ["h1:9042", "[::1]:9142"]);
    /// assert_eq!(config.keyspace.as_deref(), Some("iot"));
    ///
    /// let error = CqlConfig::from_uri("cql://h1/iot?pol=4").unwrap_err();
    /// assert!(error.to_string().contains("unknown parameter \"pol\""));
    /// # Ok::<(), peristyle_core::Error>(())
    /// ```
    pub fn from_uri(uri: &str) -> Result<Self> {
        uri::parse(uri)
    }

    /// Reads a TOML file.
    ///
    /// # Errors
    /// [`InvalidArgument`](peristyle_core::ErrorKind::InvalidArgument) that names the file and the field.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let wrong = |error: &dyn fmt::Display| Error::invalid(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let config: Self = toml::from_str(&text).map_err(|error| wrong(&one_line(&error.to_string())))?;
        config.validate().map_err(|error| wrong(&error))?;
        Ok(config)
    }

    /// With the keyspace that tables are in.
    #[must_use]
    pub fn keyspace(mut self, keyspace: impl Into<String>) -> Self {
        self.keyspace = Some(keyspace.into());
        self
    }

    /// Logs in.
    #[must_use]
    pub fn login(mut self, user: impl Into<String>, password: impl Into<Secret>) -> Self {
        self.user = Some(user.into());
        self.password = Some(password.into());
        self
    }

    /// Talks to the nodes of this datacenter.
    #[must_use]
    pub fn datacenter(mut self, datacenter: impl Into<String>) -> Self {
        self.datacenter = Some(datacenter.into());
        self
    }

    /// With this default consistency.
    #[must_use]
    pub fn consistency(mut self, consistency: Consistency) -> Self {
        self.consistency = consistency;
        self
    }

    /// With so many connections per node or shard; at least 1.
    #[must_use]
    pub fn pool(mut self, connections: usize, per: PoolPer) -> Self {
        self.pool = NonZeroUsize::new(connections).unwrap_or(NonZeroUsize::MIN);
        self.pool_per = per;
        self
    }

    /// With this limit for opening the session.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// With this limit for one attempt.
    #[must_use]
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.request_timeout = limit;
        self
    }

    /// Encrypts connections.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Trusts the authorities in this PEM file, and no others.
    #[must_use]
    pub fn tls_ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.tls_ca = Some(file.into());
        self
    }

    /// Shows this certificate to servers; both are PEM files.
    #[must_use]
    pub fn tls_identity(mut self, cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls_cert = Some(cert.into());
        self.tls_key = Some(key.into());
        self
    }

    /// Checks servers' certificates so.
    #[must_use]
    pub fn tls_verify(mut self, verify: TlsVerify) -> Self {
        self.tls_verify = verify;
        self
    }

    /// With this grouping of rows into batches.
    #[must_use]
    pub fn batch_grouping(mut self, grouping: BatchGrouping) -> Self {
        self.batch_grouping = grouping;
        self
    }

    /// Checks what can be checked without a server.
    pub(crate) fn validate(&self) -> Result<()> {
        let fail = |message: &str| Err(Error::invalid(message));
        if self.hosts.is_empty() {
            return fail("no hosts: give at least one contact point, as in cql://127.0.0.1:9042/keyspace");
        }
        if let Some(keyspace) = &self.keyspace {
            check_keyspace(keyspace)?;
        }
        if self.user.is_some() != self.password.is_some() {
            return fail("a user without password or the reverse: give both, as in cql://user:password@host");
        }
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            return fail("tls_cert and tls_key belong together: give both");
        }
        let has_files = self.tls_ca.is_some() || self.tls_cert.is_some();
        if !self.tls && (has_files || self.tls_verify != TlsVerify::default()) {
            return fail("settings of tls without tls=true: add it, or leave them out");
        }
        if self.page_size == 0 {
            return fail("page_size 0: give 1 to 65535 rows");
        }
        let limits = [self.connect_timeout, self.request_timeout, self.schema_timeout];
        if limits.iter().any(Duration::is_zero) {
            return fail("a timeout of 0: every limit must be longer");
        }
        Ok(())
    }
}

/// What CQL takes as a quoted name of a keyspace.
fn check_keyspace(name: &str) -> Result<()> {
    let fits = (1..=48).contains(&name.len());
    if fits && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Ok(());
    }
    Err(Error::invalid(format!("keyspace {name:?}: use 1 to 48 letters, digits and underscores")))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map_err(|error| serde::de::Error::custom(format!("{text:?}: {error}")))
}

#[cfg(test)]
mod tests;
