//! What the server uses: one process of this machine, or a control group of several, as services and containers have it.

use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{TICKS_PER_SECOND, process_ticks};
use crate::stats::real;

/// Where the server is to be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerSource {
    /// A process.
    Process(u32),
    /// The folder of a control group, version 2, such as `/sys/fs/cgroup/system.slice/cassandra.service`.
    Group(PathBuf),
}

/// What the server used per second of a window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServerUse {
    /// Cores: 1 is one core all the time.
    pub(crate) cores: f64,
    /// Bytes of memory at the end: of a process those that are resident, of a group its page cache too.
    pub(crate) memory: u64,
    /// Bytes per second read from and written to disks.
    pub(crate) disk_read: f64,
    pub(crate) disk_written: f64,
}

/// The server at an instant, as the kernel counts it.
#[derive(Debug, Clone)]
pub(crate) struct ServerClock {
    source: ServerSource,
    at: Instant,
    counts: Counts,
}

/// What was used up to an instant.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counts {
    cpu_seconds: f64,
    memory: u64,
    read: u64,
    written: u64,
}

impl ServerSource {
    /// Its counters; `None` where there is no such process or group, or it may not be looked at.
    fn counts(&self) -> Option<Counts> {
        match self {
            Self::Process(pid) => of_process(*pid),
            Self::Group(folder) => of_group(folder),
        }
    }

    /// The source with its counters now; `None` where it can't be seen.
    pub(crate) fn clock(&self) -> Option<ServerClock> {
        Some(ServerClock { source: self.clone(), at: Instant::now(), counts: self.counts()? })
    }
}

impl ServerClock {
    /// The process of this number.
    pub(crate) fn now(pid: u32) -> Option<Self> {
        ServerSource::Process(pid).clock()
    }

    /// What was used since then.
    pub(crate) fn used(&self) -> Option<ServerUse> {
        let now = self.source.counts()?;
        let seconds = self.at.elapsed().as_secs_f64().max(f64::EPSILON);
        let per_second = |now: u64, then: u64| real(now.saturating_sub(then)) / seconds;
        Some(ServerUse {
            cores: (now.cpu_seconds - self.counts.cpu_seconds).max(0.0) / seconds,
            memory: now.memory,
            disk_read: per_second(now.read, self.counts.read),
            disk_written: per_second(now.written, self.counts.written),
        })
    }
}

/// From `/proc/PID`.
fn of_process(pid: u32) -> Option<Counts> {
    let file = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
    // Of another user's process the disks are not shown.
    let disks = file("io").unwrap_or_default();
    Some(Counts {
        cpu_seconds: real(process_ticks(&file("stat")?)?) / TICKS_PER_SECOND,
        memory: field(&file("status")?, "VmRSS:").unwrap_or_default() * 1024,
        read: field(&disks, "read_bytes:").unwrap_or_default(),
        written: field(&disks, "write_bytes:").unwrap_or_default(),
    })
}

/// From the files of a control group. Which of its controllers are on is the system's choice; the processor's time is always there.
fn of_group(folder: &std::path::Path) -> Option<Counts> {
    let file = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let disks = file("io.stat").unwrap_or_default();
    Some(Counts {
        cpu_seconds: real(field(&file("cpu.stat")?, "usage_usec")?) / 1e6,
        memory: file("memory.current").and_then(|text| text.trim().parse().ok()).unwrap_or_default(),
        read: of_devices(&disks, "rbytes="),
        written: of_devices(&disks, "wbytes="),
    })
}

/// The sum over the devices of `io.stat`, a line each.
fn of_devices(disks: &str, name: &str) -> u64 {
    disks.split_whitespace().filter_map(|word| word.strip_prefix(name)?.parse::<u64>().ok()).sum()
}

/// The number behind a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_seen_with_its_memory_and_one_that_is_not_there_is_not() {
        if cfg!(target_os = "linux") {
            let used = ServerClock::now(std::process::id()).unwrap().used().unwrap();
            assert!(used.memory > 1 << 20 && used.cores >= 0.0, "{used:?}");
        }
        assert!(ServerClock::now(u32::MAX).is_none());
        assert_eq!(field("a: 5 kB\nb: 7\n", "b:"), Some(7));
    }

    #[test]
    fn a_group_is_read_over_all_its_devices_and_without_the_controllers_that_are_off() {
        let folder = tempfile::tempdir().unwrap();
        let group = ServerSource::Group(folder.path().to_path_buf());
        assert!(group.clock().is_none());
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("cpu.stat", "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n");
        assert_eq!(group.counts(), Some(Counts { cpu_seconds: 2.5, ..Counts::default() }));
        write("memory.current", "4096\n");
        write("io.stat", "8:0 rbytes=100 wbytes=7 rios=1 wios=1 dbytes=0\n8:16 rbytes=23 wbytes=1\n");
        let then = group.clock().unwrap();
        assert_eq!(then.counts, Counts { cpu_seconds: 2.5, memory: 4096, read: 123, written: 8 });
        write("cpu.stat", "usage_usec 3500000\n");
        let used = then.used().unwrap();
        assert!(used.cores > 0.0 && used.memory == 4096 && used.disk_read == 0.0, "{used:?}");
    }
}
