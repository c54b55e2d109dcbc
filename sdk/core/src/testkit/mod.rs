//! The contract suite and what tests of backends share.

pub mod arbitrary;
