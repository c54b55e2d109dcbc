#![doc = include_str!("docs/lib.md")]

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
