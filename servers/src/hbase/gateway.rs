//! Thrift gateways: what is asked for, and those in processes of their own.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::Error;

/// A Thrift gateway in the making: which API, and how it is spoken.
///
/// The default is HBase's own: binary protocol, buffered transport, inside HBase's process.
#[derive(Clone, Debug)]
pub struct Gateway {
    pub(super) api: &'static str,
    pub(super) options: Vec<&'static str>,
    pub(super) port: Option<u16>,
    pub(super) own_process: bool,
}

impl Gateway {
    /// One that speaks Thrift 1 (`Hbase.thrift`).
    pub fn thrift1() -> Gateway {
        Gateway::new("thrift1")
    }

    /// One that speaks Thrift 2 (`hbase.thrift` of `thrift2`).
    pub fn thrift2() -> Gateway {
        Gateway::new("thrift2")
    }

    fn new(api: &'static str) -> Gateway {
        Gateway { api, options: Vec::new(), port: None, own_process: false }
    }

    /// Framed transport. It takes frames up to 2 MB.
    #[must_use]
    pub fn framed(self) -> Gateway {
        self.with("framed")
    }

    /// Compact protocol.
    #[must_use]
    pub fn compact(self) -> Gateway {
        self.with("compact")
    }

    /// Over HTTP: binary protocol, one POST for each call, to any path.
    #[must_use]
    pub fn http(self) -> Gateway {
        self.with("http")
    }

    /// Over HTTP with TLS, the only way that a gateway encrypts; see
    /// [`HBase::certificates`](super::HBase::certificates).
    #[must_use]
    pub fn https(self) -> Gateway {
        self.with("https")
    }

    pub(super) fn has_tls(&self) -> bool {
        self.options.contains(&"https")
    }

    fn with(mut self, option: &'static str) -> Gateway {
        self.options.push(option);
        self
    }

    /// Listens on this port. Default: 9090 for the first, 9091 for the second, and so on.
    #[must_use]
    pub fn port(mut self, port: u16) -> Gateway {
        self.port = Some(port);
        self
    }

    /// Runs it in a process of its own, which can be killed and restarted while HBase lives
    /// ([`HBase::kill_gateway`](super::HBase::kill_gateway)). It takes about 1.5 s and 120 MiB more.
    #[must_use]
    pub fn own_process(mut self) -> Gateway {
        self.own_process = true;
        self
    }

    /// The gateway as the launcher reads it.
    pub(super) fn specification(&self, port: u16) -> String {
        let mut words = vec![self.api.to_owned(), port.to_string()];
        words.extend(self.options.iter().map(|&option| option.to_owned()));
        words.join(":")
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if self.options.len() > 1 && self.options.iter().any(|option| option.starts_with("http")) {
            return Err(Error::Setting("a gateway over HTTP is neither framed nor compact".into()));
        }
        Ok(())
    }
}

/// Whether a gateway accepts connections; HBase speaks up only once those in its process do.
pub(super) fn accepts(address: SocketAddr) -> Result<(), Error> {
    let connected = TcpStream::connect_timeout(&address, Duration::from_secs(1));
    connected.map(drop).map_err(Error::io(format!("connecting to {address}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_is_told_api_port_and_options() {
        assert_eq!(Gateway::thrift2().specification(9090), "thrift2:9090");
        assert_eq!(Gateway::thrift1().framed().compact().specification(9), "thrift1:9:framed:compact");
    }

    #[test]
    fn http_excludes_what_only_sockets_have() {
        assert!(Gateway::thrift2().http().check().is_ok());
        assert!(Gateway::thrift2().http().framed().check().is_err());
    }
}
