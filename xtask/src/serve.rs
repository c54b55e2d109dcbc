//! A server in the foreground, for use by hand.

use std::net::Ipv4Addr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use clap::Args;
use peristyle_servers::{Cassandra, Error, HBase};

use crate::servers::{figures, gateways};

/// How a Cassandra is to run.
#[derive(Debug, Args)]
pub(crate) struct ServeCassandra {
    /// The loopback address to listen on.
    #[arg(long, default_value_t = Ipv4Addr::LOCALHOST, value_parser = loopback)]
    address: Ipv4Addr,
    /// The port to serve CQL on.
    #[arg(long, default_value_t = 9042)]
    port: u16,
    /// Serve fast rather than start fast.
    #[arg(long)]
    bench: bool,
    /// Fsync before a write is acknowledged, instead of never.
    #[arg(long)]
    durable: bool,
}

impl ServeCassandra {
    /// Starts the node, prints its URI, and stops it on Ctrl-C; its data goes with it.
    pub(crate) fn run(self) -> Result<(), String> {
        let mut node = Cassandra::builder().address(self.address).cql_port(self.port);
        if self.bench {
            node = node.bench();
        }
        if self.durable {
            node = node.durable();
        }
        let mut node = node.start().map_err(|error| error.to_string())?;
        println!("{}", node.uri());
        let figures = figures(node.start_time(), node.resident_bytes());
        eprintln!("{figures} Ctrl-C stops it; the log is {}", node.log_file().display());
        wait_for_interrupt(|| node.check_running())?;
        node.stop().map_err(|error| error.to_string())
    }
}

/// How an HBase is to run.
#[derive(Debug, Args)]
pub(crate) struct ServeHBase {
    /// The loopback address to listen on.
    #[arg(long, default_value_t = Ipv4Addr::LOCALHOST, value_parser = loopback)]
    address: Ipv4Addr,
    /// How many region servers it has.
    #[arg(long, default_value_t = 3)]
    region_servers: u32,
    /// The greatest heap, in MiB.
    #[arg(long, default_value_t = 512)]
    heap: u32,
    /// Serve fast rather than start fast.
    #[arg(long)]
    bench: bool,
}

impl ServeHBase {
    /// Starts HBase, prints its URI, and stops it on Ctrl-C; its data goes with it.
    pub(crate) fn run(self) -> Result<(), String> {
        let mut hbase = HBase::builder()
            .address(self.address)
            .region_servers(self.region_servers)
            .heap_mib(self.heap)
            .gateways(gateways());
        if self.bench {
            hbase = hbase.bench();
        }
        let mut hbase = hbase.start().map_err(|error| error.to_string())?;
        println!("{}", hbase.uri());
        print_hints(&hbase).map_err(|error| error.to_string())?;
        wait_for_interrupt(|| hbase.check_running())?;
        hbase.stop().map_err(|error| error.to_string())
    }
}

fn print_hints(hbase: &HBase) -> Result<(), Error> {
    let figures = figures(hbase.start_time(), hbase.resident_bytes());
    eprintln!("{figures} Ctrl-C stops it; the log is {}", hbase.log_file().display());
    eprintln!("Thrift 2 framed: {}; Thrift 1: {}", hbase.gateway(1)?, hbase.gateway(2)?);
    let control = hbase.control_address();
    eprintln!("commands: echo region-servers | nc {} {}", control.ip(), control.port());
    eprintln!("  region-servers, add-region-server, abort-region-server SERVER, balance,");
    eprintln!("  regions TABLE, split TABLE KEY, move REGION SERVER, flush TABLE, compact TABLE,");
    eprintln!("  disable TABLE, enable TABLE; a TABLE is NAMESPACE:NAME, bytes are written \\x00");
    Ok(())
}

fn loopback(text: &str) -> Result<Ipv4Addr, String> {
    match text.parse::<Ipv4Addr>() {
        Ok(address) if address.is_loopback() => Ok(address),
        _ => Err("not an address in 127.0.0.0/8".into()),
    }
}

fn wait_for_interrupt(mut check_running: impl FnMut() -> Result<(), Error>) -> Result<(), String> {
    let (interrupt, interrupted) = mpsc::channel();
    ctrlc::set_handler(move || {
        // A second Ctrl-C finds nobody listening.
        let _ = interrupt.send(());
    })
    .map_err(|error| format!("Ctrl-C cannot be caught: {error}"))?;
    loop {
        match interrupted.recv_timeout(Duration::from_millis(500)) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => check_running().map_err(|error| error.to_string())?,
        }
    }
}
