//! Apache HBase with its Thrift gateways, whole in one process.

mod builder;
mod config;
mod control;
mod gateway;
mod happybase;
mod install;

use std::iter;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::certificates::Certificates;
use crate::daemon::Daemon;
use crate::installation::{self, Installation};
use crate::run_folder::RunFolder;
use crate::{Error, address};

pub use builder::HBaseBuilder;
use config::{Config, Files};
pub use control::Region;
pub use gateway::Gateway;
pub use happybase::happybase;
pub use install::HBASE_VERSION;

/// An HBase, running or stopped: `ZooKeeper`, a master, region servers and Thrift gateways on one
/// address. Dropping it kills it and removes its data.
///
/// ```no_run
/// # use peristyle_servers::{Gateway, HBase};
/// # fn main() -> Result<(), peristyle_servers::Error> {
/// let mut hbase = HBase::builder()
///     .gateway(Gateway::thrift2().own_process())
///     .gateway(Gateway::thrift1().framed())
///     .start()?;
/// println!("{} {}", hbase.uri(), hbase.gateway(1)?);
/// hbase.restart_gateway(0)?; // SIGKILL and a new process on the same port
/// let region = hbase.regions("library:books")?.remove(0);
/// hbase.abort_region_server(&region.server)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HBase {
    // Dropped first: the processes must be gone before their folder.
    gateways: Vec<RunningGateway>,
    daemon: Daemon,
    address: Ipv4Addr,
    /// All that must be free before a start.
    ports: Vec<u16>,
    config: Config,
    installation: Installation,
    certificates: Option<Certificates>,
    files: Files,
    start_time: Duration,
    _folder: RunFolder,
}

/// A gateway with its place.
#[derive(Debug)]
struct RunningGateway {
    gateway: Gateway,
    address: SocketAddr,
    /// Its process, unless it lives in HBase's.
    daemon: Option<Daemon>,
}

impl RunningGateway {
    fn new(gateway: Gateway, address: SocketAddr, files: &Files) -> RunningGateway {
        let logs = files.gateway_logs(address.port());
        let daemon = gateway.own_process.then(|| Daemon::new("hbase's gateway", address, logs));
        RunningGateway { gateway, address, daemon }
    }

    fn specification(&self) -> String {
        self.gateway.specification(self.address.port())
    }
}

impl HBase {
    /// An HBase of three region servers and a Thrift 2 gateway on an address of its own, quick to
    /// start rather than quick to serve.
    pub fn builder() -> HBaseBuilder {
        HBaseBuilder::default()
    }

    /// Fetches HBase from Maven Central (84 MB) if the cache lacks it, compiles its launcher, and
    /// makes the class-data archive for quick starts. Without it the first start does so.
    ///
    /// The first call takes from ten seconds to minutes, by the network; later ones a few
    /// milliseconds. Processes that call it at the same time wait for one another.
    pub fn fetch() -> Result<Installation, Error> {
        installation::fetch(&install::PRODUCT)
    }

    /// Where the gateway listens, numbered from 0 in the builder's order.
    pub fn gateway(&self, index: usize) -> Result<SocketAddr, Error> {
        let gateway = self.gateways.get(index).ok_or_else(|| no_gateway(index))?;
        Ok(gateway.address)
    }

    /// The URI of the default namespace through the first gateway, `hbase://ADDRESS:PORT/default`.
    pub fn uri(&self) -> String {
        let gateway = self.gateways.first().map_or(self.control_address(), |gateway| gateway.address);
        format!("hbase://{gateway}/default")
    }

    /// Where `ZooKeeper` listens.
    pub fn zookeeper_address(&self) -> SocketAddr {
        SocketAddr::new(self.address.into(), self.config.zookeeper_port)
    }

    /// Where commands are taken: one line with a command for each connection, as in
    /// `echo "regions library:books" | nc ADDRESS PORT`.
    pub fn control_address(&self) -> SocketAddr {
        self.daemon.address()
    }

