//! What became of the rows.

use crate::error::{Error, Outcome, Result};

/// How many failures a report lists; it counts them all.
pub(super) const MOST_LISTED: usize = 1_000;

/// What became of the rows of a [`Streamer`](super::Streamer) so far: `added` = `applied` + `failed` + `unknown` + those that
/// have no outcome yet, of which there are none after [`close`](super::Streamer::close).
#[derive(Debug, Default)]
#[must_use = "rows may have failed"]
#[non_exhaustive]
pub struct StreamReport {
    /// Rows that were taken.
    pub added: u64,
    /// Rows that were written.
    pub applied: u64,
    /// Rows that failed and were certainly not written.
    pub failed: u64,
    /// Rows that failed and may have been written.
    pub unknown: u64,
    /// The first 1000 failures, in the order in which they happened.
    pub failures: Vec<StreamFailure>,
}

/// A row that failed, or may have.
#[derive(Debug)]
#[non_exhaustive]
pub struct StreamFailure {
    /// Which row: so many were added before it. [`Receipt::place`](super::Receipt::place) has the same number.
    pub place: u64,
    /// Why; its [outcome](Error::outcome) tells whether it may have been written.
    pub error: Error,
}

impl StreamReport {
    /// Rows that have no outcome yet.
    pub fn unfinished(&self) -> u64 {
        self.added - self.applied - self.failed - self.unknown
    }

    /// `Ok` if every row was written or still may be, else the first failure.
    ///
    /// # Errors
    /// The first failure; a doubtful one ([`Outcome::Unknown`]) first, since it matters most.
    pub fn into_result(mut self) -> Result<()> {
        self.failures.sort_by_key(|failure| failure.error.outcome() == Outcome::NotApplied);
        self.failures.into_iter().next().map_or(Ok(()), |failure| Err(failure.error))
    }

    /// Counts the outcome of a row.
    pub(super) fn note(&mut self, place: u64, outcome: &Result<()>) {
        let Err(error) = outcome else {
            self.applied += 1;
            return;
        };
        match error.outcome() {
            Outcome::NotApplied => self.failed += 1,
            Outcome::Unknown => self.unknown += 1,
        }
        if self.failures.len() < MOST_LISTED {
            self.failures.push(StreamFailure { place, error: error.share() });
        }
    }

    /// A copy, as [`Error::share`] makes one of an error.
    pub(super) fn share(&self) -> Self {
        let failure = |failure: &StreamFailure| StreamFailure { place: failure.place, error: failure.error.share() };
        let Self { added, applied, failed, unknown, failures } = self;
        let failures = failures.iter().map(failure).collect();
        Self { added: *added, applied: *applied, failed: *failed, unknown: *unknown, failures }
    }
}
