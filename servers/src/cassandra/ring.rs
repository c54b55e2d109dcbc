//! Several nodes as one cluster.

use std::thread;
use std::time::{Duration, Instant};

use super::{Cassandra, CassandraBuilder};
use crate::Error;
use crate::address::{self, BLOCK};

const FORM_LIMIT: Duration = Duration::from_secs(90);

/// A cluster on neighbouring loopback addresses. Its nodes have the ports of the template.
///
/// ```no_run
/// # use peristyle_servers::{Cassandra, Ring};
/// # fn main() -> Result<(), peristyle_servers::Error> {
/// let places = [("dc1", "r1"), ("dc1", "r2"), ("dc1", "r3")];
/// let mut ring = Ring::start(&Cassandra::builder(), &places)?;
/// ring.node(2)?.kill(); // the others notice after about 20 s
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Ring {
    nodes: Vec<Cassandra>,
}

impl Ring {
    /// Starts one node per place (data center and rack) after the template, and waits until each
    /// sees all others up, at most 90 s after the last answered.
    ///
    /// Nodes start in parallel; three take about 10 s and 250 MiB each. A ring has at most 15.
    pub fn start(template: &CassandraBuilder, places: &[(&str, &str)]) -> Result<Ring, Error> {
        let count = u8::try_from(places.len()).unwrap_or(u8::MAX);
        if count == 0 || count > BLOCK {
            return Err(Error::Setting(format!("a ring has 1 to {BLOCK} nodes, not {count}")));
        }
        let installation = Cassandra::fetch()?;
        let first = address::allocate(count, &template.ports().all())?;
        let mut nodes = Vec::with_capacity(places.len());
        for (address, (center, rack)) in address::neighbours(first, count).zip(places) {
            let mut node = template.clone().address(address).place(center, rack).seed(first);
            if address != first {
                // How long a node that is no seed looks for one, which may still be starting.
                node = node.jvm_option("-Dcassandra.ring_delay_ms=20000");
            }
            let mut node = node.prepare(&installation)?;
            node.launch()?;
            nodes.push(node);
        }
        let mut ring = Ring { nodes };
        for node in &mut ring.nodes {
            node.wait_until_ready()?;
        }
        ring.wait_until_whole()?;
        Ok(ring)
    }

    /// Its nodes, in the order of the places.
    pub fn nodes(&self) -> &[Cassandra] {
        &self.nodes
    }

    /// One node, to kill or restart. A node keeps its place in the ring over a restart only if it
    /// is [durable](CassandraBuilder::durable).
    pub fn node(&mut self, index: usize) -> Result<&mut Cassandra, Error> {
        let count = self.nodes.len();
        self.nodes.get_mut(index).ok_or_else(|| Error::Setting(format!("node {index} of a ring of {count}")))
    }

    /// Waits until every node sees all others up and all have the same schema, at most 90 s: after
    /// a restart, and between a change of the schema and its first use.
    pub fn wait_until_whole(&self) -> Result<(), Error> {
        let peers = self.nodes.len() - 1;
        let deadline = Instant::now() + FORM_LIMIT;
        for node in &self.nodes {
            while !node.sees(peers).unwrap_or(false) {
                if Instant::now() > deadline {
                    return Err(node.failed(format!("it does not see its {peers} peers up and with its schema")));
                }
                thread::sleep(Duration::from_millis(100));
            }
        }
        Ok(())
    }
}
