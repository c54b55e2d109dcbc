//! The three ways to write, side by side: one `put` for each row, `put_all`, the streamer.

mod plot;
mod write;

use std::time::Duration;

use serde::Serialize;

pub(crate) use self::plot::{bars, svg};
pub(crate) use self::write::Writer;
use crate::stats::{Estimate, real};

/// A way to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WritePath {
    Put,
    PutAll,
    Streamer,
}

impl WritePath {
    /// In the order in which they are shown.
    pub(crate) const ALL: [Self; 3] = [Self::Put, Self::PutAll, Self::Streamer];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::PutAll => "put_all",
            Self::Streamer => "streamer",
        }
    }
}

/// What one round of one path did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Round {
    pub(crate) applied: u64,
    pub(crate) failed: u64,
    /// From the first row to the last outcome.
    pub(crate) elapsed: Duration,
    /// Processor time of this process.
    pub(crate) cpu: Duration,
    /// A failure, in words.
    pub(crate) example: Option<String>,
}

/// The figures of a path over all its rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PathFigures {
    pub(crate) path: WritePath,
    pub(crate) rows_per_s: f64,
    /// The 95 % confidence interval of that, over the rounds.
    pub(crate) interval: [f64; 2],
    /// How many times the rows per second of single puts, round by round.
    pub(crate) times_put: f64,
    /// Microseconds of processor time of this process for each row; an engine in it is part of that.
    pub(crate) cpu_us_per_row: f64,
    pub(crate) failed: u64,
    pub(crate) example: Option<String>,
}

/// The figures of a path; `puts` are the rounds of single puts, in the same order.
pub(crate) fn figures(path: WritePath, rounds: &[Round], puts: &[Round]) -> PathFigures {
    let rates: Vec<f64> = rounds.iter().map(rate).collect();
    let times: Vec<f64> = rates.iter().zip(puts).map(|(own, put)| own / rate(put).max(f64::EPSILON)).collect();
    let applied: u64 = rounds.iter().map(|round| round.applied).sum();
    let cpu: Duration = rounds.iter().map(|round| round.cpu).sum();
    let estimate = Estimate::of_independent(&rates);
    PathFigures {
        path,
        rows_per_s: estimate.map_or(0.0, |it| it.mean),
        interval: estimate.map_or([0.0; 2], |it| it.interval()),
        times_put: Estimate::of_independent(&times).map_or(0.0, |it| it.mean),
        cpu_us_per_row: cpu.as_secs_f64() * 1e6 / real(applied.max(1)),
        failed: rounds.iter().map(|round| round.failed).sum(),
        example: rounds.iter().find_map(|round| round.example.clone()),
    }
}

fn rate(round: &Round) -> f64 {
    real(round.applied) / round.elapsed.as_secs_f64().max(f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(applied: u64, millis: u64, cpu_millis: u64) -> Round {
        let time = Duration::from_millis;
        Round { applied, elapsed: time(millis), cpu: time(cpu_millis), ..Round::default() }
    }

    #[test]
    fn paths_are_compared_round_by_round() {
        let puts = [round(100, 1_000, 10), round(50, 1_000, 5)];
        let own = [round(400, 1_000, 4), Round { failed: 3, ..round(200, 1_000, 2) }];
        let found = figures(WritePath::Streamer, &own, &puts);
        assert!((found.rows_per_s - 300.0).abs() < 1e-9 && (found.times_put - 4.0).abs() < 1e-9, "{found:?}");
        assert!((found.cpu_us_per_row - 10.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.failed, 3);
    }
}
