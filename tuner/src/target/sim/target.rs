//! A simulated server as the target of a run.

use std::time::Duration;

use super::server::Server;
use super::window::Order;
use crate::load::Live;
use crate::search::Probe;
use crate::stats::real;
use crate::target::{Measurement, Target};
use crate::workload::Workload;

/// What a window costs besides the part that is measured.
const WARM_UP: f64 = 0.25;

/// A server with a clock of its own, which stands still between windows.
#[derive(Debug)]
pub(crate) struct SimTarget {
    server: Server,
    operations: Vec<(&'static str, f64)>,
    /// When this run began, and what time it is, on the server's clock.
    begun: Duration,
    now: Duration,
    windows: u64,
}

impl SimTarget {
    /// A server with the operations of a workload, of which so many windows, up to this time, were measured before.
    pub(crate) fn new(server: Server, workload: &Workload, begun: Duration, windows: u64) -> Self {
        let total: u64 = workload.operations.iter().map(|operation| u64::from(operation.weight)).sum();
        let share = |weight: u32| real(weight.into()) / real(total.max(1));
        let operations = workload.operations.iter().map(|it| (it.kind.name(), share(it.weight))).collect();
        Self { server, operations, begun, now: begun, windows }
    }
}

impl Target for SimTarget {
    fn measure(&mut self, probe: &Probe, limit: Duration, _: &dyn Fn(Live)) -> Measurement {
        let warm_up = probe.window.mul_f64(WARM_UP);
        let window = probe.window.min(limit.saturating_sub(warm_up));
        self.windows += 1;
        self.now += warm_up;
        let order = Order {
            point: probe.point,
            window,
            from: self.now,
            number: self.windows,
            offered: probe.rate,
            operations: &self.operations,
        };
        self.now += window;
        let partial = window < probe.window;
        Measurement { warm_up, partial, ..self.server.measure(&order) }
    }

    fn spent(&self) -> Duration {
        self.now.saturating_sub(self.begun)
    }
}
