//! Rows, by name for people and by place for backends.

use std::num::NonZeroU32;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Key, TableSpec, Value, WriteTime};
use crate::error::{Error, Result};

/// A row by column name: what to write when there is no struct for it, and what dynamic reads return.
///
/// ```
/// use peristyle_core::model::{Row, Value};
///
/// let row = Row::new().with("id", 7_i64).with("title", "Dune");
/// assert_eq!(row.get("title"), Some(&Value::from("Dune")));
/// assert_eq!(row.get("author"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    columns: Vec<(Arc<str>, Value)>,
}

impl Row {
    /// A row with no columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a column.
    #[must_use]
    pub fn with(mut self, name: impl Into<Arc<str>>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Adds or replaces a column.
    pub fn set(&mut self, name: impl Into<Arc<str>>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        match self.columns.iter_mut().find(|(existing, _)| *existing == name) {
            Some((_, existing)) => *existing = value,
            None => self.columns.push((name, value)),
        }
    }

    /// The value of a present column.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.columns.iter().find(|(existing, _)| &**existing == name).map(|(_, value)| value)
    }

    /// The present columns, in the order in which they were set, or of the table for a row that was read.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.columns.iter().map(|(name, value)| (&**name, value))
    }
}

/// The values of the present value columns of a row, each with its column's index. Those of few columns take no allocation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RowValues(SmallVec<[(usize, Value); 4]>);

impl RowValues {
    /// Adds a value.
    pub fn push(&mut self, column: usize, value: Value) {
        self.0.push((column, value));
    }

    /// Moves the values out one by one; others of no meaning stay in their places. That it goes through a slice tells what
    /// gathers them their number beforehand.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (usize, Value)> + '_ {
        self.0.iter_mut().map(|(column, value)| (*column, std::mem::replace(value, Value::Bool(false))))
    }
}

impl FromIterator<(usize, Value)> for RowValues {
    fn from_iter<I: IntoIterator<Item = (usize, Value)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// When a column was written and how long it still lives, where the server tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CellMeta {
    /// When it was written.
    pub write_time: Option<WriteTime>,
    /// The seconds that it still lives; `None` is for ever, or unknown.
    pub ttl: Option<NonZeroU32>,
}

/// A row by column place: `values` has an entry for every column of the table, `None` where the column is absent or was not
/// asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StoredRow {
    /// The values, in the order of [`TableSpec::columns`].
    pub values: Vec<Option<Value>>,
    /// Write time and time to live of each column, in the same order, where they were asked for; else empty.
    pub meta: Vec<CellMeta>,
}

impl StoredRow {
    /// The row's primary key.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) where a key column is absent.
    pub fn key(&self, spec: &TableSpec) -> Result<Key> {
        let keys: Option<Vec<Value>> = self.values.iter().take(spec.key_len()).cloned().collect();
        keys.filter(|keys| keys.len() == spec.key_len()).map(Key::new).ok_or_else(|| {
            let message = format!("a row of {} came back without its key columns", spec.name());
            Error::new(crate::error::ErrorKind::Corrupt, message)
        })
    }

    /// The row by name, absent columns left out.
    pub fn into_row(self, spec: &TableSpec) -> Row {
        let named = spec.columns().iter().zip(self.values);
        let columns = named.filter_map(|(column, value)| Some((Arc::clone(&column.name), value?))).collect();
        Row { columns }
    }
}
