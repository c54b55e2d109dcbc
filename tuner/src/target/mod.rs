//! What is measured: a live database behind a URI, or a simulated one.

mod live;
mod measurement;
mod session;
pub(crate) mod sim;
mod uri;

use std::time::Duration;

pub(crate) use self::live::LiveTarget;
pub(crate) use self::measurement::{Measurement, Schedule};
pub(crate) use self::session::Session;
pub(crate) use self::uri::TargetUri;
use crate::load::Live;
use crate::search::Probe;

/// Something that can be measured at a point.
pub(crate) trait Target {
    /// Measures one window, within the limit. What goes wrong is part of the measurement: it makes the point infeasible, and
    /// never ends the search.
    fn measure(&mut self, probe: &Probe, limit: Duration, watch: &dyn Fn(Live)) -> Measurement;

    /// How long it has run; a simulated target has a time of its own.
    fn spent(&self) -> Duration;

    /// What is to be known of it, in sentences.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Target for Box<dyn Target> {
    fn measure(&mut self, probe: &Probe, limit: Duration, watch: &dyn Fn(Live)) -> Measurement {
        (**self).measure(probe, limit, watch)
    }

    fn spent(&self) -> Duration {
        (**self).spent()
    }

    fn notes(&self) -> Vec<String> {
        (**self).notes()
    }
}
