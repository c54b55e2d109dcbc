//! YCSB without Java: its properties, its core workload and its results, on the SDK.

mod client;
mod export;
mod generator;
mod keys;
mod known;
mod measurement;
mod options;
mod properties;
mod random;
mod series;
mod status;
mod sweep;
mod target;
mod watch;
mod worker;
mod workload;

pub(crate) use self::client::{Job, Outcome};
pub(crate) use self::known::warnings;
pub(crate) use self::measurement::{Measuring, overall};
pub(crate) use self::options::{Options, Phase};
pub(crate) use self::sweep::{Swept, workload};
pub(crate) use self::target::Database;
pub(crate) use self::workload::Core;
