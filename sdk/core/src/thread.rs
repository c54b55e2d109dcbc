//! Numbers of threads, for what each thread has a copy of.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many numbers there are; threads beyond that share them.
pub const NUMBERS: usize = 16;

/// The number of this thread, below [`NUMBERS`]. Threads are numbered as they first ask, so that those of one runtime have
/// different numbers.
pub fn number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! { static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed) % NUMBERS; }
    NUMBER.with(|number| *number)
}