    /// The certificates of its gateways with TLS, if there are any.
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }

    /// HBase's process, while it runs.
    pub fn process_id(&self) -> Option<u32> {
        self.daemon.id()
    }

    /// The process of a gateway that has one of its own, while it runs.
    pub fn gateway_process_id(&self, index: usize) -> Option<u32> {
        self.gateways.get(index)?.daemon.as_ref()?.id()
    }

    /// The resident memory of all its processes in bytes, while HBase's runs.
    pub fn resident_bytes(&self) -> Option<u64> {
        let gateways = self.gateways.iter().filter_map(|gateway| gateway.daemon.as_ref()?.resident_bytes());
        Some(self.daemon.resident_bytes()? + gateways.sum::<u64>())
    }

    /// How long the last start took, from the launch of the process until everything accepted
    /// calls.
    pub fn start_time(&self) -> Duration {
        self.start_time
    }

    /// The log of HBase's last start.
    pub fn log_file(&self) -> PathBuf {
        self.daemon.log_file()
    }

    /// Fails, with the log's tail on standard error, if HBase has ended by itself.
    pub fn check_running(&mut self) -> Result<(), Error> {
        self.daemon.check_running()
    }

    /// Ends HBase and its gateways in order (SIGTERM), or by force after 30 s. Does nothing if they
    /// are not running.
    pub fn stop(&mut self) -> Result<(), Error> {
        for gateway in self.gateway_daemons() {
            gateway.stop()?;
        }
        self.daemon.stop()
    }

    /// Ends HBase and its gateways at once (SIGKILL), as a crash would, and waits until they are
    /// gone. Does nothing if they are not running.
    pub fn kill(&mut self) {
        self.gateway_daemons().for_each(Daemon::kill);
        self.daemon.kill();
    }

    /// Ends HBase at once (SIGKILL), while gateways in [processes of their own](Gateway::own_process) live on.
    pub fn kill_cluster(&mut self) {
        self.daemon.kill();
    }

    /// Starts HBase and its gateways again on the same address and data, killing them first if they
    /// run.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.kill();
        self.launch()
    }

    /// Ends a gateway at once (SIGKILL) while HBase lives. It must have a
    /// [process of its own](Gateway::own_process).
    pub fn kill_gateway(&mut self, index: usize) -> Result<(), Error> {
        self.gateway_daemon(index)?.kill();
        Ok(())
    }

    /// Starts a gateway again on its port, killing it first if it runs, and waits until it accepts
    /// calls, at most 90 s. It must have a [process of its own](Gateway::own_process).
    pub fn restart_gateway(&mut self, index: usize) -> Result<(), Error> {
        self.gateway_daemon(index)?.kill();
        self.launch_gateway(index)?;
        self.gateway_daemon(index)?.wait_until_ready(gateway::accepts)
    }

    /// The region servers that the master believes alive, by name.
    pub fn region_servers(&self) -> Result<Vec<String>, Error> {
        self.command(&["region-servers"])
    }

    /// Starts one more region server and gives its name. It gets regions when they are
    /// [balanced](HBase::balance) or moved.
    pub fn add_region_server(&self) -> Result<String, Error> {
        Ok(self.command(&["add-region-server"])?.concat())
    }

    /// Makes a region server end itself, as on a fatal error, without closing its regions; returns
    /// at once. The master notices within a second, and opens the regions elsewhere after replaying
    /// their log.
    pub fn abort_region_server(&self, name: &str) -> Result<(), Error> {
        self.command(&["abort-region-server", name]).map(drop)
    }

    /// The regions of a table (`namespace:name`), in the order of their keys.
    pub fn regions(&self, table: &str) -> Result<Vec<Region>, Error> {
        self.command(&["regions", table])?.iter().map(|line| control::region(line)).collect()
    }

    /// Splits the region that has `key` there, and waits until both halves are open.
    pub fn split(&self, table: &str, key: &[u8]) -> Result<(), Error> {
        self.command(&["split", table, &control::escape(key)]).map(drop)
    }

    /// Moves a region, by its encoded name, to a region server, and waits until it is open there.
    pub fn move_region(&self, region: &str, server: &str) -> Result<(), Error> {
        self.command(&["move", region, server]).map(drop)
    }

    /// Writes what is in a table's memory to files.
    pub fn flush(&self, table: &str) -> Result<(), Error> {
        self.command(&["flush", table]).map(drop)
    }

    /// Compacts a table into one file for each family of each region.
    pub fn compact(&self, table: &str) -> Result<(), Error> {
        self.command(&["compact", table]).map(drop)
    }

    /// Spreads regions over the region servers; false if the master declined, as it does while
    /// regions are moving.
    pub fn balance(&self) -> Result<bool, Error> {
        Ok(self.command(&["balance"])?.concat() == "true")
    }

    /// Closes a table: calls to it fail until it is enabled.
    pub fn disable(&self, table: &str) -> Result<(), Error> {
        self.command(&["disable", table]).map(drop)
    }

    /// Opens a disabled table.
    pub fn enable(&self, table: &str) -> Result<(), Error> {
        self.command(&["enable", table]).map(drop)
    }

    fn command(&self, words: &[&str]) -> Result<Vec<String>, Error> {
        control::send(self.control_address(), words)
    }

    /// Starts everything and waits. HBase answers commands last of all in its process; gateways in
    /// processes of their own start after it, at the same time.
    fn launch(&mut self) -> Result<(), Error> {
        address::check_free(self.address, &self.ports)?;
        let begun = Instant::now();
        let inside = self.gateways.iter().filter(|gateway| gateway.daemon.is_none());
        let inside: Vec<String> = inside.map(RunningGateway::specification).collect();
        self.daemon.launch(self.java("peristyle.Server", &inside)?)?;
        self.daemon.wait_until_ready(|address| control::send(address, &["region-servers"]).map(drop))?;
        for index in 0..self.gateways.len() {
            self.launch_gateway(index)?;
        }
        for daemon in self.gateway_daemons() {
            daemon.wait_until_ready(gateway::accepts)?;
        }
        self.start_time = begun.elapsed();
        Ok(())
    }

    /// Does nothing for a gateway inside HBase's process.
    fn launch_gateway(&mut self, index: usize) -> Result<(), Error> {
        let gateway = self.gateways.get(index).ok_or_else(|| no_gateway(index))?;
        let command = self.java("peristyle.Gateway", &[gateway.specification()])?;
        match self.gateways.get_mut(index).and_then(|gateway| gateway.daemon.as_mut()) {
            Some(daemon) => daemon.launch(command),
            None => Ok(()),
        }
    }

    fn java(&self, main_class: &str, gateways: &[String]) -> Result<std::process::Command, Error> {
        let arguments = Config::jvm_arguments(&self.files);
        let mut command = self.config.jvm.command(&self.installation, arguments, main_class)?;
        let site = self.files.site().into_os_string();
        command.args(iter::once(site).chain(gateways.iter().map(Into::into)));
        Ok(command)
    }

    fn gateway_daemons(&mut self) -> impl Iterator<Item = &mut Daemon> {
        self.gateways.iter_mut().filter_map(|gateway| gateway.daemon.as_mut())
    }

    fn gateway_daemon(&mut self, index: usize) -> Result<&mut Daemon, Error> {
        let gateway = self.gateways.get_mut(index).ok_or_else(|| no_gateway(index))?;
        let shared = || Error::Setting(format!("gateway {index} has no process of its own"));
        gateway.daemon.as_mut().ok_or_else(shared)
    }
}

fn no_gateway(index: usize) -> Error {
    Error::Setting(format!("there is no gateway {index}"))
}
