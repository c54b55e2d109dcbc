//! What a backend answers.

use crate::error::{Error, ErrorKind, Result};
use crate::model::{StoredRow, TableSpec};

/// The answer to a [`Request`](crate::Request). Which variant answers what is said at the request.
#[derive(Debug)]
#[non_exhaustive]
pub enum Response {
    /// It is done.
    Done,
    /// The row, if it exists.
    Row(Option<StoredRow>),
    /// The rows that exist, in the order of the keys asked for.
    Rows(Vec<Option<StoredRow>>),
    /// What became of each mutation, in their order.
    Outcomes(Vec<Result<()>>),
    /// A page of rows.
    Page(Page),
    /// Whether the condition held.
    Compared(Comparison),
    /// The table, if it exists.
    Table(Option<Box<TableSpec>>),
}

/// Some rows, and whether there may be more behind the last of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// The rows; at least one if there is `more`.
    pub rows: Vec<StoredRow>,
    /// Whether rows may follow. Only `false` ends a query or scan, never a short page.
    pub more: bool,
}

/// What became of a conditional put.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// Whether the condition held and the put was applied.
    pub applied: bool,
    /// The row as it was, if the condition didn't hold and the server told: at least the column of the condition.
    pub current: Option<StoredRow>,
}

macro_rules! into {
    ($($(#[$doc:meta])* $method:ident: $variant:ident => $type:ty),* $(,)?) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// [`ErrorKind::Internal`] if the backend answered something else.
        pub fn $method(self) -> Result<$type> {
            match self {
                Self::$variant(content) => Ok(content),
                other => Err(other.unexpected(stringify!($variant))),
            }
        }
    )*};
}

impl Response {
    into! {
        /// The row of a get.
        into_row: Row => Option<StoredRow>,
        /// The rows of a get of many.
        into_rows: Rows => Vec<Option<StoredRow>>,
        /// The outcomes of many writes.
        into_outcomes: Outcomes => Vec<Result<()>>,
        /// The page of a query or scan.
        into_page: Page => Page,
        /// The outcome of a conditional put.
        into_comparison: Compared => Comparison,
        /// The table of a description.
        into_table: Table => Option<Box<TableSpec>>,
    }

    /// That it is done.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if the backend answered something else.
    pub fn into_done(self) -> Result<()> {
        match self {
            Self::Done => Ok(()),
            other => Err(other.unexpected("Done")),
        }
    }

    fn unexpected(&self, expected: &str) -> Error {
        let found = format!("{self:?}");
        let found = found.split(['(', '{', ' ']).next().unwrap_or_default();
        Error::new(ErrorKind::Internal, format!("the backend answered {found} where {expected} was due"))
    }
}
