//! What the user sees while it runs: lines that stay, and on a terminal one that moves.

use std::io::Write as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::report::{ResultFile, closing};

/// The two outputs of a command.
#[derive(Debug)]
pub(crate) struct Console {
    /// Whether standard output belongs to the JSON result.
    json: bool,
    status: ProgressBar,
}

impl Console {
    pub(crate) fn new(json: bool) -> Self {
        let status = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            status.set_style(style);
        }
        Self { json, status }
    }

    /// Prints a line that stays: on standard output, or on standard error beside JSON. A closed pipe is no failure.
    pub(crate) fn line(&self, text: &str) {
        self.status.suspend(|| {
            let text = format!("{text}\n");
            let _ = if self.json {
                std::io::stderr().write_all(text.as_bytes())
            } else {
                std::io::stdout().write_all(text.as_bytes())
            };
        });
    }

    /// Prints the result for programs.
    pub(crate) fn result(text: &str) {
        // A closed pipe is no failure.
        let _ = writeln!(std::io::stdout(), "{text}");
    }

    /// Shows what is going on, on a terminal alone.
    pub(crate) fn status(&self, text: String) {
        self.status.set_message(text);
        self.status.tick();
    }

    /// Takes the moving line away.
    pub(crate) fn clear(&self) {
        self.status.finish_and_clear();
    }

    /// Prints the verdict: a name, and what it is.
    pub(crate) fn closing(&self, result: &ResultFile) {
        for (name, text) in closing(result) {
            self.line(&format!("{} {text}", self.strong(&format!("{name:<9}"))));
        }
    }

    /// A word that stands out, where the lines go to a terminal.
    pub(crate) fn strong(&self, text: &str) -> String {
        let style = console::style(text).bold();
        if self.json { style.for_stderr().to_string() } else { style.to_string() }
    }
}

/// A progress bar over so many rows, on a terminal alone.
pub(crate) fn bar(rows: u64) -> ProgressBar {
    let bar = ProgressBar::new(rows);
    let template = "loading {wide_bar} {human_pos}/{human_len} rows, {per_sec}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
