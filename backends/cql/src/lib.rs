//! The CQL backend: Apache Cassandra, `ScyllaDB`, and any other server with version 4 of the CQL protocol, over the
//! `scylla` driver.
//!
//! ```no_run
//! use peristyle_cql::{CqlBackend, CqlConfig};
//!
//! # async fn example() -> peristyle_core::Result<()> {
//! let config = CqlConfig::from_uri("cql://127.0.0.1:9042/iot?datacenter=datacenter1")?;
//! let backend = CqlBackend::connect(config).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # How tables lie
//! They are ordinary tables, as `cqlsh` shows them: partition key, clustering key with its orders, one column for each value.
//! Every statement is prepared and names its columns. A put is an `UPDATE … USING TIMESTAMP`, so it leaves no row marker and
//! the row goes with its last column; a table without value columns, and a put of a key alone, is an `INSERT`. A put on the
//! condition that the row is absent is an `INSERT … IF NOT EXISTS`, which does leave a marker.
//!
//! # What the driver does not do here
//! Retries, speculative execution and timestamps belong to the layers above, so they are switched off. One call is one
//! attempt, or one for each statement that a page or a bulk write takes; each is bounded by the attempt timeout and the
//! request's deadline. An error of the server or of a connection names the node.
//!
//! # Where requests go
//! The layers choose a replica for each request on one partition, and the driver sends it there, to the connection of the shard that
//! owns the partition where nodes have shards. If that node can't be reached, or has no such partition, the driver chooses as it
//! does for scans: token-aware where there is a token, in turns else. The driver's view of the nodes is looked at once a second.
//!
//! # Raw CQL
//! [`CqlBackend::session`] is the driver's session, for what the contract doesn't cover. A user-defined aggregate:
//!
//! ```no_run
//! use peristyle_cql::{CqlBackend, CqlConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let backend = CqlBackend::connect(CqlConfig::new(["127.0.0.1"]).keyspace("iot")).await?;
//! let session = backend.session()?;
//! session
//!     .query_unpaged(
//!         "CREATE FUNCTION iot.longer(a text, b text) CALLED ON NULL INPUT RETURNS text LANGUAGE java \
//!          AS 'return a == null || (b != null && b.length() > a.length()) ? b : a;'",
//!         (),
//!     )
//!     .await?;
//! session.query_unpaged("CREATE AGGREGATE iot.longest(text) SFUNC longer STYPE text", ()).await?;
//! let answer = session.query_unpaged("SELECT iot.longest(value_string) FROM iot.property", ()).await?;
//! let (longest,) = answer.into_rows_result()?.single_row::<(Option<String>,)>()?;
//! println!("{longest:?}");
//! # Ok(())
//! # }
//! ```

mod backend;
mod batch;
mod codec;
mod config;
mod describe;
mod error;
mod fleet;
mod part;
mod pin;
mod query;
mod read;
mod recycle;
mod request;
mod schema;
mod scratch;
mod segment;
mod session;
mod spread;
mod statement;
mod tls;
mod topology;
mod write;

pub use scylla::client::session::Session;

pub use self::backend::CqlBackend;
pub use self::config::{BatchGrouping, Compression, CqlConfig, DEFAULT_PORT, PoolPer, Secret, TlsVerify};
