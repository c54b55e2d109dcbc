//! What the metrics tell of a gateway's connections.

use std::fmt;
use std::sync::OnceLock;

use metrics::{Gauge, gauge};
use peristyle_core::Endpoint;
use peristyle_core::layers::names::{AVAILABLE_STREAMS, OPEN_CONNECTIONS};

use crate::backend::NAME;

/// The gauges of one gateway, looked up when they are first used.
pub(super) struct Gauges {
    pool: usize,
    open: OnceLock<Gauge>,
    available: OnceLock<Gauge>,
}

impl Gauges {
    /// Of a gateway with so many connections at a time.
    pub(super) fn new(pool: usize) -> Self {
        Self { pool, open: OnceLock::new(), available: OnceLock::new() }
    }

    /// Counts a connection as open.
    pub(super) fn open(&self, gateway: Endpoint) -> Counted {
        let open = || gauge!(OPEN_CONNECTIONS, "system" => NAME, "node" => gateway.name());
        Counted::new(self.open.get_or_init(open), 1.0)
    }

    /// Counts one of those that it takes at a time as taken.
    pub(super) fn busy(&self, gateway: Endpoint) -> Counted {
        let available = || {
            let gauge = gauge!(AVAILABLE_STREAMS, "system" => NAME, "node" => gateway.name());
            #[expect(clippy::cast_precision_loss, reason = "the size of a pool")]
            gauge.set(self.pool as f64);
            gauge
        };
        Counted::new(self.available.get_or_init(available), -1.0)
    }
}

impl fmt::Debug for Gauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gauges").field("pool", &self.pool).finish_non_exhaustive()
    }
}

/// A step of a gauge, taken back when it is dropped.
pub(super) struct Counted {
    gauge: Gauge,
    step: f64,
}

impl Counted {
    fn new(gauge: &Gauge, step: f64) -> Self {
        gauge.increment(step);
        Self { gauge: gauge.clone(), step }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.gauge.decrement(self.step);
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").field("step", &self.step).finish_non_exhaustive()
    }
}
