//! How a command ends when it can't go on, and the exit codes.

use std::fmt;
use std::path::Path;

/// The exit codes of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done; for a sweep, an answer was found.
    Done = 0,
    /// Some rows could not be loaded, or a result not be written.
    Failed = 1,
    /// Bad input, or the target can't be reached.
    BadInput = 2,
    /// No point without errors.
    NoFeasiblePoint = 3,
    /// The budget ended before the search did.
    BudgetExhausted = 4,
    /// The target drifted, so points can't be compared.
    Unstable = 5,
    /// Ctrl-C.
    Interrupted = 130,
}

/// One line that says what failed and what to do, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    exit: Exit,
}

/// The result of what a user can get wrong.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// Bad input or an unreachable target.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit: Exit::BadInput }
    }

    /// A file that can't be written once there are results to write.
    pub(crate) fn write(path: &Path, error: impl fmt::Display) -> Self {
        Self { message: format!("can't write {}: {error}", path.display()), exit: Exit::Failed }
    }

    /// The budget ended before there was anything to measure.
    pub(crate) fn too_late(done: &str) -> Self {
        Self { message: format!("the budget ended when {done}; raise --budget"), exit: Exit::BudgetExhausted }
    }

    /// The run was ended by Ctrl-C before it measured anything.
    pub(crate) fn interrupted() -> Self {
        Self { message: "interrupted before anything was measured".into(), exit: Exit::Interrupted }
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Failure {
    /// Always one line, whatever the parts were.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = self.message.lines().map(str::trim).filter(|line| !line.is_empty());
        f.write_str(lines.next().unwrap_or("failed"))?;
        lines.try_for_each(|line| write!(f, "; {line}"))
    }
}
