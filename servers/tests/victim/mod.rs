//! A second process of the test binary, which starts a server and is killed.

use std::env;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The environment variable that makes a process the victim: where it reports its servers.
const VICTIM: &str = "PERISTYLE_SERVERS_VICTIM";

/// Runs the test of this name once more in a process that calls `start`, kills that process, and
/// waits until those that `start` named, whose command lines hold `mark`, are gone.
pub(crate) fn assert_dies_with_its_process<S>(test: &str, mark: &str, start: impl Fn() -> (Vec<u32>, S)) {
    if let Some(report) = env::var_os(VICTIM) {
        let (processes, _server) = start();
        let lines: Vec<String> = processes.iter().map(u32::to_string).collect();
        let partial = format!("{}.partial", report.display());
        fs::write(&partial, lines.join("\n")).unwrap();
        fs::rename(&partial, &report).unwrap();
        loop {
            thread::park();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("servers");
    let mut victim = Command::new(env::current_exe().unwrap())
        .args(["--exact", test])
        .env(VICTIM, &report)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the server is up", || report.exists());
    let report = fs::read_to_string(&report).unwrap();
    let command_lines: Vec<String> = report.lines().map(|process| format!("/proc/{process}/cmdline")).collect();
    assert!(command_lines.iter().all(|file| fs::read_to_string(file).unwrap().contains(mark)));
    victim.kill().unwrap();
    victim.wait().unwrap();
    // Nobody may be there to reap them: an ended process has an empty command line.
    let is_gone = |file: &String| fs::read_to_string(file).unwrap_or_default().is_empty();
    wait_until("the server is gone", || command_lines.iter().all(is_gone));
}

pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !done() {
        assert!(Instant::now() < deadline, "waited 120 s until {what}");
        thread::sleep(Duration::from_millis(50));
    }
}
