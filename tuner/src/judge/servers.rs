//! The servers whose answer is known.

use crate::failure::Result;
use crate::objective::Objective;
use crate::space::{Space, Span};
use crate::target::sim::{CORES, Curve, Server};

/// What is right to say of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    /// A knee near the oracle's best.
    Knee,
    /// That throughput still rises at the end of the range.
    NoPeak,
    /// That the server changed meanwhile.
    Unstable,
}

/// A server with the ranges in which it is searched.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) server: Server,
    pub(crate) space: Space,
    pub(crate) objectives: Vec<Objective>,
    pub(crate) right: Right,
}

/// `MySQL` 5.6.27 on a Xeon of four cores with eight threads (xaprb.com, 2015-11-12): flat from 8 clients on.
const MYSQL: [(f64, f64); 9] = [
    (1.0, 24_456.0),
    (2.0, 45_314.0),
    (4.0, 78_024.0),
    (8.0, 126_892.0),
    (16.0, 129_029.0),
    (32.0, 127_780.0),
    (64.0, 125_526.0),
    (128.0, 124_158.0),
    (256.0, 116_337.0),
];
/// BRL-CAD's ray tracer on an SGI Origin 2000, from the R package usl: it still rises at the last point.
pub(crate) const RAYTRACER: [(f64, f64); 11] = [
    (1.0, 20.0),
    (4.0, 78.0),
    (8.0, 130.0),
    (12.0, 170.0),
    (16.0, 190.0),
    (20.0, 200.0),
    (24.0, 210.0),
    (28.0, 230.0),
    (32.0, 260.0),
    (48.0, 280.0),
    (64.0, 310.0),
];

/// What differs from a server under the law with λ 1000, σ 0.05, κ 0.0005, by name; ranges of threads, pool and batch.
const VARIANTS: [(&str, &str, [&str; 3], Right); 18] = [
    ("A", "lambda=1000&sigma=0.05&kappa=0.0005", ["1..512", "1", "1"], Right::Knee),
    ("B", "lambda=5000&sigma=0.02&kappa=0.00002", ["1..512", "1", "1"], Right::Knee),
    ("C", "lambda=200&sigma=0.1&kappa=0.01", ["1..512", "1", "1"], Right::Knee),
    ("D, no peak", "lambda=1000&sigma=0.03&kappa=0", ["1..512", "1", "1"], Right::NoPeak),
    ("E", "lambda=1&sigma=0.02&kappa=0.02", ["1..512", "1", "1"], Right::Knee),
    ("Cisco", "lambda=995.649&sigma=0.026716&kappa=0.000769094", ["1..512", "1", "1"], Right::Knee),
    ("SPEC SDM91", "lambda=89.995&sigma=0.0277285&kappa=0.000104366", ["1..512", "1", "1"], Right::Knee),
    ("error onset", "errors_above=20", ["1..512", "1", "1"], Right::Knee),
    ("rare errors", "errors_above=20&error_rate=0.0005", ["1..512", "1", "1"], Right::Knee),
    ("two peaks", "kappa=0.0001&dip_at=56", ["1..512", "1", "1"], Right::Knee),
    ("collapse", "collapse_above=30", ["1..512", "1", "1"], Right::Knee),
    ("warm-up 20 s", "warmup=20", ["1..512", "1", "1"], Right::Knee),
    ("standstill", "freeze_at=20&freeze_for=3", ["1..512", "1", "1"], Right::Knee),
    ("drift 10 %", "drift=0.1&drift_at=45", ["1..512", "1", "1"], Right::Unstable),
    ("streams, 2-D", "streams=8&nodes=2", ["1..512", "1..8", "1"], Right::Knee),
    ("batch cliff, 2-D", "batch_fail_bytes=5000", ["1..512", "1", "1..256"], Right::Knee),
    ("streams, batch, 3-D", "streams=8&nodes=2&batch_fail_bytes=5000", ["1..512", "1..8", "1..256"], Right::Knee),
    ("all four axes", "streams=8&nodes=2&batch_fail_bytes=5000&io_cost=300", ["1..512", "1..8", "1..256"], Right::Knee),
];

/// Every case.
pub(crate) fn cases() -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (name, parameters, ranges, right) in VARIANTS {
        let server = Server::parse(&format!("sim://usl?{parameters}"), 1)?;
        cases.push(case(name, server, ranges, right));
    }
    let table = |points: &[(f64, f64)]| Server::new(Curve::Table(points.to_vec()));
    cases.push(case("MySQL, plateau", table(&MYSQL), ["1..256", "1", "1"], Right::Knee));
    cases.push(case("ray tracer, no peak", table(&RAYTRACER), ["1..64", "1", "1"], Right::NoPeak));
    let mut bound = case("A with p99 < 4 ms", Server::parse("sim://usl", 1)?, ["1..512", "1", "1"], Right::Knee);
    bound.objectives.extend("p99<4ms".parse());
    cases.push(bound);
    Ok(cases)
}

#[cfg(test)]
impl Case {
    /// A server that has a knee.
    pub(crate) fn knee(server: Server, space: Space) -> Self {
        Self { name: "test", server, space, objectives: Vec::new(), right: Right::Knee }
    }
}

fn case(name: &'static str, server: Server, ranges: [&str; 3], right: Right) -> Case {
    // The ranges stand above; one that didn't read would be a range of one.
    let [threads, pool, batch] = ranges.map(|range| range.parse().unwrap_or(Span::fixed(1)));
    let space = server.narrow(Space { threads, io_threads: Span::up_to(CORES), pool, batch, cores: CORES });
    Case { name, server, space, objectives: Vec::new(), right }
}
