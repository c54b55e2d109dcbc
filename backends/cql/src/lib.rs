//! The CQL backend.

mod backend;
mod batch;
mod codec;
mod config;
mod describe;
mod error;
mod part;
mod query;
mod read;
mod request;
mod schema;
mod segment;
mod session;
mod statement;
mod tls;
mod topology;
mod write;

pub use scylla::client::session::Session;

pub use self::backend::CqlBackend;
pub use self::config::{BatchGrouping, Compression, CqlConfig, DEFAULT_PORT, PoolPer, Secret, TlsVerify};
