//! Rows, keys and values to and from the user's own types, through serde.
//!
//! The column's type decides what a field becomes, so plain Rust types serve: `i64` for a timestamp in milliseconds,
//! `String` for text, decimals and varints, `Vec<u8>` or `Bytes` for blobs, `Uuid`, `IpAddr`, `SystemTime`, and unit enums as
//! text. `Option::None` is an absent column: nothing is written for it.

mod de;
mod ser_key;
mod ser_row;
mod ser_value;

use serde::Serialize;
use serde::de::DeserializeOwned;

use self::ser_value::ValueSerializer;
use super::key::check_value;
use super::{Column, Key, Row, RowValues, StoredRow, TableSpec, Value};
use crate::error::{Error, ErrorKind, Result};

/// What a row is taken apart into.
type RowParts = (Key, RowValues);

/// Something that can be written as a row: a [`Row`], or any struct or map that serde can serialize.
pub trait ToRow {
    /// The key, and the present value columns by index.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) that names the column: unknown, of another type, or missing from the
    /// key.
    fn to_row(&self, spec: &TableSpec) -> Result<(Key, RowValues)>;
}

/// Something that can be a key: a [`Key`], a [`Row`], a tuple or single value in the order of the columns, or a struct with
/// their names.
pub trait ToKey {
    /// The values of these key columns.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) that names the column: missing, or of another type.
    fn to_key(&self, columns: &[Column]) -> Result<Key>;
}

/// Something that can be the value of a column: a [`Value`], or any scalar that serde can serialize.
pub trait ToValue {
    /// The value for this column.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) that names the column, if it has another type.
    fn to_value(&self, column: &Column) -> Result<Value>;
}

/// Something that a row can be read into: a [`Row`], or any struct, map or tuple that serde can deserialize.
pub trait FromRow: Sized {
    /// Reads a row.
    ///
    /// # Errors
    /// [`SchemaMismatch`](ErrorKind::SchemaMismatch) that names the table, if the type doesn't fit it.
    fn from_row(row: StoredRow, spec: &TableSpec) -> Result<Self>;
}

impl<T: Serialize + ?Sized> ToRow for T {
    fn to_row(&self, spec: &TableSpec) -> Result<RowParts> {
        ser_row::to_parts(self, spec)
    }
}

impl ToRow for Row {
    fn to_row(&self, spec: &TableSpec) -> Result<RowParts> {
        let mut builder = ser_row::PartsBuilder::new(spec);
        for (name, value) in self.iter() {
            let index = spec.require(name)?;
            builder.set(index, value.clone())?;
        }
        builder.finish()
    }
}

impl<T: Serialize + ?Sized> ToKey for T {
    fn to_key(&self, columns: &[Column]) -> Result<Key> {
        ser_key::to_key(self, columns)
    }
}

impl ToKey for Key {
    fn to_key(&self, columns: &[Column]) -> Result<Key> {
        self.check(columns)?;
        Ok(self.clone())
    }
}

impl ToKey for Row {
    fn to_key(&self, columns: &[Column]) -> Result<Key> {
        let values = columns.iter().map(|column| {
            let value = self.get(&column.name).ok_or_else(|| missing(column))?;
            check_value(column, value).map(|()| value.clone())
        });
        values.collect::<Result<Vec<_>>>().map(Key::new)
    }
}

/// What holds for the dynamic types holds for references to them, as it does for serde's.
macro_rules! by_reference {
    ($($type:ty: $trait:ident::$method:ident($argument:ty) -> $output:ty;)*) => {$(
        impl $trait for &$type {
            fn $method(&self, argument: $argument) -> Result<$output> {
                (**self).$method(argument)
            }
        }
    )*};
}

by_reference! {
    Row: ToRow::to_row(&TableSpec) -> RowParts;
    Row: ToKey::to_key(&[Column]) -> Key;
    Key: ToKey::to_key(&[Column]) -> Key;
    Value: ToValue::to_value(&Column) -> Value;
}

impl<T: Serialize + ?Sized> ToValue for T {
    fn to_value(&self, column: &Column) -> Result<Value> {
        self.serialize(ValueSerializer { ty: column.ty })
            .map_err(|fault| in_column(column, &fault))?
            .ok_or_else(|| missing(column))
            .and_then(|value| check_value(column, &value).map(|()| value))
    }
}

impl ToValue for Value {
    fn to_value(&self, column: &Column) -> Result<Value> {
        check_value(column, self)?;
        Ok(self.clone())
    }
}

impl<T: DeserializeOwned> FromRow for T {
    fn from_row(row: StoredRow, spec: &TableSpec) -> Result<Self> {
        T::deserialize(de::RowDeserializer::new(row, spec)).map_err(|fault| {
            let message = format!("table {} doesn't fit the type it is read into: {fault}", spec.name());
            Error::new(ErrorKind::SchemaMismatch, message)
        })
    }
}

/// The row as it came, with write times and times to live where they were asked for.
impl FromRow for StoredRow {
    fn from_row(row: StoredRow, _: &TableSpec) -> Result<Self> {
        Ok(row)
    }
}

impl FromRow for Row {
    fn from_row(row: StoredRow, spec: &TableSpec) -> Result<Self> {
        Ok(row.into_row(spec))
    }
}

fn missing(column: &Column) -> Error {
    Error::invalid(format!("key column {} is missing; every key column needs a value", column.name))
}

fn in_column(column: &Column, fault: &Fault) -> Error {
    Error::invalid(format!("column {}: {}", column.name, fault.0))
}

/// What serde's traits need as an error: one line, put into context by the caller.
#[derive(Debug)]
struct Fault(String);

impl Fault {
    fn mismatch(found: &str, expected: super::Type) -> Self {
        Self(format!("{found} doesn't fit type {expected}"))
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

impl serde::ser::Error for Fault {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl serde::de::Error for Fault {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

#[cfg(test)]
mod tests;
