//! References that threads count apart.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many counts there are; threads beyond that share them.
const COUNTS: usize = 16;

/// What many threads take references to, at every request. A single count of them would go from processor to processor with
/// each that is taken or dropped, which takes longer than the look-up that leads to it, so each thread has a copy with a count
/// of its own. Copies should be small, and of a type that is aligned to cache lines, or the counts of several threads share one.
#[derive(Debug)]
pub(crate) struct Spread<T>([Arc<T>; COUNTS]);

impl<T: Clone> Spread<T> {
    pub(crate) fn new(content: &T) -> Self {
        Self(std::array::from_fn(|_| Arc::new(content.clone())))
    }

    /// The copy of this thread.
    pub(crate) fn get(&self) -> Arc<T> {
        thread_local! { static NUMBER: usize = number(); }
        let [first, ..] = &self.0;
        Arc::clone(self.0.get(NUMBER.with(|number| *number)).unwrap_or(first))
    }
}

/// Threads are numbered as they come, so that those of one runtime have different counts.
fn number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed) % COUNTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_follow_each_other_count_apart() {
        let spread = Spread::new(&"content");
        let taken: Vec<_> =
            (0..2 * COUNTS).map(|_| std::thread::scope(|scope| scope.spawn(|| spread.get()).join().unwrap())).collect();
        assert!(taken.iter().all(|reference| **reference == "content"));
        let counts = spread.0.iter().map(|copy| Arc::strong_count(copy) - 1);
        // Tests beside this one number their threads too.
        assert!(counts.clone().sum::<usize>() == 2 * COUNTS && counts.filter(|count| *count > 0).count() > 1);
    }
}
