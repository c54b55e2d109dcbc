//! The exhaustive grid of a simulated server without noise: the oracle.

use super::server::Server;
use crate::space::{Axis, Point, Space, Span};

/// Every point of a box with its true throughput.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    /// In the order of cost; `None` where requests fail.
    pub(crate) points: Vec<(Point, Option<f64>)>,
}

impl Grid {
    /// All points of the box.
    pub(crate) fn of(server: &Server, space: &Space) -> Self {
        let values = |axis: Axis| space.on(axis).lo()..=space.on(axis).hi();
        let mut points = Vec::new();
        for threads in values(Axis::Threads) {
            for io_threads in values(Axis::IoThreads) {
                for pool in values(Axis::Pool) {
                    points.extend(values(Axis::Batch).map(|batch| Point { threads, io_threads, pool, batch }));
                }
            }
        }
        Self { points: points.into_iter().map(|point| (point, server.rows_per_s(point))).collect() }
    }

    /// How many points a box has.
    pub(crate) fn len(space: &Space) -> u64 {
        Axis::ALL.into_iter().map(|axis| u64::from(space.on(axis).hi() - space.on(axis).lo()) + 1).product()
    }

    /// The point with the most rows per second; the cheapest of several.
    pub(crate) fn peak(&self) -> Option<(Point, f64)> {
        let feasible = self.points.iter().filter_map(|(point, rate)| Some((*point, (*rate)?)));
        feasible.reduce(|best, it| if it.1 > best.1 { it } else { best })
    }

    /// The cheapest point within this share of the peak.
    pub(crate) fn knee(&self, delta: f64) -> Option<(Point, f64)> {
        let enough = self.peak()?.1 * (1.0 - delta);
        self.points.iter().filter_map(|(point, rate)| Some((*point, (*rate)?))).find(|it| it.1 >= enough)
    }
}

impl Server {
    /// The box with the axes fixed for which the server has no parameter: there is nothing to find on them.
    pub(crate) fn narrow(&self, space: Space) -> Space {
        let keep = |span: Span, has: bool| if has { span } else { Span::fixed(span.lo()) };
        Space {
            io_threads: keep(space.io_threads, self.io_cost.is_some()),
            pool: keep(space.pool, self.streams.is_some()),
            batch: keep(space.batch, self.batch.is_some()),
            ..space
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::sim::server::Curve;

    fn space(threads: &str, pool: &str) -> Space {
        let [threads, pool] = [threads, pool].map(|text| text.parse().unwrap());
        Space { threads, io_threads: Span::fixed(1), pool, batch: "1..4".parse().unwrap(), cores: 4 }
    }

    #[test]
    fn the_oracle_knows_the_published_peaks() {
        // Closed form: N* = sqrt((1 - sigma) / kappa).
        for (lambda, sigma, kappa, threads, peak) in [
            (1000.0, 0.05, 0.0005, 44, 10_742.187_5),
            (5000.0, 0.02, 2e-5, 221, 173_404.054_987),
            (200.0, 0.1, 0.01, 9, 714.285_714),
            (1.0, 0.02, 0.02, 7, 3.571_429),
        ] {
            let server = Server::new(Curve::Usl { lambda, sigma, kappa });
            let grid = Grid::of(&server, &server.narrow(space("1..512", "1..4")));
            let (point, rate) = grid.peak().unwrap();
            assert_eq!(point.threads, threads);
            assert!((rate / peak - 1.0).abs() < 1e-6, "{rate}");
        }
        // Within 2 % from 33 on.
        let a = Server::new(Curve::Usl { lambda: 1000.0, sigma: 0.05, kappa: 0.0005 });
        assert_eq!(Grid::of(&a, &a.narrow(space("1..512", "1"))).knee(0.02).unwrap().0.threads, 33);
    }

    #[test]
    fn an_axis_without_a_parameter_is_fixed() {
        let plain = Server::parse("sim://usl", 1).unwrap();
        let narrowed = plain.narrow(space("1..8", "1..4"));
        assert!(narrowed.pool.is_fixed() && narrowed.batch.is_fixed() && !narrowed.threads.is_fixed());
        let streams = Server::parse("sim://usl?streams=8&batch_fixed=1", 1).unwrap();
        assert_eq!(streams.narrow(space("1..8", "1..4")), space("1..8", "1..4"));
        assert_eq!(Grid::len(&space("1..8", "1..4")), 128);
    }

    #[test]
    fn every_switch_has_its_known_answer() {
        let best = |uri: &str, space: Space| {
            let server = Server::parse(uri, 1).unwrap();
            Grid::of(&server, &server.narrow(space)).peak().unwrap().0
        };
        // Four streams a connection: threads beyond them wait in the client.
        let pool = best("sim://usl?streams=4&nodes=2", space("1..100", "1..4"));
        assert_eq!((pool.threads, pool.pool), (32, 4));
        assert_eq!(best("sim://usl?errors_above=20", space("1..100", "1")).threads, 20);
        assert_eq!(best("sim://usl?batch_fixed=1&batch_fail_bytes=250", space("1..100", "1")).batch, 2);
        assert_eq!(best("sim://usl?collapse_above=30", space("1..100", "1")).threads, 30);
        assert_eq!(best("sim://usl?rate_limit=5000", space("1..100", "1")).threads, 6);
        assert_eq!(best("sim://usl?client_cpu=1000", space("1..100", "1")).threads, 5);
        let server = Server::parse("sim://usl?zero_ops=true", 1).unwrap();
        assert!(Grid::of(&server, &space("1..9", "1")).peak().is_none());
    }
}
