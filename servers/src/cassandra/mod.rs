//! One node of Apache Cassandra, or several.

mod config;
mod cql;
mod install;
mod ring;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::certificates::Certificates;
use crate::daemon::Daemon;
use crate::installation::{self, Installation};
use crate::run_folder::RunFolder;
use crate::{Error, address, cache};

use config::{Config, Files, Ports, Tls};
pub use cql::{Client, Login, Row};
pub use install::CASSANDRA_VERSION;
pub use ring::Ring;

const SUPERUSER: Login<'static> = Login { user: "cassandra", password: "cassandra" };

/// How a node is to be started; see [`Cassandra::builder`].
#[derive(Clone, Debug, Default)]
pub struct CassandraBuilder {
    address: Option<Ipv4Addr>,
    config: Config,
}

impl CassandraBuilder {
    /// Listens on this loopback address. Default: a free one in `127.0.0.0/8`.
    #[must_use]
    pub fn address(mut self, address: Ipv4Addr) -> Self {
        self.address = Some(address);
        self
    }

    /// Serves CQL on this port. Default: 9042.
    #[must_use]
    pub fn cql_port(mut self, port: u16) -> Self {
        self.config.ports.cql = port;
        self
    }

    /// Talks to other nodes on this port. Default: 7000.
    #[must_use]
    pub fn storage_port(mut self, port: u16) -> Self {
        self.config.ports.storage = port;
        self
    }

    /// The greatest heap in MiB. Default: 1024.
    #[must_use]
    pub fn heap_mib(mut self, heap: u32) -> Self {
        self.config.jvm.heap_mib = heap;
        self
    }

    /// Compiles for throughput (C2) instead of a quick start (C1 only).
    #[must_use]
    pub fn bench(mut self) -> Self {
        self.config.jvm.bench = true;
        self
    }

    /// Keeps the schema and every acknowledged write over [`Cassandra::kill`]: the commit log is
    /// fsynced before a write is acknowledged (`commitlog_sync: batch`), which costs throughput.
    /// Without it nothing survives: that is for tests that throw the node away.
    #[must_use]
    pub fn durable(mut self) -> Self {
        self.config.durable = true;
        self
    }

    /// Demands a password; the superuser is `cassandra` with password `cassandra`.
    #[must_use]
    pub fn password_auth(mut self) -> Self {
        self.config.password_auth = true;
        self
    }

    /// Encrypts client connections, and refuses others.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.config.tls = Tls::Server;
        self
    }

    /// Encrypts client connections, and demands a client certificate.
    #[must_use]
    pub fn mutual_tls(mut self) -> Self {
        self.config.tls = Tls::Mutual;
        self
    }

    /// Puts the node into a data center and rack.
    #[must_use]
    pub fn place(mut self, data_center: &str, rack: &str) -> Self {
        self.config.place = Some((data_center.into(), rack.into()));
        self
    }

    /// Sets a top-level key of `cassandra.yaml`, in place of any default; the value is YAML.
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

    /// Starts the node and waits until it answers CQL, at most 90 s; fetches it first if needed.
    ///
    /// A node that does not come up is killed, and its log's tail is printed to standard error.
    pub fn start(self) -> Result<Cassandra, Error> {
        self.start_from(&Cassandra::fetch()?)
    }

    pub(super) fn start_from(self, installation: &Installation) -> Result<Cassandra, Error> {
        let mut node = self.prepare(installation)?;
        node.launch()?;
        node.wait_until_ready()?;
        Ok(node)
    }

    /// The start's first half: everything but the process.
    pub(crate) fn prepare(self, installation: &Installation) -> Result<Cassandra, Error> {
        let address = address::choose(self.address, &self.ports().all())?;
        let folder = RunFolder::create(&cache::folder()?)?;
        let files = Files::new(folder.path());
        let certificates = match self.config.tls {
            Tls::Off => None,
            _ => Some(Certificates::issue(&files.certificates(), IpAddr::V4(address))?),
        };
        self.config.write(&files, address, certificates.as_ref())?;
        let served = SocketAddr::new(IpAddr::V4(address), self.config.ports.cql);
        Ok(Cassandra {
            daemon: Daemon::new("cassandra", served, files.logs()),
            address,
            config: self.config,
            installation: installation.clone(),
            certificates,
            files,
            _folder: folder,
        })
    }

    pub(crate) fn ports(&self) -> Ports {
        self.config.ports
    }

    pub(crate) fn seed(mut self, seed: Ipv4Addr) -> Self {
        self.config.seed = Some(seed);
        self
    }
}

/// A node of Apache Cassandra, running or stopped. Dropping it kills it and removes its data.
#[derive(Debug)]
pub struct Cassandra {
    // Dropped first: the process must be gone before its folder.
    daemon: Daemon,
    address: Ipv4Addr,
    config: Config,
    installation: Installation,
    certificates: Option<Certificates>,
    files: Files,
    _folder: RunFolder,
}

