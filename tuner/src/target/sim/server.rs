//! The law of a simulated server: everything that is true of it, without noise.

use crate::space::Point;

/// Cores of the simulated client's machine.
pub(crate) const CORES: u32 = 4;
/// What is left of the capacity after a collapse.
const COLLAPSED: f64 = 0.2;
/// How deep a dip is, and how wide, as the standard deviation of the logarithm of the concurrency.
const DIP: f64 = 0.25;
const DIP_WIDTH: f64 = 0.35;

/// How throughput depends on the requests in flight.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Curve {
    /// The Universal Scalability Law.
    Usl {
        /// Requests per second of one client.
        lambda: f64,
        /// Contention.
        sigma: f64,
        /// Coherency.
        kappa: f64,
    },
    /// Measured points, ascending; straight lines between them, flat outside.
    Table(Vec<(f64, f64)>),
}

impl Curve {
    /// Requests per second with so many in flight.
    pub(crate) fn at(&self, n: f64) -> f64 {
        match self {
            Self::Usl { lambda, sigma, kappa } => lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0)),
            Self::Table(points) => interpolate(points, n),
        }
    }
}

fn interpolate(points: &[(f64, f64)], n: f64) -> f64 {
    let after = points.iter().position(|(at, _)| *at >= n);
    let last = points.last().map_or(0.0, |it| it.1);
    let Some(after) = after else { return last };
    let right = points.get(after).copied().unwrap_or((n, last));
    match after.checked_sub(1).and_then(|before| points.get(before)) {
        // Below the first point throughput falls in proportion.
        None => right.1 * (n / right.0).min(1.0),
        Some(left) => left.1 + (right.1 - left.1) * (n - left.0) / (right.0 - left.0),
    }
}

/// A simulated server. What is `None` or zero is not there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Server {
    pub(crate) curve: Curve,
    /// The coefficient of variation of a window's throughput.
    pub(crate) cv: f64,
    pub(crate) seed: u64,
    /// Requests in flight that a connection carries; more wait in the client.
    pub(crate) streams: Option<f64>,
    /// Whether requests beyond the streams fail instead of waiting.
    pub(crate) streams_refuse: bool,
    pub(crate) nodes: f64,
    /// Microseconds of an io thread that a request takes.
    pub(crate) io_cost: Option<f64>,
    /// Requests in flight above which a share of them fails.
    pub(crate) errors_above: Option<f64>,
    pub(crate) error_rate: f64,
    pub(crate) error_class: String,
    /// The cost of a request and of each row in it, relative to each other.
    pub(crate) batch: Option<(f64, f64)>,
    /// Bytes of a request above which it fails.
    pub(crate) batch_fail_bytes: Option<f64>,
    pub(crate) row_bytes: f64,
    /// The share of capacity lost, and the second from which on.
    pub(crate) drift: Option<(f64, f64)>,
    /// The second of a standstill, and for how many.
    pub(crate) freeze: Option<(f64, f64)>,
    /// Seconds until the full capacity is reached, from half of it.
    pub(crate) warmup: f64,
    /// Requests in flight above which a fifth of the capacity is left.
    pub(crate) collapse_above: Option<f64>,
    /// Microseconds of the client's processor that a request takes.
    pub(crate) client_cpu: Option<f64>,
    /// The share of throughput that every other window lacks, by chance.
    pub(crate) bimodal: f64,
    /// Requests in flight around which throughput dips by a quarter.
    pub(crate) dip_at: Option<f64>,
    /// Requests per second above which they are refused.
    pub(crate) rate_limit: Option<f64>,
    pub(crate) zero_ops: bool,
}

impl Server {
    /// A server under the Universal Scalability Law, with nothing else.
    pub(crate) fn new(curve: Curve) -> Self {
        Self {
            curve,
            cv: 0.0,
            seed: 1,
            streams: None,
            streams_refuse: false,
            nodes: 1.0,
            io_cost: None,
            errors_above: None,
            error_rate: 0.01,
            error_class: "overloaded".into(),
            batch: None,
            batch_fail_bytes: None,
            row_bytes: 100.0,
            drift: None,
            freeze: None,
            warmup: 0.0,
            collapse_above: None,
            client_cpu: None,
            bimodal: 0.0,
            dip_at: None,
            rate_limit: None,
            zero_ops: false,
        }
    }

    /// Requests in flight that the connections carry, where they have a limit.
    pub(crate) fn carried(&self, point: Point) -> Option<f64> {
        self.streams.map(|streams| streams * f64::from(point.pool) * self.nodes)
    }

    /// Requests in flight at the server: what its connections carry.
    pub(crate) fn in_flight(&self, point: Point) -> f64 {
        f64::from(point.threads).min(self.carried(point).unwrap_or(f64::INFINITY))
    }

    /// Requests per second that are answered, failures included.
    pub(crate) fn requests_per_s(&self, point: Point) -> f64 {
        if self.zero_ops {
            return 0.0;
        }
        let n = self.in_flight(point);
        let dip = self.dip_at.map_or(1.0, |at| 1.0 - DIP * (-((n / at).ln() / DIP_WIDTH).powi(2) / 2.0).exp());
        let collapsed = if self.collapse_above.is_some_and(|above| n > above) { COLLAPSED } else { 1.0 };
        let served = self.curve.at(n) * dip * collapsed / self.request_cost(point);
        let carried = self.io_cost.map_or(f64::INFINITY, |micros| f64::from(point.io_threads) * 1e6 / micros);
        let made = self.client_cpu.map_or(f64::INFINITY, |micros| f64::from(CORES) * 1e6 / micros);
        served.min(carried).min(made)
    }

    /// The cost of a request with its rows, relative to one row alone.
    fn request_cost(&self, point: Point) -> f64 {
        self.batch.map_or(1.0, |(fixed, per_row)| (fixed + per_row * f64::from(point.batch)) / (fixed + per_row))
    }

    /// The share of requests that fail, with the class of their error.
    pub(crate) fn failing(&self, point: Point) -> Option<(f64, &str)> {
        let too_large = self.batch_fail_bytes.is_some_and(|most| f64::from(point.batch) * self.row_bytes > most);
        if too_large {
            return Some((1.0, "too_large"));
        }
        let rate = self.requests_per_s(point);
        if let Some(limit) = self.rate_limit.filter(|limit| rate > *limit) {
            return Some((1.0 - limit / rate, "throttled"));
        }
        let waiting = f64::from(point.threads) - self.in_flight(point);
        if self.streams_refuse && waiting > 0.0 {
            return Some((waiting / f64::from(point.threads), self.error_class.as_str()));
        }
        let above = self.errors_above.is_some_and(|above| self.in_flight(point) > above);
        above.then_some((self.error_rate, self.error_class.as_str()))
    }

    /// Rows per second of a point without errors, without noise; `None` where some fail or nothing is done. The oracle.
    pub(crate) fn rows_per_s(&self, point: Point) -> Option<f64> {
        let rows = self.requests_per_s(point) * f64::from(point.batch);
        (self.failing(point).is_none() && rows > 0.0).then_some(rows)
    }

    /// The share of the capacity that is there at a second of the run.
    pub(crate) fn capacity(&self, second: f64) -> f64 {
        let frozen = self.freeze.is_some_and(|(at, lasts)| (at..at + lasts).contains(&second));
        let drifted = self.drift.filter(|(_, from)| second >= *from).map_or(1.0, |(lost, _)| 1.0 - lost);
        let warm = if self.warmup > 0.0 { (0.5 + 0.5 * second / self.warmup).min(1.0) } else { 1.0 };
        if frozen { 0.0 } else { drifted * warm }
    }
}
