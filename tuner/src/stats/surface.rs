//! A response surface: how a rate depends on several settings at once, near its best (Box and Wilson 1951).

use argmin::core::{CostFunction, Error, Executor};
use argmin::solver::neldermead::NelderMead;

use super::real_len;

/// Measured points beyond the unknowns of a surface, at the least.
const SPARE: usize = 2;
/// What holds coefficients of which nothing is known at zero, relative to a point's weight.
const RIDGE: f64 = 1e-4;
/// When a simplex has converged.
const TOLERANCE: f64 = 1e-9;
const STEPS: u64 = 400;

/// A second-order polynomial of the logarithms, base 2, of the settings; its value is the logarithm of the rate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Surface {
    coefficients: Vec<f64>,
    /// What lies between the points that it was fitted to: it is never asked beyond them.
    bounds: Vec<[f64; 2]>,
}

impl Surface {
    /// Fits settings with their rates by least squares. `None` with too few points, or where they don't agree on how many settings
    /// there are.
    pub(crate) fn fit(points: &[(Vec<f64>, f64)]) -> Option<Self> {
        let axes = points.first()?.0.len();
        let logarithms: Vec<(Vec<f64>, f64)> =
            points.iter().map(|(at, rate)| (at.iter().map(|it| it.log2()).collect(), rate.ln())).collect();
        let rows: Vec<Vec<f64>> = logarithms.iter().map(|(at, _)| terms(at)).collect();
        let unknowns = terms(&vec![0.0; axes]).len();
        if points.len() < unknowns + SPARE || rows.iter().any(|row| row.len() != unknowns) {
            return None;
        }
        let bounds = (0..axes).map(|axis| {
            let values = logarithms.iter().filter_map(|(at, _)| at.get(axis).copied());
            values.fold([f64::INFINITY, f64::NEG_INFINITY], |[lo, hi], it| [lo.min(it), hi.max(it)])
        });
        let bounds = bounds.collect();
        let rates: Vec<f64> = logarithms.iter().map(|it| it.1).collect();
        Some(Self { coefficients: least_squares(&rows, &rates)?, bounds })
    }

    /// The logarithm of the rate at the logarithms of settings, or of the nearest within the bounds.
    fn at(&self, place: &[f64]) -> f64 {
        let within: Vec<f64> = place.iter().zip(&self.bounds).map(|(at, [lo, hi])| at.clamp(*lo, *hi)).collect();
        terms(&within).iter().zip(&self.coefficients).map(|(term, by)| term * by).sum()
    }

    /// The settings with the highest rate that a simplex finds from these on, within the bounds.
    pub(crate) fn peak(&self, from: &[f64]) -> Option<Vec<f64>> {
        let start: Vec<f64> = from.iter().map(|it| it.log2()).collect();
        let corner = |axis: usize| {
            let mut corner = start.clone();
            if let (Some(at), Some([lo, hi])) = (corner.get_mut(axis), self.bounds.get(axis)) {
                *at += if *at + 1.0 > *hi && *at - 1.0 >= *lo { -1.0 } else { 1.0 };
            }
            corner
        };
        let simplex = std::iter::once(start.clone()).chain((0..start.len()).map(corner)).collect();
        let solver = NelderMead::new(simplex).with_sd_tolerance(TOLERANCE).ok()?;
        let done = Executor::new(self, solver).configure(|state| state.max_iters(STEPS)).run().ok()?;
        let found = done.state.best_param?;
        Some(found.iter().zip(&self.bounds).map(|(at, [lo, hi])| at.clamp(*lo, *hi).exp2()).collect())
    }
}

impl CostFunction for &Surface {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, place: &Vec<f64>) -> Result<f64, Error> {
        // Beyond the bounds it costs more the further it goes, so that the simplex comes back.
        let beyond: f64 =
            place.iter().zip(&self.bounds).map(|(at, [lo, hi])| (lo - at).max(at - hi).max(0.0).powi(2)).sum();
        Ok(beyond - self.at(place))
    }
}

/// One, each logarithm, and each product of two.
fn terms(place: &[f64]) -> Vec<f64> {
    let products = place.iter().enumerate().flat_map(|(i, a)| place.iter().skip(i).map(move |b| a * b));
    std::iter::once(1.0).chain(place.iter().copied()).chain(products).collect()
}

/// The coefficients with the least squares, from the normal equations by Gauss and Jordan.
fn least_squares(rows: &[Vec<f64>], values: &[f64]) -> Option<Vec<f64>> {
    let unknowns = rows.first()?.len();
    let ridge = RIDGE * real_len(rows.len());
    let mut equations: Vec<Vec<f64>> = (0..unknowns)
        .map(|i| {
            let own = |row: &Vec<f64>| row.get(i).copied().unwrap_or_default();
            let mut line: Vec<f64> = (0..unknowns)
                .map(|j| rows.iter().map(|row| own(row) * row.get(j).copied().unwrap_or_default()).sum())
                .collect();
            if let Some(diagonal) = line.get_mut(i).filter(|_| i > 0) {
                *diagonal += ridge;
            }
            line.push(rows.iter().zip(values).map(|(row, value)| own(row) * value).sum());
            line
        })
        .collect();
    for pivot in 0..unknowns {
        let line = equations.get(pivot)?.clone();
        let head = line.get(pivot).copied().filter(|head| head.abs() > f64::EPSILON)?;
        for (other, target) in equations.iter_mut().enumerate() {
            let factor = if other == pivot { 1.0 - 1.0 / head } else { target.get(pivot)? / head };
            for (cell, by) in target.iter_mut().zip(&line) {
                *cell -= factor * by;
            }
        }
    }
    equations.iter().map(|line| line.last().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hill in two settings with its top at 16 and 8, a little tilted.
    fn hill(a: f64, b: f64) -> f64 {
        let (x, y) = (a.log2() - 4.0, b.log2() - 3.0);
        1000.0 * (-0.05 * x * x - 0.08 * y * y - 0.03 * x * y).exp()
    }

    fn grid() -> Vec<(Vec<f64>, f64)> {
        let values = [1.0, 4.0, 32.0, 128.0];
        values.iter().flat_map(|a| values.iter().map(|b| (vec![*a, *b], hill(*a, *b)))).collect()
    }

    #[test]
    fn the_top_of_a_hill_is_found_between_what_was_measured() {
        let surface = Surface::fit(&grid()).unwrap();
        let top = surface.peak(&[4.0, 32.0]).unwrap();
        assert!((top[0] / 16.0 - 1.0).abs() < 0.05 && (top[1] / 8.0 - 1.0).abs() < 0.05, "{top:?}");
    }

    #[test]
    fn nothing_is_proposed_beyond_what_was_measured() {
        let rising: Vec<(Vec<f64>, f64)> = grid().into_iter().map(|(at, _)| (at.clone(), at[0] * at[1])).collect();
        let top = Surface::fit(&rising).unwrap().peak(&[4.0, 4.0]).unwrap();
        assert!(top.iter().all(|it| (100.0..=128.001).contains(it)), "{top:?}");
    }

    #[test]
    fn too_few_points_are_refused_and_a_flat_setting_is_no_harm() {
        assert_eq!(Surface::fit(&grid()[..7]), None);
        let flat: Vec<(Vec<f64>, f64)> =
            grid().into_iter().map(|(at, _)| (vec![at[0], 2.0], hill(at[0], 8.0))).collect();
        let top = Surface::fit(&flat).unwrap().peak(&[4.0, 2.0]).unwrap();
        assert!((top[0] / 16.0 - 1.0).abs() < 0.1 && (top[1] - 2.0).abs() < 1e-9, "{top:?}");
    }
}
