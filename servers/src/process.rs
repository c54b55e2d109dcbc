//! A child process that cannot outlive this one.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Error;

/// Capabilities by bit, from `linux/capability.h`.
const CAP_SETPCAP: u32 = 8;
const CAP_IPC_LOCK: u32 = 14;

/// A running child; dropping it kills it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts a command made by [`tethered`], out of reach of the terminal's Ctrl-C.
    pub(crate) fn spawn(mut command: Command) -> io::Result<Process> {
        command.process_group(0);
        let (reply, answer) = mpsc::channel();
        let gone = |_| io::Error::other("the thread that starts servers has ended");
        spawner()?.send(Job { command, reply }).map_err(|_| gone(mpsc::RecvError))?;
        let child = answer.recv().map_err(gone)??;
        Ok(Process { child })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Asks it to end (SIGTERM), and kills it when the grace is over.
    pub(crate) fn stop(mut self, grace: Duration) -> io::Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let deadline = Instant::now() + grace;
        while self.child.try_wait()?.is_none() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it has already been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Job {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

/// The one thread that starts children. The kernel's parent-death signal fires when the *thread*
/// that forked ends, and a test's thread ends before its process does.
fn spawner() -> io::Result<&'static Sender<Job>> {
    static SPAWNER: OnceLock<Sender<Job>> = OnceLock::new();
    if let Some(jobs) = SPAWNER.get() {
        return Ok(jobs);
    }
    let (jobs, queue) = mpsc::channel::<Job>();
    thread::Builder::new().name("server-spawner".into()).spawn(move || {
        for mut job in queue {
            // An asker that is gone drops the answer, and the child goes on unwatched until the
            // process ends; askers wait, so there is none.
            let _ = job.reply.send(job.command.spawn());
        }
    })?;
    Ok(SPAWNER.get_or_init(|| jobs))
}

/// A command whose process is killed when this process ends in whatever way. It has no right to
/// lock memory either: as root, Cassandra would make its whole heap resident.
pub(crate) fn tethered() -> Command {
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig=KILL");
    let capabilities = effective_capabilities();
    let has = |bit: u32| capabilities & (1 << bit) != 0;
    if has(CAP_IPC_LOCK) && has(CAP_SETPCAP) {
        command.args(["--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"]);
    }
    command
}

/// What it means when such a command cannot be started.
#[expect(clippy::needless_pass_by_value, reason = "maps an error")]
pub(crate) fn no_setpriv(error: io::Error) -> Error {
    Error::Tool { problem: format!("setpriv cannot be run ({error})"), install: "util-linux" }
}

fn effective_capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

/// The resident memory of a process in bytes, from `/proc`.
pub(crate) fn resident_bytes(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Process {
        let mut command = tethered();
        command.args(["sleep", "600"]);
        Process::spawn(command).unwrap()
    }

    fn is_alive(id: u32) -> bool {
        fs::exists(format!("/proc/{id}")).unwrap()
    }

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let mut child = thread::spawn(sleeper).join().unwrap();
        assert!(child.ended().unwrap().is_none());
        assert!(resident_bytes(child.id()).unwrap() > 0);
    }

    #[test]
    fn a_dropped_child_is_gone() {
        let child = sleeper();
        let id = child.id();
        drop(child);
        assert!(!is_alive(id));
    }

    #[test]
    fn a_stopped_child_is_gone() {
        let child = sleeper();
        let id = child.id();
        child.stop(Duration::from_secs(10)).unwrap();
        assert!(!is_alive(id));
    }
}
