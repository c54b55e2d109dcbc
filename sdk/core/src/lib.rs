//! The model, the contract and the client of Peristyle.
//!
//! Applications depend on the crate `peristyle`, which re-exports what is here. Backends depend on this crate alone.

pub mod backend;
pub mod capability;
pub mod client;
pub mod clock;
pub mod codec;
pub mod declared;
pub mod endpoint;
pub mod error;
pub mod grouping;
pub mod layers;
pub mod memory;
pub mod merge;
pub mod model;
pub mod record;
pub mod request;
pub mod response;
pub mod setting;
pub mod streamer;
pub mod table;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod thread;
pub mod timer;

pub use crate::backend::{Backend, BackendService, LocalTopology, Owner, ResponseFuture, Topology};
pub use crate::capability::{Capabilities, Capability, Limits};
pub use crate::client::Client;
pub use crate::endpoint::{Endpoint, Endpoints};
pub use crate::error::{Attempt, Error, ErrorKind, Outcome, Result, Retry, TimeoutPhase};
pub use crate::grouping::Grouping;
pub use crate::request::Request;
pub use crate::response::Response;
pub use crate::streamer::Streamer;
pub use crate::table::Table;
