//! Where the gateways are and how to talk to them.

mod uri;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use peristyle_core::{Error, Result};

/// The port of a Thrift gateway, where a host has none.
pub const DEFAULT_PORT: u16 = 9090;

/// What a framed gateway takes as one message by default: 2 MiB, less room for the frame itself.
const FRAMED_REQUEST_BYTES: usize = (2 << 20) - 1024;
/// What is sent in one message to a gateway without frames.
const BUFFERED_REQUEST_BYTES: usize = 64 << 20;

/// Where the gateways are and how to talk to them: built in code, or from a [URI](HBaseConfig::from_uri).
///
/// ```
/// use peristyle_hbase::{HBaseConfig, Transport};
///
/// let config = HBaseConfig::from_uri("hbase://gw1,gw2:9091/iot?pool=16&transport=framed")?;
/// assert_eq!(config.gateways, ["gw1:9090", "gw2:9091"]);
/// assert_eq!((config.namespace.as_str(), config.transport), ("iot", Transport::Framed));
/// # Ok::<(), peristyle_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HBaseConfig {
    /// The gateways, `host:port`.
    pub gateways: Vec<String>,
    /// The namespace that tables are in. It need not exist yet. Default: `default`.
    pub namespace: String,
    /// Which of the two interfaces the gateways speak; default [`Api::Thrift2`].
    pub api: Api,
    /// How messages follow each other on a connection; default [`Transport::Buffered`].
    pub transport: Transport,
    /// How messages become bytes; default [`Protocol::Binary`].
    pub protocol: Protocol,
    /// Connections per gateway, each with one request at a time; default 16.
    pub pool: NonZeroUsize,
    /// The limit for opening a connection; default 2 s.
    pub connect_timeout: Duration,
    /// The limit for one attempt, where a request doesn't say; default 10 s. A gateway itself waits for minutes when a
    /// region is gone or a table is disabled.
    pub request_timeout: Duration,
    /// The limit for a change of the schema; default 60 s.
    pub schema_timeout: Duration,
    /// How long a connection may be idle before it is not used again; default 50 s, since gateways close at 60.
    pub idle_timeout: Duration,
    /// The largest message that is sent, in bytes; larger batches are split, larger rows refused. Default: 64 MiB, and for
    /// framed gateways just under 2 MiB, which is what they take.
    pub max_request_bytes: usize,
    /// Gateways without frames for changes of the schema, where the others are framed: framed ones garble what tables are made
    /// with, so no table can be made without these. Default: the gateways.
    pub schema_gateways: Vec<String>,
    /// Which gateway sits with which region server (`host` or `host:port`, as HBase names it): what is known to lie there goes
    /// through that gateway. Default: none, and a gateway sits with the region servers on its own host.
    pub colocated: Vec<(String, String)>,
    /// Whether connections are encrypted, which gateways do with [`Transport::Http`] alone. Default: no.
    pub tls: bool,
    /// A PEM file of the certificate authorities that sign gateways. Default: the system's.
    pub tls_ca: Option<PathBuf>,
}

/// Which interface a gateway speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Api {
    /// Thrift 2: everything that the backend can do.
    #[default]
    Thrift2,
    /// Thrift 1: only rows of one timestamp go together, and nothing is conditional, replaced, split, truncated or described.
    Thrift1,
}

/// How messages follow each other on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Transport {
    /// One after the other.
    #[default]
    Buffered,
    /// Each behind its length, as gateways with non-blocking servers want it.
    Framed,
    /// One POST of HTTP/1.1 for each, the only way in which gateways encrypt; with [`Protocol::Binary`] alone.
    Http,
}

/// How messages become bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Protocol {
    /// Thrift's binary protocol.
    #[default]
    Binary,
    /// Thrift's compact protocol.
    Compact,
}

