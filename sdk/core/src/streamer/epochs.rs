//! Barriers: when all that came before a point is finished.

use std::collections::VecDeque;

/// Rows by the time between two barriers in which they were added.
#[derive(Debug)]
pub(super) struct Epochs {
    first: u64,
    /// The unfinished rows of each epoch, from the first that has some; the last is the one that rows are added to.
    unfinished: VecDeque<u64>,
}

impl Epochs {
    pub(super) fn new() -> Self {
        Self { first: 0, unfinished: VecDeque::from([0]) }
    }

    /// Adds a row; gives the number of its epoch.
    pub(super) fn add(&mut self) -> u64 {
        if let Some(last) = self.unfinished.back_mut() {
            *last += 1;
        }
        self.last()
    }

    /// Finishes a row of this epoch.
    pub(super) fn finish(&mut self, epoch: u64) {
        let place = usize::try_from(epoch.saturating_sub(self.first)).unwrap_or(usize::MAX);
        if let Some(rows) = self.unfinished.get_mut(place) {
            *rows = rows.saturating_sub(1);
        }
        while self.unfinished.len() > 1 && self.unfinished.front() == Some(&0) {
            self.unfinished.pop_front();
            self.first += 1;
        }
    }

    /// A barrier: all rows that were added before it are finished once [`first`](Self::first) is this number.
    pub(super) fn cut(&mut self) -> u64 {
        if self.unfinished.back() != Some(&0) {
            self.unfinished.push_back(0);
        }
        self.last()
    }

    /// The first epoch that isn't finished, or that rows are added to.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    fn last(&self) -> u64 {
        self.first + u64::try_from(self.unfinished.len()).unwrap_or(u64::MAX).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_waits_for_what_came_before_it_and_for_nothing_else() {
        let mut epochs = Epochs::new();
        assert_eq!(epochs.cut(), epochs.first(), "nothing came before");
        let (one, two) = (epochs.add(), epochs.add());
        let barrier = epochs.cut();
        let later = epochs.add();
        epochs.finish(later);
        epochs.finish(two);
        assert!(epochs.first() < barrier);
        epochs.finish(one);
        assert_eq!(epochs.first(), barrier);
    }

    #[test]
    fn barriers_pass_in_order_whatever_ends_first() {
        let mut epochs = Epochs::new();
        let (first, one) = (epochs.add(), epochs.cut());
        let (second, two) = (epochs.add(), epochs.cut());
        assert_eq!(epochs.cut(), two, "an empty epoch needs no barrier of its own");
        epochs.finish(second);
        assert!(epochs.first() < one);
        epochs.finish(first);
        assert_eq!(epochs.first(), two);
    }
}
