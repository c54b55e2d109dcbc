//! How a server's JVM is called.

use std::process::Command;

use crate::Error;
use crate::installation::Installation;
use crate::java::Java;
use crate::process;

/// The settings all servers share.
#[derive(Clone, Debug)]
pub(crate) struct Jvm {
    pub(crate) heap_mib: u32,
    /// Whether it compiles for throughput.
    pub(crate) bench: bool,
    /// What the caller adds; it comes last and wins.
    pub(crate) options: Vec<String>,
}

impl Jvm {
    pub(crate) fn new(heap_mib: u32) -> Jvm {
        Jvm { heap_mib, bench: false, options: Vec::new() }
    }

    /// A command that runs the main class and dies with this process; the program's own arguments
    /// can be added to it.
    pub(crate) fn command(
        &self,
        installation: &Installation,
        server: impl IntoIterator<Item = String>,
        main_class: &str,
    ) -> Result<Command, Error> {
        let java = Java::find()?;
        let mut command = process::tethered();
        command
            .arg(&java.program)
            .args(java.arguments())
            .args(FIXED)
            .args(self.sizes())
            .args(installation.archive().map(|archive| format!("-XX:SharedArchiveFile={}", archive.display())))
            .args(server)
            .args(&self.options)
            .arg("-classpath")
            .arg(installation.classpath()?)
            .arg(main_class);
        Ok(command)
    }

    fn sizes(&self) -> Vec<String> {
        let mut sizes = vec![format!("-Xmx{}m", self.heap_mib)];
        if !self.bench {
            sizes.push("-XX:TieredStopAtLevel=1".into());
        }
        sizes
    }
}

/// A small heap that grows, and an end instead of a crippled server.
const FIXED: [&str; 4] = ["-Xms64m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", "-Xshare:auto"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_caller_come_after_all_others() {
        let folder = tempfile::tempdir().unwrap();
        let installation = Installation::with_jar(folder.path(), "a.jar");
        let jvm = Jvm { options: vec!["-Xss1m".into()], ..Jvm::new(256) };
        let command = jvm.command(&installation, ["-Xss2m".into()], "Main").unwrap();
        let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        let place = |wanted: &str| arguments.iter().position(|argument| argument == wanted).unwrap();
        assert!(place("-Xmx256m") < place("-Xss2m") && place("-Xss2m") < place("-Xss1m"));
        assert_eq!(arguments.last().unwrap(), "Main");
    }
}
