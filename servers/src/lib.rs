//! Real servers for tests and benches, on loopback, with nothing to install but Java and Maven.
//!
//! [`Cassandra`] is one node of Apache Cassandra 5.0.6 and [`Ring`] several; [`HBase`] is Apache
//! HBase 2.6.1 with its Thrift gateways. They are fetched from Maven Central at first use (66 and
//! 84 MB) into a cache folder outside the repository: `$PERISTYLE_SERVERS`, or
//! `$XDG_CACHE_HOME/peristyle/servers`, or `~/.cache/peristyle/servers`. The first use also makes a
//! class-data archive, with which later starts take 2 to 4 s.
//!
//! ```no_run
//! use peristyle_servers::Cassandra;
//!
//! # fn main() -> Result<(), peristyle_servers::Error> {
//! let mut node = Cassandra::builder().durable().start()?;
//! let mut client = node.client()?;
//! client.query("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")?;
//! node.kill(); // SIGKILL, as a crash would
//! node.restart()?; // the same address and data
//! println!("{}", node.uri());
//! # Ok(())
//! # }
//! ```
//!
//! [`happybase`] gives a Python with the client that others' programs use, to show that both get along.
//!
//! Everything blocks; no runtime is needed.
//!
//! # What is left behind
//! Nothing. A server dies with its value, with the process that started it (even when that is killed
//! with SIGKILL: the kernel's parent-death signal, set through `setpriv`), and its folder goes too.
//! What a killed process could not remove, the next start removes.
//!
//! # Platform
//! Linux, with a development kit of Java 11, 17 or 21 (Cassandra needs the runtime only), Maven, and
//! `setpriv` of util-linux. Each server has an address of its own in `127.0.0.0/8`, so any number of
//! test runs share a machine.

mod address;
mod cache;
mod cassandra;
mod cds;
mod certificates;
mod daemon;
mod error;
mod hbase;
mod installation;
mod java;
mod jvm;
mod launcher;
mod maven;
mod process;
mod run_folder;

pub use cache::folder as cache_folder;
pub use cassandra::{CASSANDRA_VERSION, Cassandra, CassandraBuilder, Client, Login, Ring, Row};
pub use certificates::Certificates;
pub use error::Error;
pub use hbase::{Gateway, HBASE_VERSION, HBase, HBaseBuilder, Region, happybase};
pub use installation::Installation;
