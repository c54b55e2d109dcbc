//! Layers: each does one thing on the way of a request, on any `tower` service of [`Request`](crate::Request).
//!
//! Their order is set in one place, [`ClientBuilder::build`](crate::client::ClientBuilder::build): the deadline is outermost,
//! so that everything below counts; the check sits right under it, so that what can't work costs nothing.

pub mod check;
pub mod deadline;

pub use self::check::{Check, CheckLayer};
pub use self::deadline::{Deadline, DeadlineLayer};
