//! Statistics: pure functions, with published figures as tests.

mod bootstrap;
mod compare;
mod curve;
mod estimate;
mod number;
mod objective;
mod steady;
mod surface;
mod usl;

pub(crate) use self::bootstrap::bootstrap;
pub(crate) use self::compare::{Comparison, holm, paired, welch};
pub(crate) use self::curve::{apdex, in_flight, kneedle};
pub(crate) use self::estimate::Estimate;
pub(crate) use self::number::{between, real, real_len, whole};
pub(crate) use self::objective::{Met, judge};
pub(crate) use self::steady::steady_from;
pub(crate) use self::surface::Surface;
pub(crate) use self::usl::Usl;
