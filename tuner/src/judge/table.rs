//! Many searches of one case in one row, and whether they meet the bars.

use std::ops::RangeInclusive;

use super::baselines::BASELINES;
use super::servers::{Case, Right};
use super::trial::Fared;
use crate::search::{DELTA, Verdict};
use crate::space::Axis;
use crate::stats::{real, real_len, whole};
use crate::target::sim::Grid;

/// The share of searches that must give the right verdict.
const RIGHT: f64 = 0.95;
/// The share of recommended points that must lie within 5 % of the best.
const NEAR: f64 = 0.99;
/// The bias of the reported figures.
const BIAS: f64 = 0.003;
/// Windows behind each of them.
const FRESH: f64 = 5.0;
/// Searches from which on a share of intervals means something.
const FEW: usize = 20;
/// The share of confirming runs without an error.
const CLEAN: f64 = 0.995;

/// How the searches of a case with the same noise fared.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    cv: f64,
    right: Right,
    axes: usize,
    seeds: usize,
    loss: f64,
    bias: f64,
    covered: f64,
    near: f64,
    verdicts: f64,
    clean: f64,
    windows: usize,
    baselines: [f64; BASELINES.len()],
}

/// Runs a case with so many seeds. `None` if a search doesn't end, or the server has no answer.
pub(crate) fn judge(case: &Case, cv: f64, seeds: u64) -> Option<Row> {
    let grid = Grid::of(&case.server, &case.space);
    let best = if case.objectives.is_empty() {
        grid.peak()?.1
    } else {
        grid.points.iter().filter_map(|(point, _)| case.truth(*point)).fold(0.0, f64::max)
    };
    let fared: Vec<Fared> = (0..seeds).map(|seed| case.judge(cv, seed, best)).collect::<Option<_>>()?;
    Some(Row::of(case, cv, &fared))
}

impl Row {
    fn of(case: &Case, cv: f64, fared: &[Fared]) -> Self {
        let share = |good: &dyn Fn(&Fared) -> bool| share(fared.iter().map(good));
        let right = |it: &Fared| match case.right {
            Right::Knee => it.verdict == Verdict::KneeFound,
            Right::NoPeak => it.verdict == Verdict::NoPeakInRange,
            Right::Unstable => it.verdict == Verdict::Unstable,
        };
        let biases: Vec<f64> = fared.iter().filter_map(|it| it.bias).collect();
        Self {
            name: case.name,
            cv,
            right: case.right,
            axes: Axis::ALL.into_iter().filter(|axis| !case.space.on(*axis).is_fixed()).count(),
            seeds: fared.len(),
            loss: p95(fared.iter().map(|it| it.loss)),
            bias: biases.iter().sum::<f64>() / real_len(biases.len().max(1)),
            covered: self::share(fared.iter().filter_map(|it| it.covers)),
            near: share(&|it| it.loss <= 0.05),
            verdicts: share(&right),
            clean: share(&|it| it.errors == 0),
            windows: fared.iter().map(|it| it.windows).max().unwrap_or_default(),
            baselines: std::array::from_fn(|place| {
                p95(fared.iter().map(|it| it.baselines.get(place).copied().unwrap_or(1.0)))
            }),
        }
    }

    /// The bars that were missed, by name. Chance is allowed for where few seeds were run: two standard errors of a share.
    pub(crate) fn missed(&self) -> Vec<&'static str> {
        let slack = |bar: f64| 2.0 * (bar * (1.0 - bar) / real_len(self.seeds)).sqrt();
        let most = match self.axes {
            0 | 1 => 40,
            2 | 3 => 90,
            _ => 120,
        };
        let mut missed = Vec::new();
        let mut bar = |name, met: bool| {
            if !met {
                missed.push(name);
            }
        };
        bar("verdict", self.verdicts >= RIGHT - slack(RIGHT));
        bar("windows", self.windows <= most);
        bar("errors", self.clean >= CLEAN - slack(CLEAN));
        if self.right == Right::Knee {
            bar("loss", self.loss <= if self.cv > DELTA { 0.05 } else { 0.03 });
            bar("within 5 %", self.near >= NEAR - slack(NEAR));
            let chance = if self.seeds < FEW { 3.0 } else { 2.0 };
            let error = self.cv / (FRESH * real_len(self.seeds)).sqrt();
            bar("bias", self.bias.abs() <= BIAS.max(chance * error));
            let spread = slack(0.95);
            // Of a few intervals nobody can say how many of many hold the truth.
            bar("coverage", self.seeds < FEW || (0.92 - spread..=0.98 + spread).contains(&self.covered));
        }
        missed
    }

    /// The server and its noise.
    pub(crate) fn place(&self) -> String {
        format!("{}, cv {}", self.name, whole(self.cv()))
    }

    /// In percent, as all shares below.
    pub(crate) fn cv(&self) -> f64 {
        self.cv * 100.0
    }

    pub(crate) fn loss(&self) -> Option<f64> {
        self.of_knee(self.loss)
    }

    pub(crate) fn bias(&self) -> Option<f64> {
        self.of_knee(self.bias.abs())
    }

    pub(crate) fn covered(&self) -> Option<f64> {
        self.of_knee(self.covered)
    }

    pub(crate) fn near(&self) -> Option<f64> {
        self.of_knee(self.near)
    }

    pub(crate) fn clean(&self) -> f64 {
        self.clean * 100.0
    }

    /// The share of right verdicts, where this is the right one.
    pub(crate) fn right(&self, right: Right) -> Option<f64> {
        (self.right == right).then_some(self.verdicts * 100.0)
    }

    /// The most windows, where so many axes are searched.
    pub(crate) fn windows(&self, axes: RangeInclusive<usize>) -> Option<f64> {
        axes.contains(&self.axes).then(|| real_len(self.windows))
    }

    /// What is asked only of servers that have a knee.
    fn of_knee(&self, share: f64) -> Option<f64> {
        (self.right == Right::Knee).then_some(share * 100.0)
    }

    /// The row as text.
    pub(crate) fn text(&self) -> String {
        let percent = |share: f64| format!("{:.1}", share * 100.0);
        let baselines = self.baselines.map(|loss| format!("{:>9}", percent(loss))).concat();
        format!(
            "{:<20} {:>3} {:>6} {:>6} {:>6} {:>6} {:>7} {:>7}  {baselines}  {}",
            self.name,
            whole(self.cv * 100.0),
            percent(self.loss),
            format!("{:+.2}", self.bias * 100.0),
            percent(self.covered),
            percent(self.near),
            percent(self.verdicts),
            self.windows,
            self.missed().join(", ")
        )
    }
}

/// The heads of the columns.
pub(crate) fn header() -> String {
    let baselines = BASELINES.map(|(name, _)| format!("{name:>9}")).concat();
    format!(
        "{:<20} {:>3} {:>6} {:>6} {:>6} {:>6} {:>7} {:>7}  {baselines}  missed",
        "server", "cv", "loss", "bias", "cover", "in 5 %", "verdict", "windows"
    )
}

fn share(good: impl Iterator<Item = bool>) -> f64 {
    let (good, all) = good.fold((0, 0), |(good, all), it| (good + u64::from(it), all + 1));
    if all == 0 { 1.0 } else { real(good) / real(all) }
}

fn p95(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let place = (values.len() * 95).div_ceil(100).saturating_sub(1);
    values.get(place).copied().unwrap_or(1.0)
}
