//! The backend against a real Cassandra: the one that `PERISTYLE_CQL=host:port` names, or one that is started here.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests fail by panic")]

mod failure;
mod paging;
mod routing;
mod schema;
mod security;
mod sharded;
mod support;
mod values;
mod writes;
