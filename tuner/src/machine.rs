//! What the machine is and how busy it was.

mod server;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use self::server::{ServerClock, ServerSource, ServerUse};
use crate::stats::real;

/// The kernel's unit of processor time for programs: `USER_HZ`, 100 on every architecture that Rust's std has.
const TICKS_PER_SECOND: f64 = 100.0;

/// How many cores this process may use.
pub(crate) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

/// The processor time that this process has used, over all its threads; 0 where the kernel doesn't tell.
pub(crate) fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    Duration::from_secs_f64(real(process_ticks(&stat).unwrap_or_default()) / TICKS_PER_SECOND)
}

/// Shares of the whole machine's processor time, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct CpuShares {
    /// This process.
    pub(crate) client: f64,
    /// Everything else that ran on this machine; a server, where it is here.
    pub(crate) others: f64,
}

impl CpuShares {
    /// The mean of several.
    pub(crate) fn mean(shares: &[Self]) -> Option<Self> {
        let count = real(shares.len() as u64);
        let sum = |part: fn(&Self) -> f64| shares.iter().map(part).sum::<f64>() / count;
        (!shares.is_empty()).then(|| Self { client: sum(|it| it.client), others: sum(|it| it.others) })
    }
}

/// Processor time up to an instant, in the kernel's ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuClock {
    process: u64,
    busy: u64,
    total: u64,
}

impl CpuClock {
    /// Reads `/proc`; `None` where there is none.
    pub(crate) fn now() -> Option<Self> {
        let process = process_ticks(&std::fs::read_to_string("/proc/self/stat").ok()?)?;
        let (busy, total) = machine_ticks(&std::fs::read_to_string("/proc/stat").ok()?)?;
        Some(Self { process, busy, total })
    }

    /// The shares since then; `None` where less than a few ticks have passed.
    pub(crate) fn shares(&self) -> Option<CpuShares> {
        Self::now().and_then(|now| self.until(&now))
    }

    fn until(&self, now: &Self) -> Option<CpuShares> {
        let total = real(now.total.checked_sub(self.total).filter(|ticks| *ticks >= 4)?);
        let client = (real(now.process.saturating_sub(self.process)) / total).min(1.0);
        let busy = (real(now.busy.saturating_sub(self.busy)) / total).min(1.0);
        Some(CpuShares { client, others: (busy - client).max(0.0) })
    }
}

/// User and system time of `/proc/self/stat`: fields 14 and 15, counted behind the name, which may hold anything.
fn process_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

/// Busy and total time of all cores, from the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq,
/// steal. What a guest uses is within user.
fn machine_ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line.split_whitespace().take(8).filter_map(|field| field.parse().ok()).collect();
    let total: u64 = fields.iter().sum();
    let idle = fields.get(3)? + fields.get(4)?;
    Some((total - idle, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read_behind_any_process_name() {
        let stat = "1 (a ) b) S 4 5 6 7 8 9 10 11 12 13 100 20 0 0";
        assert_eq!(process_ticks(stat), Some(120));
        assert_eq!(machine_ticks("cpu  10 0 20 60 10 0 0 0 5 0\ncpu0 1"), Some((30, 100)));
        assert_eq!(machine_ticks("nonsense"), None);
    }

    #[test]
    fn what_is_not_the_client_is_the_others() {
        let then = CpuClock { process: 0, busy: 0, total: 0 };
        let shares = then.until(&CpuClock { process: 30, busy: 90, total: 100 }).unwrap();
        assert!((shares.client - 0.3).abs() < 1e-9 && (shares.others - 0.6).abs() < 1e-9, "{shares:?}");
        assert_eq!(then.until(&then), None);
    }
}
