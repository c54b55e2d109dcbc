//! References that threads count apart.

use std::sync::Arc;

use peristyle_core::thread;

/// What many threads take references to, at every request. A single count of them would go from processor to processor with
/// each that is taken or dropped, which takes longer than the look-up that leads to it, so each thread has a copy with a count
/// of its own. Copies should be small, and of a type that is aligned to cache lines, or the counts of several threads share one.
#[derive(Debug)]
pub(crate) struct Spread<T>([Arc<T>; thread::NUMBERS]);

impl<T: Clone> Spread<T> {
    pub(crate) fn new(content: &T) -> Self {
        Self(std::array::from_fn(|_| Arc::new(content.clone())))
    }

    /// The copy of this thread.
    pub(crate) fn get(&self) -> Arc<T> {
        let [first, ..] = &self.0;
        Arc::clone(self.0.get(thread::number()).unwrap_or(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_follow_each_other_count_apart() {
        let spread = Spread::new(&"content");
        let taken: Vec<_> = (0..2 * thread::NUMBERS)
            .map(|_| std::thread::scope(|scope| scope.spawn(|| spread.get()).join().unwrap()))
            .collect();
        assert!(taken.iter().all(|reference| **reference == "content"));
        let counts = spread.0.iter().map(|copy| Arc::strong_count(copy) - 1);
        // Tests beside this one number their threads too.
        assert!(counts.clone().sum::<usize>() == 2 * thread::NUMBERS && counts.filter(|count| *count > 0).count() > 1);
    }
}
