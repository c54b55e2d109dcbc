//! Two results side by side, and which differences are more than chance.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::{Figures, Line, ResultFile, read};
use crate::failure::{Failure, Result};
use crate::search::Purpose;
use crate::space::Point;
use crate::stats::{Comparison, holm, paired, welch};

/// The chance of a false difference that is accepted.
const RISK: f64 = 0.05;

/// One figure of both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) first: Option<f64>,
    pub(crate) second: Option<f64>,
}

/// A point that both have measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Common {
    #[serde(flatten)]
    pub(crate) point: Point,
    /// The second's rows per second over the first's.
    pub(crate) ratio: f64,
    /// The chance of such a difference between equals, with all points that are compared taken into account.
    pub(crate) p: Option<f64>,
}

/// The comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Compared {
    pub(crate) first: Point,
    pub(crate) second: Point,
    /// The figures of the chosen points.
    pub(crate) columns: Vec<Column>,
    /// Rows per second of the chosen points.
    pub(crate) rows_per_s: Option<Comparison>,
    /// Every point that both have measured.
    pub(crate) common: Vec<Common>,
    /// The same points as pairs: whether the second is faster or slower throughout.
    pub(crate) throughout: Option<Comparison>,
    /// What speaks against a comparison.
    pub(crate) warnings: Vec<String>,
}

/// A folder's result with its journal.
struct Run {
    result: ResultFile,
    lines: Vec<Line>,
    chosen: Figures,
}

impl Run {
    fn read(folder: &Path) -> Result<Self> {
        let result = ResultFile::read(folder)?;
        let lines = read(folder)?;
        let chosen = result.chosen().cloned().ok_or_else(|| {
            Failure::input(format!("{} has no point to compare: {}", folder.display(), result.stop_reason))
        })?;
        Ok(Self { result, lines, chosen })
    }

    /// Rates by point of windows without errors.
    fn rates(&self) -> BTreeMap<Point, Vec<f64>> {
        let mut rates: BTreeMap<Point, Vec<f64>> = BTreeMap::new();
        for line in &self.lines {
            if line.probe.purpose != Purpose::WarmUp && line.errors.is_empty() && line.rows_per_s > 0.0 {
                rates.entry(line.probe.point).or_default().push(line.rows_per_s);
            }
        }
        rates
    }

    /// Rates of the windows that speak for the chosen point: the fresh ones, or all where there are none.
    fn fresh(&self) -> Vec<f64> {
        let here = |line: &&Line| line.probe.point == self.chosen.point && !line.partial;
        let rates = |wanted: &dyn Fn(&Line) -> bool| -> Vec<f64> {
            self.lines.iter().filter(here).filter(|line| wanted(line)).map(|line| line.rows_per_s).collect()
        };
        let fresh = rates(&|line| line.probe.purpose == Purpose::Confirm);
        if fresh.len() > 1 { fresh } else { rates(&|line| line.probe.purpose != Purpose::WarmUp) }
    }
}

/// Compares the results of two folders.
pub(crate) fn compare(first: &Path, second: &Path) -> Result<Compared> {
    let (first, second) = (Run::read(first)?, Run::read(second)?);
    let (rates, other) = (first.rates(), second.rates());
    let both: Vec<(Point, &Vec<f64>, &Vec<f64>)> =
        rates.iter().filter_map(|(point, rates)| Some((*point, rates, other.get(point)?))).collect();
    let compared: Vec<Option<Comparison>> = both.iter().map(|(_, a, b)| welch(a, b)).collect();
    let raised = holm(&compared.iter().flatten().map(|it| it.p).collect::<Vec<_>>());
    let mut raised = raised.into_iter();
    let common = both.iter().zip(&compared).map(|((point, a, b), compared)| Common {
        point: *point,
        ratio: mean(b) / mean(a),
        p: compared.as_ref().and_then(|_| raised.next()),
    });
    let common = common.collect();
    let means: (Vec<f64>, Vec<f64>) = both.iter().map(|(_, a, b)| (mean(a), mean(b))).unzip();
    Ok(Compared {
        first: first.chosen.point,
        second: second.chosen.point,
        columns: columns(&first, &second),
        rows_per_s: welch(&first.fresh(), &second.fresh()),
        common,
        throughout: paired(&means.0, &means.1),
        warnings: warnings(&first.result, &second.result),
    })
}

