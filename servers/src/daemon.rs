//! A Java server in a process of its own, which can be started again, and the log of each start.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;
use crate::process::{self, Process};

/// Within this time of its launch a server answers, or has failed.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(90);
const STOP_GRACE: Duration = Duration::from_secs(30);
const LOG_TAIL: usize = 40;

/// A server's process, running or not. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Daemon {
    name: &'static str,
    address: SocketAddr,
    /// The path of its logs, but for `-N.log`.
    logs: PathBuf,
    process: Option<Process>,
    runs: u32,
    launched: Instant,
    start_time: Duration,
}

impl Daemon {
    /// `name` and `address` tell people which one it is.
    pub(crate) fn new(name: &'static str, address: SocketAddr, logs: PathBuf) -> Daemon {
        Daemon { name, address, logs, process: None, runs: 0, launched: Instant::now(), start_time: Duration::ZERO }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        process::resident_bytes(self.id()?)
    }

    /// How long the last start took, from the launch of the process until it was ready.
    pub(crate) fn start_time(&self) -> Duration {
        self.start_time
    }

    /// The log of the last start.
    pub(crate) fn log_file(&self) -> PathBuf {
        let mut file = self.logs.clone().into_os_string();
        file.push(format!("-{}.log", self.runs));
        file.into()
    }

    pub(crate) fn log(&self) -> Result<String, Error> {
        let file = self.log_file();
        fs::read_to_string(&file).map_err(Error::io(format!("reading {}", file.display())))
    }

    /// Starts the command with its output in a new log.
    pub(crate) fn launch(&mut self, mut command: Command) -> Result<(), Error> {
        self.runs += 1;
        let log = self.log_file();
        let doing = || Error::io(format!("writing {}", log.display()));
        let output = File::create(&log).map_err(doing())?;
        let errors = output.try_clone().map_err(doing())?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        self.launched = Instant::now();
        self.process = Some(Process::spawn(command).map_err(process::no_setpriv)?);
        Ok(())
    }

    /// Asks until the answer is good. A server that ends or is not ready in time is killed.
    pub(crate) fn wait_until_ready(&mut self, ask: impl Fn(SocketAddr) -> Result<(), Error>) -> Result<(), Error> {
        let reason = loop {
            if let Some(reason) = self.end_of_process()? {
                break reason;
            }
            let Err(unready) = ask(self.address) else {
                self.start_time = self.launched.elapsed();
                return Ok(());
            };
            if self.launched.elapsed() > START_LIMIT {
                break format!("no answer after {} s ({unready})", START_LIMIT.as_secs());
            }
            thread::sleep(Duration::from_millis(30));
        };
        self.kill();
        Err(self.failed(reason))
    }

    /// Fails, with the log's tail on standard error, if the server has ended by itself.
    pub(crate) fn check_running(&mut self) -> Result<(), Error> {
        match self.end_of_process()? {
            Some(reason) => Err(self.failed(reason)),
            None => Ok(()),
        }
    }

    fn end_of_process(&mut self) -> Result<Option<String>, Error> {
        let Some(process) = &mut self.process else {
            return Ok(Some("it is not running".into()));
        };
        let ended = process.ended().map_err(Error::io(format!("watching {}", self.name)))?;
        Ok(ended.map(|status| format!("it ended with {status}")))
    }

    /// Ends it in order (SIGTERM), or by force after 30 s. Does nothing if it is not running.
    pub(crate) fn stop(&mut self) -> Result<(), Error> {
        let Some(process) = self.process.take() else {
            return Ok(());
        };
        process.stop(STOP_GRACE).map_err(Error::io(format!("stopping {} at {}", self.name, self.address)))
    }

    /// Ends it at once (SIGKILL) and waits until it is gone. Does nothing if it is not running.
    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    /// An error of this server, with its log's tail printed first.
    pub(crate) fn failed(&self, reason: String) -> Error {
        let Daemon { name, address, .. } = *self;
        let log = self.log().unwrap_or_default();
        eprintln!("--- last lines of the log of {name} at {address}");
        eprintln!("{}", tail(&log, LOG_TAIL));
        eprintln!("---");
        Error::Server { server: name, address, reason }
    }
}

fn tail(text: &str, lines: usize) -> &str {
    let start = text.trim_end().rmatch_indices('\n').nth(lines.saturating_sub(1));
    start.map_or(text, |(at, _)| text.get(at + 1..).unwrap_or(text)).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_last_lines() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a\nb\nc", 3), "a\nb\nc");
        assert_eq!(tail("a\nb\nc", 9), "a\nb\nc");
        assert_eq!(tail("", 9), "");
    }

    fn daemon(folder: &std::path::Path) -> Daemon {
        Daemon::new("sleeper", "127.0.0.1:1".parse().unwrap(), folder.join("start"))
    }

    fn shell(script: &str) -> Command {
        let mut command = process::tethered();
        command.args(["sh", "-c", script]);
        command
    }

    #[test]
    fn every_start_has_a_log_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let mut daemon = daemon(folder.path());
        for start in ["one", "two"] {
            daemon.launch(shell(&format!("echo {start}; exec sleep 600"))).unwrap();
            let wanted = format!("{start}\n");
            let ask =
                |_| if daemon_log(folder.path(), start) == wanted { Ok(()) } else { Err(Error::Setting("no".into())) };
            daemon.wait_until_ready(ask).unwrap();
        }
        assert!(daemon.log_file().ends_with("start-2.log"));
    }

    fn daemon_log(folder: &std::path::Path, start: &str) -> String {
        let number = if start == "one" { 1 } else { 2 };
        fs::read_to_string(folder.join(format!("start-{number}.log"))).unwrap()
    }

    #[test]
    fn one_that_ends_while_starting_fails_with_its_status() {
        let folder = tempfile::tempdir().unwrap();
        let mut daemon = daemon(folder.path());
        daemon.launch(shell("exit 3")).unwrap();
        let error = daemon.wait_until_ready(|_| Err(Error::Setting("no".into()))).unwrap_err();
        let wanted = "sleeper at 127.0.0.1:1 failed: it ended with exit status: 3; see the log lines above";
        assert_eq!(error.to_string(), wanted);
        assert_eq!(daemon.id(), None);
    }
}
