//! The CQL backend.

mod codec;
mod config;
mod error;
mod statement;

pub use self::config::{BatchGrouping, Compression, CqlConfig, DEFAULT_PORT, PoolPer, Secret, TlsVerify};
