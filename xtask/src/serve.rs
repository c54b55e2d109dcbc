//! A Cassandra in the foreground, for use by hand.

use std::net::Ipv4Addr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use clap::Args;
use peristyle_servers::Cassandra;

use crate::step::figures;

/// How the node is to run.
#[derive(Debug, Args)]
pub(crate) struct Serve {
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

impl Serve {
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
        eprintln!("{} Ctrl-C stops it; the log is {}", figures(&node), node.log_file().display());
        wait_for_interrupt(&mut node)?;
        node.stop().map_err(|error| error.to_string())
    }
}

fn loopback(text: &str) -> Result<Ipv4Addr, String> {
    match text.parse::<Ipv4Addr>() {
        Ok(address) if address.is_loopback() => Ok(address),
        _ => Err("not an address in 127.0.0.0/8".into()),
    }
}

fn wait_for_interrupt(node: &mut Cassandra) -> Result<(), String> {
    let (interrupt, interrupted) = mpsc::channel();
    ctrlc::set_handler(move || {
        // A second Ctrl-C finds nobody listening.
        let _ = interrupt.send(());
    })
    .map_err(|error| format!("Ctrl-C cannot be caught: {error}"))?;
    loop {
        match interrupted.recv_timeout(Duration::from_millis(500)) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                node.check_running().map_err(|error| error.to_string())?;
            }
        }
    }
}
