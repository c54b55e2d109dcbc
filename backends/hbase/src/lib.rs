//! The HBase backend of Peristyle: typed tables through Thrift gateways.
//!
//! - **Rows** are `salt ‖ partition key ‖ clustering key`, in an encoding that keeps the order of the typed tuples, or in the
//!   layout of HBase's own `Bytes` for tables that other programs read and write. Columns are `family:qualifier`.
//! - **Timestamps** are the write times in microseconds, so that the write with the larger one wins, as everywhere; tables with
//!   raw keys have milliseconds, as other programs write them. Two clients that delete and put one row of such a table in the
//!   same millisecond leave it deleted. At equal write times the write that arrives last wins.
//! - **Times to live** end at the same instant on both kinds of tables, to the second.
//! - **Connections** carry one request at a time. One that timed out, was given up or got a strange reply is closed.
//! - **Declarations** are stored with tables, and checked when they are opened.

mod backend;
mod codec;
mod conditional;
mod config;
mod connection;
mod error;
mod mutation;
mod read;
mod schema;
mod store;
mod topology;
mod wire;
mod write;

pub use crate::backend::HBaseBackend;
pub(crate) use crate::backend::NAME;
pub use crate::config::{Api, DEFAULT_PORT, HBaseConfig, Protocol, Transport};
