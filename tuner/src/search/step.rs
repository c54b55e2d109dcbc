//! A step in rates that were measured one after the other, by generalised least squares.

use crate::stats::real_len;

/// A share of a sum of weights below which nothing was measured.
const NOTHING: f64 = 1e-9;
/// How far the curve may be off at a point.
const OFF: f64 = 0.01;
/// Unknowns: level and both coefficients of the curve, and the step.
const UNKNOWNS: usize = 4;

/// The windows of one point: each with its number, and the logarithm of its rate, less what the curve says if it says anything.
pub(super) struct Group {
    pub(super) windows: Vec<(usize, f64)>,
    /// What the coefficients of the curve change there; `None` where nothing is known but the windows themselves.
    pub(super) slopes: Option<[f64; 2]>,
}

impl Group {
    /// Level and slopes.
    fn row(&self) -> [f64; 3] {
        self.slopes.map_or([1.0, 0.0, 0.0], |[sigma, kappa]| [1.0, sigma, kappa])
    }

    fn sum(&self) -> f64 {
        self.windows.iter().map(|it| it.1).sum()
    }
}

/// A step from one window on, as a difference of logarithms.
pub(super) struct Step {
    pub(super) split: usize,
    pub(super) size: f64,
    pub(super) error: f64,
    /// How far curve and step together are off.
    pub(super) misfit: f64,
}

/// The step that is most certain, among those at every window.
pub(super) fn most_certain(groups: &[Group], windows: usize, noise: f64) -> Option<Step> {
    let steps = (1..windows).filter_map(|split| step(groups, split, noise));
    steps.max_by(|a, b| (a.size.abs() / a.error).total_cmp(&(b.size.abs() / b.error)))
}

/// The step at one window, by generalised least squares with what the curve may be wrong in: the windows of a point share how far
/// it is off there.
fn step(groups: &[Group], split: usize, noise: f64) -> Option<Step> {
    let mut equations = Equations::default();
    for group in groups {
        equations.add(group, split, noise);
    }
    let (solution, variance) = equations.solve()?;
    let [.., size] = solution;
    (variance > 0.0).then(|| Step {
        split,
        size,
        error: noise * variance.sqrt(),
        misfit: misfit(groups, split, &solution, noise),
    })
}

/// How far the points of the curve are off with these coefficients and this step, beyond what noise explains.
fn misfit(groups: &[Group], split: usize, solution: &[f64; UNKNOWNS], noise: f64) -> f64 {
    let [.., size] = solution;
    let on_curve = groups.iter().filter(|group| group.slopes.is_some());
    let (mut squares, mut chance, mut count) = (0.0_f64, 0.0_f64, 0.0_f64);
    for group in on_curve {
        let n = real_len(group.windows.len());
        let after = real_len(group.windows.iter().filter(|it| it.0 >= split).count());
        let level: f64 = group.row().iter().zip(solution).map(|(slope, by)| slope * by).sum();
        squares += (group.sum() / n - level - size * after / n).powi(2);
        chance += noise * noise / n;
        count += 1.0;
    }
    let freedom = count * (1.0 - 4.0 / count).max(0.1);
    if count > 0.0 { (squares / freedom - chance / count).max(0.0).sqrt() } else { 0.0 }
}

/// The normal equations.
#[derive(Debug, Default)]
struct Equations {
    matrix: [[f64; UNKNOWNS]; UNKNOWNS],
    right: [f64; UNKNOWNS],
}

impl Equations {
    /// Adds the windows of a point, of which those after the step have it besides.
    fn add(&mut self, group: &Group, split: usize, noise: f64) {
        let after = group.windows.iter().filter(|it| it.0 >= split);
        let (all, late) = (real_len(group.windows.len()), real_len(after.clone().count()));
        // What the windows share is how far the curve is off there, or all there is to know.
        let shared = group.slopes.map_or(1.0 / all, |_| OFF * OFF / (noise * noise + all * OFF * OFF));
        let row = group.row();
        let totals: [f64; UNKNOWNS] = std::array::from_fn(|place| row.get(place).map_or(late, |slope| all * slope));
        let sums: [f64; UNKNOWNS] = std::array::from_fn(|place| {
            row.get(place).map_or(after.clone().map(|it| it.1).sum(), |slope| slope * group.sum())
        });
        for (i, (line, right)) in self.matrix.iter_mut().zip(&mut self.right).enumerate() {
            let (total, sum) = (totals.get(i).copied().unwrap_or_default(), sums.get(i).copied().unwrap_or_default());
            for (j, (cell, other)) in line.iter_mut().zip(totals).enumerate() {
                let product = match (row.get(i), row.get(j)) {
                    (Some(slope), Some(_)) => slope * other,
                    (Some(slope), None) => slope * late,
                    (None, _) => row.get(j).map_or(late, |slope| slope * late),
                };
                *cell += product - shared * total * other;
            }
            *right += sum - shared * total * group.sum();
        }
    }

