//! The embedded backend of Peristyle: tables in a folder, on the LSM engine [fjall], in the process.
//!
//! - **Durable**: an acknowledged write survives `kill -9` and a power loss, see [`Durability`] for less. Writers that wait at
//!   the same time share one flush to the disk.
//! - **The rules of Cassandra** for write times, deletes and times to live. What is expired or deleted is dropped when tables
//!   are compacted, a delete not before the [grace](EmbeddedConfig::tombstone_grace) is over.
//! - **One process at a time**: a second one gets [`ErrorKind::Locked`](peristyle_core::ErrorKind::Locked).
//! - **Disk full** is [`ErrorKind::DiskFull`](peristyle_core::ErrorKind::DiskFull): the writes under way are in doubt, later
//!   ones are refused, reads go on, and the folder can be opened again once there is space.
//!
//! ```
//! use peristyle_core::Backend;
//! use peristyle_embedded::{Embedded, EmbeddedConfig};
//!
//! let engine = Embedded::open(&EmbeddedConfig::temporary())?;
//! assert!(engine.capabilities().has(peristyle_core::Capability::SnapshotPage));
//! # Ok::<(), peristyle_core::Error>(())
//! ```

mod backend;
mod codec;
mod config;
mod engine;
mod error;
mod read;
mod schema;

pub use crate::backend::{Embedded, NativeDatabase};
pub use crate::config::{Durability, EmbeddedConfig};
