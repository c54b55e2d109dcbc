//! The processor time of a client, from what the system counts for its process.

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::check::Results;

/// What Linux counts processor time in, whatever its clock does.
const TICKS_PER_SECOND: f64 = 100.0;
/// Where a process's own time stands in `/proc/PID/stat`, and that of children that have ended, counted from the name on.
const OWN: usize = 11;
const CHILDREN: usize = 13;

/// Microseconds per operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    whole: f64,
    /// Of the second half.
    warm: f64,
    rate: f64,
}

impl Cost {
    /// The median of each figure; zeros of none.
    pub(crate) fn median(costs: &[Self]) -> Self {
        let median = |figure: fn(&Self) -> f64| {
            let mut figures: Vec<f64> = costs.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures.get(figures.len() / 2).copied().unwrap_or_default()
        };
        Self { whole: median(|cost| cost.whole), warm: median(|cost| cost.warm), rate: median(|cost| cost.rate) }
    }

    /// As multiples of another.
    pub(crate) fn against(self, other: Self) -> String {
        format!("{:.2}× whole, {:.2}× warm", self.whole / other.whole, self.warm / other.warm)
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>8.1} {:>8.1} {:>8.0}", self.whole, self.warm, self.rate)
    }
}

/// Runs a client of YCSB's that writes a status line each second, and checks that all its operations went well.
pub(crate) fn measure(mut command: Command, operations: u32) -> Result<Cost, String> {
    let before = seconds("self", CHILDREN)?;
    let mut client = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let (stdout, stderr) = (client.stdout.take(), client.stderr.take());
    let results = std::thread::spawn(move || stdout.map(std::io::read_to_string));
    let mut samples = Vec::new();
    let mut told = Vec::new();
    for line in stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).lines()).map_while(Result::ok) {
        match operations_of(&line) {
            Some(done) => samples.push((done, seconds(&client.id().to_string(), OWN).unwrap_or_default())),
            None => told.push(line),
        }
    }
    let status = client.wait().map_err(|error| error.to_string())?;
    let results = results.join().ok().flatten().and_then(Result::ok).unwrap_or_default();
    if !status.success() {
        return Err(format!("ended with {status}\n{results}\n{}", told.join("\n")));
    }
    let results = Results::parse(&results);
    results.expect_done(operations)?;
    let whole = seconds("self", CHILDREN)? - before;
    Ok(Cost {
        whole: per_operation(whole, operations),
        warm: warm(&samples, operations).ok_or("the run is too short; give more --operations")?,
        rate: results.rate(),
    })
}

/// The cost of the second half, from what was done and the seconds spent at each second of the run.
fn warm(samples: &[(u32, f64)], operations: u32) -> Option<f64> {
    // The last line comes when all is done, with the end of the process in it.
    let (_, samples) = samples.split_last()?;
    let from = samples.iter().find(|(done, _)| *done >= operations / 2)?;
    let to = samples.last()?;
    (to.0 > from.0).then(|| per_operation(to.1 - from.1, to.0 - from.0))
}

fn per_operation(seconds: f64, operations: u32) -> f64 {
    seconds * 1e6 / f64::from(operations)
}

/// How many operations a status line tells of: `2026-01-01 00:00:00:000 2 sec: 13988 operations; …`.
fn operations_of(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once(" sec: ")?;
    rest.split_once(" operations;")?.0.parse().ok()
}

/// The processor time of a process in seconds, in user and system mode together.
fn seconds(process: &str, place: usize) -> Result<f64, String> {
    let file = format!("/proc/{process}/stat");
    let text = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}; this needs Linux"))?;
    seconds_of(&text, place).ok_or_else(|| format!("{file} can't be read: {text}"))
}

fn seconds_of(stat: &str, place: usize) -> Option<f64> {
    // The name may have blanks and brackets of its own.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: Vec<f64> = fields.split(' ').skip(place).take(2).map_while(|ticks| ticks.parse().ok()).collect();
    (ticks.len() == 2).then(|| ticks.iter().sum::<f64>() / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines_of_ycsb_tell_operations() {
        let line =
            "2026-11-30 23:39:47:900 2 sec: 13988 operations; 6991.5 current ops/sec; est completion in 1 second";
        assert_eq!(operations_of(line), Some(13_988));
        assert_eq!(operations_of("DBWrapper: report latency for each error is false"), None);
    }

    #[test]
    fn processor_time_is_that_of_user_and_system_mode() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 2099 118302 9 52 150 50 30 20 20 0 1";
        assert_eq!((seconds_of(stat, OWN), seconds_of(stat, CHILDREN)), (Some(2.0), Some(0.5)));
        assert_eq!(seconds_of("7 (a) S 1", OWN), None);
    }

    #[test]
    fn the_first_half_and_the_end_of_the_process_are_no_part_of_the_warm_cost() {
        let samples = [(20, 9.0), (60, 10.0), (80, 10.002), (90, 10.003), (100, 20.0)];
        let cost = warm(&samples, 100).unwrap();
        assert!((cost - 100.0).abs() < 1e-6, "{cost}");
        assert_eq!(warm(&samples[..2], 100), None);
    }

    #[test]
    fn medians_are_of_each_figure() {
        let cost = |whole, warm| Cost { whole, warm, rate: 1.0 };
        let median = Cost::median(&[cost(3.0, 1.0), cost(1.0, 2.0), cost(2.0, 9.0)]);
        assert_eq!(median, cost(2.0, 2.0));
        assert_eq!(median.against(cost(4.0, 4.0)), "0.50× whole, 0.50× warm");
    }
}
