//! `points.csv`: a line for every point, over all its windows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::figures::cpu;
use super::{Figures, Outcome, Window};
use crate::search::Purpose;
use crate::space::Point;

const HEADER: &str = "threads,io_threads,pool,batch,offered_per_s,windows,rows_per_s,ci95_lo,ci95_hi,p50_ms,p95_ms,p99_ms,errors,error_class,client_cpu,other_cpu\n";

impl Outcome {
    /// The text of `points.csv`. What is unknown is empty.
    pub(crate) fn csv(&self) -> String {
        // Rates are positive, and the bits of positive numbers have the order of the numbers.
        let mut points: BTreeMap<(Point, Option<u64>), Vec<&Window>> = BTreeMap::new();
        for window in self.windows.iter().filter(|window| window.trial.probe.purpose != Purpose::WarmUp) {
            points
                .entry((window.trial.probe.point, window.trial.probe.rate.map(f64::to_bits)))
                .or_default()
                .push(window);
        }
        let lines = points.iter().filter_map(|((point, _), windows)| line(*point, windows));
        HEADER.to_owned() + &lines.collect::<String>()
    }
}

fn line(point: Point, windows: &[&Window]) -> Option<String> {
    let figures = Figures::of(point, windows, None)?;
    let Point { threads, io_threads, pool, batch } = point;
    let rate = windows.first().and_then(|window| window.trial.probe.rate);
    let offered = rate.map(|rate| rate.to_string()).unwrap_or_default();
    let mut line =
        format!("{threads},{io_threads},{pool},{batch},{offered},{},{:.1}", windows.len(), figures.rows_per_s);
    let [lo, hi] = figures.ci95;
    let cell = |value: Option<f64>| value.map(|value| format!("{value:.4}")).unwrap_or_default();
    let [p50, p95, p99] = [figures.p50_ms, figures.p95_ms, figures.p99_ms].map(cell);
    let class = windows.iter().find_map(|window| window.measurement.cause()).unwrap_or_default();
    let cpu = cpu(windows);
    let (client, others) = (cell(cpu.map(|cpu| cpu.client)), cell(cpu.map(|cpu| cpu.others)));
    writeln!(line, ",{lo:.1},{hi:.1},{p50},{p95},{p99},{},{class},{client},{others}", figures.errors).ok()?;
    Some(line)
}
