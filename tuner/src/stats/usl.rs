//! The Universal Scalability Law, fitted to a curve to explain it.

use argmin::core::{CostFunction, Error, Executor};
use argmin::solver::neldermead::NelderMead;

use super::real_len;

/// Distinct concurrencies that a fit needs.
const LEAST: usize = 4;
/// Below this a coefficient is at its bound, zero, for any number of clients that a search visits.
const AT_BOUND: f64 = 1e-7;

/// When a simplex has converged, on curves whose top is one.
const TOLERANCE: f64 = 1e-12;
/// How often a descent begins again where it ended.
const RESTARTS: u32 = 6;

/// X(N) = λN / (1 + σ(N−1) + κN(N−1)), after Gunther, *Guerrilla Capacity Planning* (2007).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Usl {
    /// Throughput of one.
    pub(crate) lambda: f64,
    /// Contention: the share of the work that queues for something shared, 0 to 1.
    pub(crate) sigma: f64,
    /// Coherency: the cost of each pair that must agree; 0 where the bound held the fit.
    pub(crate) kappa: f64,
    /// The standard deviation of what is left, relative to the mean throughput.
    pub(crate) residual: f64,
}

impl Usl {
    /// Fits the curve by least squares with σ in 0..1, κ ≥ 0 and λ > 0. `None` with fewer than four distinct concurrencies:
    /// three parameters go through any three points.
    pub(crate) fn fit(curve: &[(f64, f64)]) -> Option<Self> {
        let curve: Vec<(f64, f64)> =
            curve.iter().copied().filter(|(n, x)| *n >= 1.0 && *x > 0.0 && x.is_finite()).collect();
        let mut distinct: Vec<u64> = curve.iter().map(|(n, _)| n.to_bits()).collect();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() < LEAST {
            return None;
        }
        let most = curve.iter().map(|(n, _)| *n).fold(1.0, f64::max);
        // On a scale of one, so that one tolerance serves every curve.
        let top = curve.iter().map(|(_, x)| *x).fold(0.0, f64::max);
        let curve: Vec<(f64, f64)> = curve.into_iter().map(|(n, x)| (n, x / top)).collect();
        let problem = Problem { curve: &curve };
        // From the scale of the data: half of the work shared at the far end and a peak there, and nothing shared among pairs.
        let starts = [[(0.5 / most).sqrt(), 1.0 / most], [0.2, 0.0]];
        let fits = starts.into_iter().filter_map(|start| descend(&problem, start));
        let (_, [a, b]) = fits.min_by(|x, y| x.0.total_cmp(&y.0))?;
        let model = problem.model(a, b);
        Some(Self { lambda: model.lambda * top, ..model })
    }

    /// Its throughput at a concurrency.
    pub(crate) fn at(&self, n: f64) -> f64 {
        self.lambda * shape(n, self.sigma, self.kappa)
    }

    /// What σ and κ change in the logarithm of its throughput at a concurrency.
    pub(crate) fn slopes(&self, n: f64) -> [f64; 2] {
        let cost = 1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0);
        [-(n - 1.0) / cost, -n * (n - 1.0) / cost]
    }

    /// Where it is highest; `None` where κ is at its bound or nothing is shared: then there is no peak.
    pub(crate) fn peak(&self) -> Option<f64> {
        (self.kappa > 0.0 && self.sigma < 1.0).then(|| ((1.0 - self.sigma) / self.kappa).sqrt().max(1.0))
    }

    /// What it approaches but never passes where it has no peak (Amdahl's law); `None` where nothing is shared.
    pub(crate) fn limit(&self) -> Option<f64> {
        (self.kappa == 0.0 && self.sigma > 0.0).then(|| self.lambda / self.sigma)
    }
}

fn shape(n: f64, sigma: f64, kappa: f64) -> f64 {
    n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
}

/// The sum of squares as a function of √σ and √κ: squares keep the bounds without an edge that a simplex could leave. λ follows
/// from both in closed form.
struct Problem<'c> {
    curve: &'c [(f64, f64)],
}

impl Problem<'_> {
    fn model(&self, a: f64, b: f64) -> Usl {
        let (sigma, kappa) = ((a * a).min(1.0), b * b);
        let kappa = if kappa < AT_BOUND { 0.0 } else { kappa };
        let sigma = if sigma < AT_BOUND { 0.0 } else { sigma };
        let (mut product, mut square) = (0.0, 0.0);
        for (n, x) in self.curve {
            let shape = shape(*n, sigma, kappa);
            product += x * shape;
            square += shape * shape;
        }
        let model = Usl { lambda: product / square, sigma, kappa, residual: 0.0 };
        let count = real_len(self.curve.len());
        let mean = self.curve.iter().map(|(_, x)| x).sum::<f64>() / count;
        Usl { residual: (self.squares(&model) / (count - 3.0).max(1.0)).sqrt() / mean, ..model }
    }

    fn squares(&self, model: &Usl) -> f64 {
        self.curve.iter().map(|(n, x)| (x - model.at(*n)).powi(2)).sum()
    }
}

impl CostFunction for &Problem<'_> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, parameters: &Vec<f64>) -> Result<f64, Error> {
        let [a, b] = parameters[..] else { return Err(Error::msg("two parameters")) };
        // Beyond its bound σ costs more the further it goes, so that the simplex comes back.
        let beyond = (a * a - 1.0).max(0.0);
        Ok(self.squares(&self.model(a, b)) * (1.0 + beyond))
    }
}

/// Descends from a start, and from where that ended again, until nothing is gained: a simplex can collapse too early.
fn descend(problem: &Problem<'_>, start: [f64; 2]) -> Option<(f64, [f64; 2])> {
    let mut best = (f64::INFINITY, start);
    for _ in 0..RESTARTS {
        let [a, b] = best.1;
        let simplex = vec![vec![a, b], vec![a * 1.1 + 0.01, b], vec![a, b * 1.1 + 1e-3]];
        let solver = NelderMead::new(simplex).with_sd_tolerance(TOLERANCE).ok()?;
        let done = Executor::new(problem, solver).configure(|state| state.max_iters(200)).run().ok()?;
        let found = done.state.best_param?;
        let gained = best.0 - done.state.best_cost;
        if done.state.best_cost < best.0 {
            best = (done.state.best_cost, [*found.first()?, *found.get(1)?]);
        }
        if gained <= best.0 * TOLERANCE {
            break;
        }
    }
    best.0.is_finite().then_some(best)
}

#[cfg(test)]
#[path = "usl_vectors.rs"]
mod tests;