impl Cassandra {
    /// A node on an address of its own, for throwing away, without password or TLS, quick to
    /// start rather than quick to serve.
    pub fn builder() -> CassandraBuilder {
        CassandraBuilder::default()
    }

    /// Fetches Cassandra from Maven Central (66 MB) if the cache lacks it, and makes the class-data
    /// archive for quick starts. Without it the first start does so.
    ///
    /// The first call takes from ten seconds to minutes, by the network; later ones a few
    /// milliseconds. Processes that call it at the same time wait for one another.
    pub fn fetch() -> Result<Installation, Error> {
        installation::fetch(&install::PRODUCT)
    }

    /// Where it serves CQL.
    pub fn cql_address(&self) -> SocketAddr {
        self.daemon.address()
    }

    /// Its URI, `cql://ADDRESS:PORT`.
    pub fn uri(&self) -> String {
        format!("cql://{}", self.cql_address())
    }

    /// Its certificates, if it serves TLS.
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }

    /// Its process, while it runs.
    pub fn process_id(&self) -> Option<u32> {
        self.daemon.id()
    }

    /// Its resident memory in bytes, while it runs.
    pub fn resident_bytes(&self) -> Option<u64> {
        self.daemon.resident_bytes()
    }

    /// How long the last start took, from the launch of the process to the first answer.
    pub fn start_time(&self) -> Duration {
        self.daemon.start_time()
    }

    /// The log of the last start.
    pub fn log_file(&self) -> PathBuf {
        self.daemon.log_file()
    }

    /// A new connection, encrypted and logged in as the node demands.
    pub fn client(&self) -> Result<Client, Error> {
        connect(self.cql_address(), &self.config, self.certificates.as_ref())
    }

    /// Fails, with the log's tail on standard error, if the node has ended by itself.
    pub fn check_running(&mut self) -> Result<(), Error> {
        self.daemon.check_running()
    }

    /// Ends the node in order (SIGTERM), or by force after 30 s. Does nothing if it is not running.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.daemon.stop()
    }

    /// Ends the node at once (SIGKILL), as a crash would, and waits until it is gone. Does nothing
    /// if it is not running.
    pub fn kill(&mut self) {
        self.daemon.kill();
    }

    /// Starts it again on the same address and data, killing it first if it runs.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.kill();
        self.launch()?;
        self.wait_until_ready()
    }

    pub(crate) fn launch(&mut self) -> Result<(), Error> {
        address::check_free(self.address, &self.config.ports.all())?;
        let arguments = self.config.jvm_arguments(&self.files);
        let main_class = "org.apache.cassandra.service.CassandraDaemon";
        self.daemon.launch(self.config.jvm.command(&self.installation, arguments, main_class)?)
    }

    pub(crate) fn wait_until_ready(&mut self) -> Result<(), Error> {
        let (config, certificates) = (&self.config, self.certificates.as_ref());
        self.daemon.wait_until_ready(|address| {
            connect(address, config, certificates)?.query("SELECT key FROM system.local").map(drop)
        })
    }

    /// An error of this node, with its log's tail printed first.
    pub(crate) fn failed(&self, reason: String) -> Error {
        self.daemon.failed(reason)
    }

    /// Whether the node sees `peers` other nodes, all of them up, with tokens, and with the same
    /// schema as its own.
    pub(crate) fn sees(&self, peers: usize) -> Result<bool, Error> {
        let mut client = self.client()?;
        let own = client.query("SELECT schema_version FROM system.local")?;
        let others =
            client.query("SELECT schema_version, tokens, data_center, rack, native_address FROM system.peers_v2")?;
        let known =
            |row: &&Row| row.iter().all(Option::is_some) && row.first() == own.first().and_then(|row| row.first());
        let known = others.iter().filter(known).count();
        Ok(known == peers && peers_up(&self.daemon.log()?) == peers)
    }
}

fn connect(address: SocketAddr, config: &Config, certificates: Option<&Certificates>) -> Result<Client, Error> {
    let login = config.password_auth.then_some(SUPERUSER);
    match certificates {
        Some(certificates) => Client::connect_tls(address, certificates, config.tls == Tls::Mutual, login),
        None => Client::connect(address, login),
    }
}

/// How many nodes the log last called up. The system tables tell who was met, only the log who
/// still answers.
fn peers_up(log: &str) -> usize {
    let mut last = BTreeMap::new();
    for line in log.lines() {
        if let Some((head, state)) = line.rsplit_once(" is now ") {
            last.insert(head.rsplit(' ').next(), state);
        }
    }
    last.values().filter(|state| **state == "UP").count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_peers_whose_last_word_is_up_count() {
        let log = "12:00 INFO Gossiper: InetAddress /127.1.1.2:7000 is now UP
12:01 INFO Gossiper: InetAddress /127.1.1.3:7000 is now UP
12:02 INFO Gossiper: InetAddress /127.1.1.3:7000 is now DOWN
12:03 INFO Gossiper: InetAddress /127.1.1.2:7000 is now UP";
        assert_eq!(peers_up(log), 1);
    }
}
