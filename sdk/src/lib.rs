#![doc = include_str!("docs/lib.md")]

mod connect;
mod settings;
mod tuned;

pub use peristyle_core::*;
#[cfg(feature = "cql")]
pub use peristyle_cql as cql;
#[cfg(feature = "embedded")]
pub use peristyle_embedded as embedded;
#[cfg(feature = "hbase")]
pub use peristyle_hbase as hbase;

pub use self::connect::connect;
pub use self::tuned::Tuned;

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
