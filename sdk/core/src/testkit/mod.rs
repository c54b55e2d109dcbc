//! The contract suite, random histories, and what tests of backends share. Feature `testkit`.
//!
//! Cases are plain functions over a [`Fixture`], gated by what the backend can do. They panic where the contract is broken.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "test code panics where the contract is broken"
)]

pub mod arbitrary;
mod cases;
mod fixture;
mod history;
mod recorder;
pub mod simulator;
#[cfg(feature = "testkit")]
mod suite;
pub mod values;

pub use self::cases::{Case, all as cases};
pub use self::fixture::Fixture;
pub use self::history::random_histories;
pub use self::recorder::Kept;
#[cfg(feature = "testkit")]
pub use self::suite::{Suite, is_required};
