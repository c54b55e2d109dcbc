//! Key values, in the order of the table's key columns.

use std::fmt;
use std::sync::Arc;

use super::{Column, Type, Value};
use crate::error::{Error, Result};

/// The values of a partition key or of a full primary key, in the order of the declaration. A clone shares them, unless they
/// are few and small.
#[derive(Clone)]
pub struct Key(Values);

#[derive(Clone)]
enum Values {
    /// One or two that have nothing on the heap: to copy them takes less than to count who has them.
    One([Value; 1]),
    Two([Value; 2]),
    Shared(Arc<[Value]>),
}

impl Key {
    /// A key of these values.
    ///
    /// ```
    /// use peristyle_core::model::{Key, Value};
    ///
    /// assert_eq!(Key::new([Value::from(1_i64)]), Key::new(vec![Value::from(1_i64)]));
    /// ```
    pub fn new(values: impl IntoIterator<Item = Value>) -> Self {
        Self::taken(&mut values.into_iter().collect::<Vec<_>>())
    }

    /// A key of these values, which are moved out; others of no meaning stay in their places.
    pub(crate) fn taken(values: &mut [Value]) -> Self {
        let take = |value: &mut Value| std::mem::replace(value, Value::Bool(false));
        Self(match values {
            [one] if one.is_small() => Values::One([take(one)]),
            [one, two] if one.is_small() && two.is_small() => Values::Two([take(one), take(two)]),
            values => Values::Shared(values.iter_mut().map(take).collect()),
        })
    }

    /// The values.
    pub fn values(&self) -> &[Value] {
        match &self.0 {
            Values::One(values) => values,
            Values::Two(values) => values,
            Values::Shared(values) => values,
        }
    }

    /// The first `len` values: the partition key of a primary key.
    pub fn prefix(&self, len: usize) -> &[Value] {
        self.values().get(..len).unwrap_or(self.values())
    }

    /// Checks number and types against the columns, and that no value is one that a server would refuse.
    pub(crate) fn check(&self, columns: &[Column]) -> Result<()> {
        let values = self.values();
        if values.len() != columns.len() {
            let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
            return Err(Error::invalid(format!(
                "{} key values for {} key columns; give ({})",
                values.len(),
                columns.len(),
                names.join(", ")
            )));
        }
        columns.iter().zip(values).try_for_each(|(column, value)| check_value(column, value))
    }
}

/// Checks one value against its column.
#[inline]
pub(crate) fn check_value(column: &Column, value: &Value) -> Result<()> {
    if value.ty() == column.ty && !matches!(value, Value::Time(_) | Value::TimeUuid(_)) {
        return Ok(());
    }
    check_rare(column, value)
}

fn check_rare(column: &Column, value: &Value) -> Result<()> {
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
        Self::new(values)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.values() == other.values()
    }
}

impl Default for Key {
    fn default() -> Self {
        Self::new([])
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.values()).finish()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (place, value) in self.values().iter().enumerate() {
            if place > 0 {
                f.write_str(", ")?;
            }
            value.fmt(f)?;
        }
        f.write_str(")")
    }
}
