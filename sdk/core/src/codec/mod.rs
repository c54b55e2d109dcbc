//! Bytes: values as CQL sends them, keys whose byte order is the order of the typed tuples, the layout of `HBase`'s own
//! `Bytes`, salts and partition tokens. Every backend uses these, so a row has one key wherever it is stored.

pub mod ordered;
pub mod range;
pub mod raw;
pub mod salt;
pub mod token;
pub mod value;

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Column, Value};

/// What to do about a key that can't be read.
const CHECK: &str = "check that the key columns and the key encoding are those the table was written with";

fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

/// Refuses what the decoders would: another type, a counter, a time outside a day, a time UUID of another version than 1.
fn check_key_value(column: &Column, value: &Value) -> Result<()> {
    let fits = value.ty() == column.ty
        && match value {
            Value::Counter(_) => false,
            Value::Time(time) => time.is_valid(),
            Value::TimeUuid(uuid) => uuid.get_version_num() == 1,
            _ => true,
        };
    if fits {
        return Ok(());
    }
    let (name, ty) = (&column.name, column.ty);
    Err(Error::invalid(format!("key column {name}: {value} of type {} is no valid {ty} of a key", value.ty())))
}

/// Appends value by value; after an error `out` is as it was.
fn encode_columns(
    values: &[Value],
    columns: &[Column],
    out: &mut Vec<u8>,
    component: impl Fn(&Column, &Value, &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    if values.len() > columns.len() {
        return Err(Error::invalid(format!("{} key values for {} key columns", values.len(), columns.len())));
    }
    let start = out.len();
    let result = columns.iter().zip(values).try_for_each(|(column, value)| component(column, value, out));
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// Refuses a key with bytes behind its last column.
fn check_end(rest: &[u8], key: &[u8]) -> Result<()> {
    if rest.is_empty() {
        return Ok(());
    }
    Err(corrupt(format!("{} of {} key bytes lie behind the last key column; {CHECK}", rest.len(), key.len())))
}