impl HBaseConfig {
    /// These gateways, `host` or `host:port`; the rest as documented at the fields.
    pub fn new(gateways: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        Self {
            gateways: gateways.into_iter().map(|gateway| uri::with_port(gateway.as_ref())).collect(),
            namespace: "default".to_owned(),
            api: Api::default(),
            transport: Transport::default(),
            protocol: Protocol::default(),
            pool: NonZeroUsize::new(16).unwrap_or(NonZeroUsize::MIN),
            connect_timeout: Duration::from_secs(2),
            request_timeout: Duration::from_secs(10),
            schema_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(50),
            max_request_bytes: BUFFERED_REQUEST_BYTES,
            schema_gateways: Vec::new(),
            colocated: Vec::new(),
            tls: false,
            tls_ca: None,
        }
    }

    /// Reads `hbase://HOST[:PORT],…[/NAMESPACE][?NAME=VALUE&…]`.
    ///
    /// The parameters are `api` (`thrift2`, `thrift1`), `transport` (`buffered`, `framed`, `http`), `protocol` (`binary`,
    /// `compact`), `pool`, `connect_timeout`, `request_timeout`, `schema_timeout`, `idle_timeout` (durations such as `5s`),
    /// `max_request_bytes`, `schema_gateways` (hosts with commas), `colocated` (`server=gateway` with commas), `tls` (`true`, `false`) and `tls_ca` (a PEM file).
    ///
    /// # Errors
    /// [`InvalidArgument`](peristyle_core::ErrorKind::InvalidArgument) that names the wrong part and lists what is known.
    pub fn from_uri(uri: &str) -> Result<Self> {
        uri::parse(uri)
    }

    /// In this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// With so many connections per gateway.
    #[must_use]
    pub fn pool(mut self, connections: NonZeroUsize) -> Self {
        self.pool = connections;
        self
    }

    /// With this interface.
    #[must_use]
    pub fn api(mut self, api: Api) -> Self {
        self.api = api;
        self
    }

    /// With this transport, and the largest message that it takes.
    #[must_use]
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self.max_request_bytes = match transport {
            Transport::Buffered | Transport::Http => BUFFERED_REQUEST_BYTES,
            Transport::Framed => FRAMED_REQUEST_BYTES,
        };
        self
    }

    /// Over HTTPS, with gateways signed by the authorities in this PEM file, or by those that the system knows.
    #[must_use]
    pub fn tls(mut self, authorities: Option<PathBuf>) -> Self {
        self.tls_ca = authorities;
        self.tls = true;
        self.transport(Transport::Http)
    }

    /// With this limit for one attempt.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// Checks what no single field tells.
    pub(crate) fn validate(&self) -> Result<()> {
        if self.gateways.is_empty() {
            return Err(Error::invalid("no gateway; write hbase://host:9090/namespace"));
        }
        let named = |rest: char| rest.is_ascii_alphanumeric() || rest == '_';
        if self.namespace.is_empty() || !self.namespace.chars().all(named) {
            return Err(Error::invalid(format!("namespace {:?}: use letters, digits and underscores", self.namespace)));
        }
        if self.transport == Transport::Http && self.protocol != Protocol::Binary {
            return Err(Error::invalid("transport=http goes with protocol=binary alone"));
        }
        if self.tls && self.transport != Transport::Http {
            return Err(Error::invalid("tls=true goes with transport=http alone: gateways encrypt nothing else"));
        }
        if let Some((server, gateway)) = self.colocated.iter().find(|(_, gateway)| !self.gateways.contains(gateway)) {
            let message = format!("colocated={server}={gateway}: {gateway} is none of the gateways");
            return Err(Error::invalid(message));
        }
        if self.tls_ca.is_some() && !self.tls {
            return Err(Error::invalid("tls_ca without tls=true"));
        }
        if self.max_request_bytes < 128 << 10 {
            let message = format!("max_request_bytes={}: give at least 131072", self.max_request_bytes);
            return Err(Error::invalid(message));
        }
        let limits = [self.connect_timeout, self.request_timeout, self.schema_timeout, self.idle_timeout];
        if limits.iter().any(Duration::is_zero) {
            return Err(Error::invalid("a timeout of 0; give a duration such as 5s"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
