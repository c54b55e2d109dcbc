//! The judgement of the search: simulated servers with a known answer, beside the searches of other tools.

mod baselines;
mod servers;
mod table;
mod trial;

pub(crate) use self::servers::cases;
pub(crate) use self::table::{header, judge};
