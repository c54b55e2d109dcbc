//! Key values, in the order of the table's key columns.

use std::fmt;
use std::sync::Arc;

use super::{Column, Type, Value};
use crate::error::{Error, Result};

/// The values of a partition key or of a full primary key, in the order of the declaration. A clone shares them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Key(Arc<[Value]>);

impl Key {
    /// A key of these values.
    ///
    /// ```
    /// use peristyle_core::model::{Key, Value};
    ///
    /// assert_eq!(Key::new([Value::from(1_i64)]), Key::new(vec![Value::from(1_i64)]));
    /// ```
    pub fn new(values: impl Into<Arc<[Value]>>) -> Self {
        Self(values.into())
    }

    /// The values.
    pub fn values(&self) -> &[Value] {
        &self.0
    }

    /// The first `len` values: the partition key of a primary key.
    pub fn prefix(&self, len: usize) -> &[Value] {
        self.0.get(..len).unwrap_or(&self.0)
    }

    /// Checks number and types against the columns, and that no value is one that a server would refuse.
    pub(crate) fn check(&self, columns: &[Column]) -> Result<()> {
        if self.0.len() != columns.len() {
            let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
            return Err(Error::invalid(format!(
                "{} key values for {} key columns; give ({})",
                self.0.len(),
                columns.len(),
                names.join(", ")
            )));
        }
        columns.iter().zip(&*self.0).try_for_each(|(column, value)| check_value(column, value))
    }
}

/// Checks one value against its column.
pub(crate) fn check_value(column: &Column, value: &Value) -> Result<()> {
    let fault = match value {
        value if value.ty() != column.ty => format!("has type {}, but the column is {}", value.ty(), column.ty),
        Value::Time(time) if !time.is_valid() => format!("{} ns is not a time of the day", time.0),
        Value::TimeUuid(uuid) if uuid.get_version_num() != 1 => {
            format!("{uuid} has version {}, but a {} has version 1", uuid.get_version_num(), Type::TimeUuid)
        }
        _ => return Ok(()),
    };
    Err(Error::invalid(format!("column {}: {fault}", column.name)))
}

impl From<Vec<Value>> for Key {
    fn from(values: Vec<Value>) -> Self {
        Self::new(values)
    }
}

impl FromIterator<Value> for Key {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (place, value) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(", ")?;
            }
            value.fmt(f)?;
        }
        f.write_str(")")
    }
}
