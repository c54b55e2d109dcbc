//! Layers: each does one thing on the way of a request, on any `tower` service of [`Request`](crate::Request).
//!
//! Their order is set in one place, [`ClientBuilder::build`](crate::client::ClientBuilder::build). Outermost first:
//!
//! observe → deadline → check → salt → rate limit → route → retry → attempt timeout → hedge → batch → concurrency limit → circuit → observe →
//! backend
//!
//! The first `observe` sees what the application sees, queues and pauses included. Below the deadline everything counts; below
//! the check nothing is wrong in itself. The rate limit counts what was asked for, the concurrency limit what is on the wire;
//! between them stand the layers that add requests, each with a [`Budget`]. What is held by [endpoint](crate::Endpoint), budgets, limits
//! and circuits, stands below the route, which gives each request the endpoint that it goes to; retry and hedge choose another one. A [fault](FaultLayer) layer goes on top of the
//! backend, with [`ClientBuilder::layer`](crate::client::ClientBuilder::layer).
//!
//! A layer that can be off is so by itself (`off()`), rather than wrapped in an `Either`: the type of the stack grows with each
//! layer by one, not by a factor of two, and a layer that is off costs a branch.
#![expect(
    clippy::inline_always,
    reason = "calls that are one function move the request once, not once per layer: measured, 80 ns of 350"
)]

pub mod attempt_timeout;
pub mod autopilot;
pub mod batch;
mod budget;
pub mod check;
pub mod circuit;
pub mod concurrency;
pub mod deadline;
pub mod fault;
pub mod hedge;
pub mod names;
pub mod observe;
pub(crate) mod places;
pub mod rate_limit;
#[cfg(test)]
pub(crate) mod recorder;
pub mod retry;
pub mod route;
pub mod salt;
#[cfg(test)]
mod testing;
mod waiting;

pub use self::attempt_timeout::{AttemptTimeout, AttemptTimeoutLayer};
pub use self::autopilot::Autopilot;
pub use self::batch::{Batch, BatchLayer};
pub use self::budget::Budget;
pub use self::check::{Check, CheckLayer};
pub use self::circuit::{Circuit, CircuitLayer, CircuitPolicy};
pub use self::concurrency::{Concurrency, ConcurrencyLayer};
pub use self::deadline::{Deadline, DeadlineLayer};
pub use self::fault::{Fault, FaultLayer, FaultPlan, Faulty, When};
pub use self::hedge::{HedgeLayer, Hedged};
pub use self::observe::{Observe, ObserveLayer};
pub use self::rate_limit::{RateLimit, RateLimitLayer};
pub use self::retry::{RetryLayer, RetryPolicy, RetryService};
pub use self::route::{Route, RouteLayer};
pub use self::salt::{SaltFuture, SaltLayer, Salted};

#[cfg(test)]
mod tests;