    /// The unknowns, and the variance of the last one in squares of the noise. What nothing is known of is 0.
    fn solve(mut self) -> Option<([f64; UNKNOWNS], f64)> {
        let scale: [f64; UNKNOWNS] =
            std::array::from_fn(|i| self.matrix.get(i).and_then(|line| line.get(i)).copied().unwrap_or_default());
        let mut unit = [0.0, 0.0, 0.0, 1.0];
        for pivot in 0..UNKNOWNS {
            let line = *self.matrix.get(pivot)?;
            let (head, least) = (*line.get(pivot)?, NOTHING * scale.get(pivot)?);
            if head <= least.max(f64::MIN_POSITIVE) {
                if pivot == UNKNOWNS - 1 {
                    return None;
                }
                continue;
            }
            let (right, of_unit) = (*self.right.get(pivot)?, *unit.get(pivot)?);
            for other in 0..UNKNOWNS {
                if other == pivot {
                    continue;
                }
                let factor = self.matrix.get(other)?.get(pivot)? / head;
                for (cell, by) in self.matrix.get_mut(other)?.iter_mut().zip(line) {
                    *cell -= factor * by;
                }
                *self.right.get_mut(other)? -= factor * right;
                *unit.get_mut(other)? -= factor * of_unit;
            }
        }
        let diagonal = |i: usize| self.matrix.get(i).and_then(|line| line.get(i)).copied().unwrap_or_default();
        let over = |values: [f64; UNKNOWNS]| -> [f64; UNKNOWNS] {
            std::array::from_fn(|i| {
                let known = diagonal(i) > NOTHING * scale.get(i).copied().unwrap_or_default() && diagonal(i) > 0.0;
                if known { values.get(i).copied().unwrap_or_default() / diagonal(i) } else { 0.0 }
            })
        };
        let [.., variance] = over(unit);
        Some((over(self.right), variance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of a curve, two windows each: one early, one late.
    fn on_curve(level: f64, tilt: f64, size: f64) -> Vec<Group> {
        let group = |place: usize| {
            let slope = real_len(place);
            let rate = |window: usize| level + tilt * slope + if window >= 6 { size } else { 0.0 };
            let windows = [place, place + 6].map(|window| (window, rate(window))).to_vec();
            Group { windows, slopes: Some([slope, slope * slope]) }
        };
        (0..6).map(group).collect()
    }

    #[test]
    fn a_step_is_told_from_a_curve_that_is_off() {
        let found = most_certain(&on_curve(0.3, -0.02, -0.1), 12, 0.01).unwrap();
        assert_eq!(found.split, 6);
        assert!((found.size + 0.1).abs() < 1e-9 && found.misfit < 1e-9, "{}", found.size);
        // Twelve windows, half of them on each side: the error of a difference of two means.
        assert!((found.error - 0.01 / 3.0_f64.sqrt()).abs() < 1e-3, "{}", found.error);
        let none = most_certain(&on_curve(0.3, -0.02, 0.0), 12, 0.01).unwrap();
        assert!(none.size.abs() < 1e-9);
    }

    #[test]
    fn points_off_the_curve_are_compared_with_themselves_alone() {
        let alone = |windows: &[(usize, f64)]| Group { windows: windows.to_vec(), slopes: None };
        let groups = [alone(&[(0, 1.0), (2, 1.2)]), alone(&[(1, 7.0)]), alone(&[(3, -5.0)])];
        let found = step(&groups, 2, 0.01).unwrap();
        assert!((found.size - 0.2).abs() < 1e-9);
        assert!((found.error - 0.01 * 2.0_f64.sqrt()).abs() < 1e-9, "{}", found.error);
        // Before the first window and behind the last there is nothing to compare.
        assert!(step(&groups[1..], 2, 0.01).is_none());
    }

    #[test]
    fn a_curve_with_another_shape_is_a_misfit() {
        let mut groups = on_curve(0.0, 0.0, 0.0);
        for (place, group) in groups.iter_mut().enumerate() {
            group.windows.iter_mut().for_each(|window| window.1 += if place % 2 == 0 { 0.1 } else { -0.1 });
        }
        assert!(most_certain(&groups, 12, 0.01).unwrap().misfit > 0.05);
    }
}
