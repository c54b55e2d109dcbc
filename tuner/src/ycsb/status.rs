//! Status lines, as YCSB writes them every ten seconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::series::two_digits;
use crate::stats::{real, whole};

/// How far a run is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    pub(super) elapsed: Duration,
    pub(super) operations: u64,
    /// Still to do, where there is an end.
    pub(super) left: u64,
}

/// A line, without what the measurements add: label and time (in UTC), seconds, operations, rate, time left.
pub(super) fn line(label: &str, now: SystemTime, progress: Progress, before: Progress) -> String {
    let (clock, seconds) = (clock(now), progress.elapsed.as_secs());
    let begin = format!("{label}{clock} {seconds} sec: {} operations; ", progress.operations);
    if progress.operations == 0 {
        return begin;
    }
    let stretch = progress.elapsed.saturating_sub(before.elapsed).as_secs_f64().max(0.001);
    let rate = real(progress.operations - before.operations) / stretch;
    let begin = format!("{begin}{} current ops/sec; ", two_digits(rate));
    if progress.left == 0 {
        return begin;
    }
    let overall = real(progress.operations) / progress.elapsed.as_secs_f64().max(0.001);
    format!("{begin}est completion in {}", left(whole((real(progress.left) / overall).ceil())))
}

/// `2026-11-30 21:05:07:042`.
fn clock(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let text = humantime::format_rfc3339_millis(UNIX_EPOCH + since).to_string();
    text.trim_end_matches('Z').replace('T', " ").replace('.', ":")
}

fn left(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let part = |number: u64, unit: &str| match number {
        0 => String::new(),
        1 => format!("1 {unit} "),
        _ => format!("{number} {unit}s "),
    };
    let mut text = part(days, "day") + &part(hours, "hour");
    if days == 0 {
        text.push_str(&part(minutes, "minute"));
    }
    if text.is_empty() {
        text = if seconds == 1 { "1 second ".into() } else { format!("{seconds} seconds ") };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_as_one_of_ycsb() {
        let progress = |seconds, operations, left| Progress { elapsed: Duration::from_secs(seconds), operations, left };
        let now = UNIX_EPOCH + Duration::from_millis(1_000_000_000_042);
        let text = line("x", now, progress(20, 3_000, 1_500), progress(10, 1_000, 3_500));
        assert_eq!(
            text,
            "x2001-09-09 01:46:40:042 20 sec: 3000 operations; 200 current ops/sec; est completion in 10 seconds "
        );
        assert!(line("", now, progress(0, 0, 9), progress(0, 0, 9)).ends_with("0 sec: 0 operations; "));
    }

    #[test]
    fn the_time_left_is_as_coarse_as_it_is_long() {
        assert_eq!(
            [1, 59, 61, 3_660, 90_061].map(left),
            ["1 second ", "59 seconds ", "1 minute ", "1 hour 1 minute ", "1 day 1 hour ",]
        );
    }
}
