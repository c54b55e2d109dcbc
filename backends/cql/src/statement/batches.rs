//! Batches of one statement, kept to be sent again.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;

/// How many sizes are kept.
const MAX_SIZES: usize = 4;

/// Unlogged batches that repeat one statement. Those who write many rows mostly ask for few numbers of it, each over and over,
/// and to make one anew takes a copy of the statement for each row.
#[derive(Default)]
pub(super) struct Batches(Mutex<VecDeque<Arc<Batch>>>);

impl Batches {
    /// A batch of so many.
    pub(super) fn of(&self, statement: &PreparedStatement, count: usize) -> Arc<Batch> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(batch) = kept.iter().find(|batch| batch.statements.len() == count) {
            return Arc::clone(batch);
        }
        let statements = std::iter::repeat_with(|| statement.clone().into()).take(count).collect();
        let batch = Arc::new(Batch::new_with_statements(BatchType::Unlogged, statements));
        if kept.len() >= MAX_SIZES {
            kept.pop_front();
        }
        kept.push_back(Arc::clone(&batch));
        batch
    }
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").finish_non_exhaustive()
    }
}
