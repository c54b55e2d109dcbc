//! One node of Apache Cassandra.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::address::{self, Ports};
use crate::certificates::Certificates;
use crate::config::{Config, Files, Tls};
use crate::cql::{Client, Login, Row};
use crate::fetch::{Installation, fetch};
use crate::java::Java;
use crate::process::{self, Process};
use crate::run_folder::RunFolder;
use crate::{Error, cache};

const START_LIMIT: Duration = Duration::from_secs(90);
const STOP_GRACE: Duration = Duration::from_secs(30);
const LOG_TAIL: usize = 40;
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
        self.config.heap_mib = heap;
        self
    }

    /// Compiles for throughput (C2) instead of a quick start (C1 only).
    #[must_use]
    pub fn bench(mut self) -> Self {
        self.config.bench = true;
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
        self.config.jvm_options.push(option.into());
        self
    }

    /// Starts the node and waits until it answers CQL, at most 90 s; fetches it first if needed.
    ///
    /// A node that does not come up is killed, and its log's tail is printed to standard error.
    pub fn start(self) -> Result<Cassandra, Error> {
        self.start_from(&fetch()?)
    }

    pub(crate) fn start_from(self, installation: &Installation) -> Result<Cassandra, Error> {
        let mut node = self.prepare(installation)?;
        node.launch()?;
        node.wait_until_ready()?;
        Ok(node)
    }

    /// The start's first half: everything but the process.
    pub(crate) fn prepare(self, installation: &Installation) -> Result<Cassandra, Error> {
        let address = self.choose_address()?;
        let folder = RunFolder::create(&cache::folder()?)?;
        let files = Files::new(folder.path());
        let certificates = match self.config.tls {
            Tls::Off => None,
            _ => Some(Certificates::issue(&files.certificates(), IpAddr::V4(address))?),
        };
        self.config.write(&files, address, certificates.as_ref())?;
        Ok(Cassandra {
            process: None,
            address,
            config: self.config,
            installation: installation.clone(),
            certificates,
            files,
            runs: 0,
            launched: Instant::now(),
            start_time: Duration::ZERO,
            _folder: folder,
        })
    }

    fn choose_address(&self) -> Result<Ipv4Addr, Error> {
        match self.address {
            Some(address) if address.is_loopback() => Ok(address),
            Some(other) => Err(Error::Setting(format!("{other} is not in 127.0.0.0/8"))),
            None => address::allocate(1, self.config.ports),
        }
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
    process: Option<Process>,
    address: Ipv4Addr,
    config: Config,
    installation: Installation,
    certificates: Option<Certificates>,
    files: Files,
    runs: u32,
    launched: Instant,
    start_time: Duration,
    _folder: RunFolder,
}

impl Cassandra {
    /// A node on an address of its own, for throwing away, without password or TLS, quick to
    /// start rather than quick to serve.
    pub fn builder() -> CassandraBuilder {
        CassandraBuilder::default()
    }

