//! Ctrl-C: the first one ends in order, the second at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::{Exit, Failure, Result};

/// Whether the user has asked for the end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for Ctrl-C and the requests of the system to end.
    pub(crate) fn listen() -> Result<Self> {
        let interrupt = Self::default();
        let flag = Arc::clone(&interrupt.0);
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(Exit::Interrupted as i32);
            }
        })
        .map_err(|error| Failure::input(format!("Ctrl-C can't be caught: {error}")))?;
        Ok(interrupt)
    }

    /// Whether it was pressed.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
