//! How an HBase is to be started.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::config::{Config, Files};
use super::{Gateway, HBase, RunningGateway};
use crate::certificates::Certificates;
use crate::daemon::Daemon;
use crate::installation::Installation;
use crate::run_folder::RunFolder;
use crate::{Error, address, cache};

const FIRST_GATEWAY_PORT: u16 = 9090;

/// How an HBase is to be started; see [`HBase::builder`].
#[derive(Clone, Debug, Default)]
pub struct HBaseBuilder {
    address: Option<Ipv4Addr>,
    gateways: Vec<Gateway>,
    config: Config,
}

impl HBaseBuilder {
    /// Listens on this loopback address. Default: a free one in `127.0.0.0/8`.
    #[must_use]
    pub fn address(mut self, address: Ipv4Addr) -> Self {
        self.address = Some(address);
        self
    }

    /// Has so many region servers. Default: 3; one is quicker.
    #[must_use]
    pub fn region_servers(mut self, count: u32) -> Self {
        self.config.region_servers = count;
        self
    }

    /// Adds a gateway. Without any there is one of Thrift 2.
    #[must_use]
    pub fn gateway(self, gateway: Gateway) -> Self {
        self.gateways([gateway])
    }

    /// Adds several gateways.
    #[must_use]
    pub fn gateways(mut self, gateways: impl IntoIterator<Item = Gateway>) -> Self {
        self.gateways.extend(gateways);
        self
    }

    /// Serves `ZooKeeper` on this port. Default: 2181.
    #[must_use]
    pub fn zookeeper_port(mut self, port: u16) -> Self {
        self.config.zookeeper_port = port;
        self
    }

    /// Takes commands on this port. Default: 9099.
    #[must_use]
    pub fn control_port(mut self, port: u16) -> Self {
        self.config.control_port = port;
        self
    }

    /// The greatest heap in MiB, of the one process that holds all servers. Default: 512. Gateways
    /// in processes of their own have as much each.
    #[must_use]
    pub fn heap_mib(mut self, heap: u32) -> Self {
        self.config.jvm.heap_mib = heap;
        self
    }

    /// Compiles for throughput (C2) and serves with HBase's own number of handlers, instead of a
    /// quick start (C1 only, 10 handlers).
    #[must_use]
    pub fn bench(mut self) -> Self {
        self.config.jvm.bench = true;
        self
    }

    /// Writes no log ahead: quicker, and what was not flushed, HBase's own list of tables and regions
    /// included, is lost with its region server or with [`HBase::kill`].
    ///
    /// With the log, an acknowledged write survives both. A crash of the machine is another matter:
    /// Hadoop's file system does not fsync on a local disk.
    #[must_use]
    pub fn without_write_ahead_log(mut self) -> Self {
        self.config.write_ahead_log = false;
        self
    }

    /// Sets a property of `hbase-site.xml`, in place of any default.
    #[must_use]
    pub fn setting(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.config.settings.insert(key.into(), value.into());
        self
    }

    /// Adds an argument of the JVM.
    #[must_use]
    pub fn jvm_option(mut self, option: impl Into<String>) -> Self {
        self.config.jvm.options.push(option.into());
        self
    }

    /// Starts HBase and its gateways and waits until all accept calls, at most 90 s; fetches it
    /// first if needed.
    ///
    /// One that does not come up is killed, and its log's tail is printed to standard error.
    pub fn start(self) -> Result<HBase, Error> {
        self.start_from(&HBase::fetch()?)
    }

    pub(super) fn start_from(mut self, installation: &Installation) -> Result<HBase, Error> {
        if self.gateways.is_empty() {
            self.gateways.push(Gateway::thrift2());
        }
        let gateways = self.with_ports()?;
        let ports = self.ports(&gateways)?;
        let address = address::choose(self.address, &ports)?;
        let folder = RunFolder::create(&cache::folder()?)?;
        let files = Files::new(folder.path());
        let has_tls = gateways.iter().any(|(gateway, _)| gateway.has_tls());
        let issue = || Certificates::issue(&files.certificates(), IpAddr::V4(address));
        let certificates = has_tls.then(issue).transpose()?;
        self.config.write(&files, address, certificates.as_ref())?;
        let at = |port| SocketAddr::new(IpAddr::V4(address), port);
        let mut hbase = HBase {
            gateways: gateways
                .into_iter()
                .map(|(gateway, port)| RunningGateway::new(gateway, at(port), &files))
                .collect(),
            daemon: Daemon::new("hbase", at(self.config.control_port), files.logs()),
            address,
            ports,
            config: self.config,
            installation: installation.clone(),
            certificates,
            files,
            start_time: Duration::ZERO,
            _folder: folder,
        };
        hbase.launch()?;
        Ok(hbase)
    }

    fn with_ports(&self) -> Result<Vec<(Gateway, u16)>, Error> {
        let numbered = (FIRST_GATEWAY_PORT..).zip(&self.gateways);
        let with_port = |(port, gateway): (u16, &Gateway)| {
            gateway.check()?;
            Ok((gateway.clone(), gateway.port.unwrap_or(port)))
        };
        numbered.map(with_port).collect()
    }

    /// All ports that must be free. Those of master and region servers are the system's choice.
    fn ports(&self, gateways: &[(Gateway, u16)]) -> Result<Vec<u16>, Error> {
        if self.config.region_servers == 0 {
            return Err(Error::Setting("hbase needs a region server".into()));
        }
        let mut ports = vec![self.config.zookeeper_port, self.config.control_port];
        ports.extend(gateways.iter().map(|(_, port)| port));
        let mut seen = BTreeSet::new();
        match ports.iter().find(|port| !seen.insert(**port)) {
            Some(twice) => Err(Error::Setting(format!("port {twice} is asked for twice"))),
            None => Ok(ports),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(builder: &HBaseBuilder) -> Result<Vec<u16>, Error> {
        builder.ports(&builder.with_ports()?)
    }

    #[test]
    fn gateways_without_a_port_are_numbered_in_their_order() {
        let builder = HBase::builder().gateways([Gateway::thrift2(), Gateway::thrift1().port(7), Gateway::thrift2()]);
        assert_eq!(ports(&builder).unwrap(), [2181, 9099, 9090, 7, 9092]);
    }

    #[test]
    fn a_port_asked_for_twice_is_refused() {
        let builder = HBase::builder().gateway(Gateway::thrift2()).control_port(9090);
        assert_eq!(ports(&builder).unwrap_err().to_string(), "port 9090 is asked for twice");
    }

    #[test]
    fn an_hbase_without_region_servers_is_refused() {
        let error = ports(&HBase::builder().region_servers(0)).unwrap_err();
        assert_eq!(error.to_string(), "hbase needs a region server");
    }
}