    /// Where it serves CQL.
    pub fn cql_address(&self) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(self.address), self.config.ports.cql)
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
        self.process.as_ref().map(Process::id)
    }

    /// Its resident memory in bytes, while it runs.
    pub fn resident_bytes(&self) -> Option<u64> {
        process::resident_bytes(self.process_id()?)
    }

    /// How long the last start took, from the launch of the process to the first answer.
    pub fn start_time(&self) -> Duration {
        self.start_time
    }

    /// The log of the last start.
    pub fn log_file(&self) -> PathBuf {
        self.files.log(self.runs)
    }

    /// A new connection, encrypted and logged in as the node demands.
    pub fn client(&self) -> Result<Client, Error> {
        let login = self.config.password_auth.then_some(SUPERUSER);
        match &self.certificates {
            Some(certificates) => {
                let present = self.config.tls == Tls::Mutual;
                Client::connect_tls(self.cql_address(), certificates, present, login)
            }
            None => Client::connect(self.cql_address(), login),
        }
    }

    /// Fails, with the log's tail on standard error, if the node has ended by itself.
    pub fn check_running(&mut self) -> Result<(), Error> {
        match self.end_of_process()? {
            Some(reason) => Err(self.failed(reason)),
            None => Ok(()),
        }
    }

    /// Ends the node in order (SIGTERM), or by force after 30 s. Does nothing if it is not running.
    pub fn stop(&mut self) -> Result<(), Error> {
        let Some(process) = self.process.take() else {
            return Ok(());
        };
        process.stop(STOP_GRACE).map_err(Error::io(format!("stopping cassandra at {}", self.cql_address())))
    }

    /// Ends the node at once (SIGKILL), as a crash would, and waits until it is gone. Does nothing
    /// if it is not running.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again on the same address and data, killing it first if it runs.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.kill();
        self.launch()?;
        self.wait_until_ready()
    }

    pub(crate) fn launch(&mut self) -> Result<(), Error> {
        address::check_free(self.address, self.config.ports)?;
        self.runs += 1;
        let log = self.log_file();
        let doing = || Error::io(format!("writing {}", log.display()));
        let output = File::create(&log).map_err(doing())?;
        let errors = output.try_clone().map_err(doing())?;
        let java = Java::find()?;
        let mut command = process::tethered();
        command
            .arg(&java.program)
            .args(java.arguments())
            .args(self.config.jvm_arguments(&self.files, self.installation.archive()))
            .arg("-classpath")
            .arg(self.installation.classpath()?)
            .arg("org.apache.cassandra.service.CassandraDaemon")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        self.launched = Instant::now();
        self.process = Some(Process::spawn(command).map_err(process::no_setpriv)?);
        Ok(())
    }

    pub(crate) fn wait_until_ready(&mut self) -> Result<(), Error> {
        let reason = loop {
            if let Some(reason) = self.end_of_process()? {
                break reason;
            }
            let Err(unready) = self.ask() else {
                self.start_time = self.launched.elapsed();
                return Ok(());
            };
            if self.launched.elapsed() > START_LIMIT {
                break format!("no answer after {} s ({unready})", START_LIMIT.as_secs());
            }
            thread::sleep(Duration::from_millis(30));
        };
        self.kill();
        Err(self.failed(reason))
    }

    fn ask(&self) -> Result<(), Error> {
        self.client()?.query("SELECT key FROM system.local").map(drop)
    }

    fn end_of_process(&mut self) -> Result<Option<String>, Error> {
        let Some(process) = &mut self.process else {
            return Ok(Some("it is not running".into()));
        };
        let ended = process.ended().map_err(Error::io("watching cassandra"))?;
        Ok(ended.map(|status| format!("it ended with {status}")))
    }

    /// An error of this node, with its log's tail printed first.
    pub(crate) fn failed(&self, reason: String) -> Error {
        let address = self.cql_address();
        let log = fs::read_to_string(self.log_file()).unwrap_or_default();
        eprintln!("--- last lines of the log of cassandra at {address}");
        eprintln!("{}", tail(&log, LOG_TAIL));
        eprintln!("---");
        Error::Server { address, reason }
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
        let file = self.log_file();
        let log = fs::read_to_string(&file).map_err(Error::io(format!("reading {}", file.display())))?;
        Ok(known == peers && peers_up(&log) == peers)
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

fn tail(text: &str, lines: usize) -> &str {
    let start = text.trim_end().rmatch_indices('\n').nth(lines.saturating_sub(1));
    start.map_or(text, |(at, _)| text.get(at + 1..).unwrap_or(text)).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_last_lines() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a\nb\nc", 3), "a\nb\nc");
        assert_eq!(tail("a\nb\nc", 9), "a\nb\nc");
        assert_eq!(tail("", 9), "");
    }

    #[test]
    fn only_peers_whose_last_word_is_up_count() {
        let log = "12:00 INFO Gossiper: InetAddress /127.1.1.2:7000 is now UP
12:01 INFO Gossiper: InetAddress /127.1.1.3:7000 is now UP
12:02 INFO Gossiper: InetAddress /127.1.1.3:7000 is now DOWN
12:03 INFO Gossiper: InetAddress /127.1.1.2:7000 is now UP";
        assert_eq!(peers_up(log), 1);
    }

    #[test]
    fn a_node_off_loopback_is_refused() {
        let builder = Cassandra::builder().address(Ipv4Addr::new(10, 0, 0, 1));
        let error = builder.choose_address().unwrap_err();
        assert_eq!(error.to_string(), "10.0.0.1 is not in 127.0.0.0/8");
    }
}