impl Compared {
    /// The verdict in a sentence.
    pub(crate) fn verdict(&self) -> String {
        let Some(compared) = &self.rows_per_s else {
            return "too few windows to say whether they differ".into();
        };
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let [lo, hi] = compared.ci95.map(percent);
        if compared.is_different() {
            let than = if compared.ratio > 1.0 { "faster" } else { "slower" };
            format!(
                "the second is {:.1} % {than} ({lo:+.1} to {hi:+.1} %, p = {:.2e})",
                percent(compared.ratio).abs(),
                compared.p
            )
        } else {
            format!(
                "no difference that chance doesn't explain ({lo:+.1} to {hi:+.1} %); one of {:.1} % would show in four of five \
                 comparisons like this",
                compared.detectable * 100.0
            )
        }
    }

    /// The points that differ by more than chance.
    pub(crate) fn different(&self) -> impl Iterator<Item = &Common> {
        self.common.iter().filter(|common| common.p.is_some_and(|p| p < RISK))
    }
}

fn columns(first: &Run, second: &Run) -> Vec<Column> {
    type Pick = fn(&Figures) -> Option<f64>;
    let picks: [(&'static str, Pick); 13] = [
        ("rows/s", |it| Some(it.rows_per_s)),
        ("p50 ms", |it| it.p50_ms),
        ("p90 ms", |it| it.p90_ms),
        ("p95 ms", |it| it.p95_ms),
        ("p99 ms", |it| it.p99_ms),
        ("APDEX", |it| it.apdex),
        ("errors", |it| Some(crate::stats::real(it.errors))),
        ("server CPU %", |it| it.server.map(|server| server.cores * 100.0)),
        ("rows/s per 1 % CPU", |it| it.rows_per_cpu_percent),
        ("server memory MB", |it| it.server.map(|server| crate::stats::real(server.memory) / 1e6)),
        ("disk read B/s", |it| it.server.map(|server| server.disk_read)),
        ("disk written B/s", |it| it.server.map(|server| server.disk_written)),
        ("requests in flight", |it| it.in_flight),
    ];
    let column =
        |(name, pick): (&'static str, Pick)| Column { name, first: pick(&first.chosen), second: pick(&second.chosen) };
    let mut columns: Vec<Column> = picks.into_iter().map(column).collect();
    let amplification = |name, pick: fn(&Figures) -> Option<f64>| {
        let of = |run: &Run| Some(pick(&run.chosen)? / (run.result.row_bytes? * run.chosen.rows_per_s));
        Column { name, first: of(first), second: of(second) }
    };
    columns.push(amplification("read amplification", |it| it.server.map(|server| server.disk_read)));
    columns.push(amplification("write amplification", |it| it.server.map(|server| server.disk_written)));
    columns.retain(|column| column.first.is_some() || column.second.is_some());
    columns
}

fn warnings(first: &ResultFile, second: &ResultFile) -> Vec<String> {
    let mut warnings = Vec::new();
    if first.workload != second.workload {
        warnings.push(format!("the workloads differ: {} and {}", first.workload, second.workload));
    }
    if first.environment.cores != second.environment.cores {
        warnings.push("the clients have different numbers of cores".into());
    }
    for (name, result) in [("first", first), ("second", second)] {
        if result.verdict == crate::search::Verdict::Unstable {
            warnings.push(format!("the {name} is unstable: {}", result.stop_reason));
        }
    }
    warnings
}

fn mean(rates: &[f64]) -> f64 {
    super::model::mean(rates)
}
