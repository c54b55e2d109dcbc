//! What is written.

use super::Mutation;
use crate::model::{Key, Value};

/// A write to one table.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// One mutation. Answered by [`Response::Done`](crate::Response::Done).
    Apply(Mutation),
    /// Many mutations of different keys, each with an outcome of its own. Answered by
    /// [`Response::Outcomes`](crate::Response::Outcomes), in their order.
    ApplyAll(Vec<Mutation>),
    /// Adds to counters of one row. Not idempotent. Answered by [`Response::Done`](crate::Response::Done).
    Increment {
        /// The full primary key.
        key: Key,
        /// What to add, by column index; wraps around at the ends of 64 bits.
        deltas: Vec<(usize, i64)>,
    },
    /// Puts if a condition holds, in one atomic step. Not idempotent. The mutation's write time is not used: the server
    /// decides when it happens. Answered by [`Response::Compared`](crate::Response::Compared).
    CompareAndPut {
        /// What to put; neither wipes nor deletes.
        mutation: Mutation,
        /// What must hold.
        condition: Condition,
    },
}

impl Write {
    /// Its name: `put`, `delete`, `put_all`, `increment` or `compare_and_put`.
    pub fn operation(&self) -> &'static str {
        match self {
            Self::Apply(mutation) if mutation.is_delete() => "delete",
            Self::Apply(_) => "put",
            Self::ApplyAll(_) => "put_all",
            Self::Increment { .. } => "increment",
            Self::CompareAndPut { .. } => "compare_and_put",
        }
    }
}

/// What must hold for a conditional put.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// The row doesn't exist.
    RowAbsent,
    /// The column, by index, is absent; an absent row counts.
    ColumnAbsent(usize),
    /// The column, by index, has this value.
    ColumnEquals(usize, Value),
}
