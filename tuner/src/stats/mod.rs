//! Means with confidence intervals, and when a window is steady.

mod estimate;
mod number;
mod steady;

pub(crate) use self::estimate::Estimate;
pub(crate) use self::number::{between, real, real_len, whole};
pub(crate) use self::steady::is_steady;
