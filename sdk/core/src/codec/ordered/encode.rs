//! Typed values to ordered bytes.

use std::net::IpAddr;

use num_bigint::Sign;

use super::{MAX_NUMBER_BITS, decimal, float, uuid};
use crate::codec::{check_key_value, encode_columns};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Column, ColumnKind, Date, Order, Time, Timestamp, Value, Varint};

/// Appends the components of these values; of fewer values than columns, the prefix that all keys with them share.
///
/// Only varints and decimals allocate beyond `out`.
///
/// # Errors
/// [`InvalidArgument`](ErrorKind::InvalidArgument) for a value that isn't of its column's type or that no server takes, and
/// for more values than columns; [`TooLarge`](ErrorKind::TooLarge) for numbers of more than 65 535 bytes. `out` is then as it
/// was.
///
/// ```
/// use peristyle_core::codec::ordered::encode_key;
/// use peristyle_core::model::{Order, TableSpec, Type, Value};
///
/// let spec = TableSpec::builder("t")
///     .partition("name", Type::Text)
///     .clustering("level", Type::I8, Order::Descending)
///     .build()?;
/// let mut key = Vec::new();
/// encode_key(&[Value::from("a"), Value::from(1_i8)], spec.primary_key(), &mut key)?;
/// assert_eq!(key, [b'a', 0x00, 0x00, 0x7e]);
/// # Ok::<(), peristyle_core::Error>(())
/// ```
pub fn encode_key(values: &[Value], columns: &[Column], out: &mut Vec<u8>) -> Result<()> {
    encode_columns(values, columns, out, component)
}

fn component(column: &Column, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    check_key_value(column, value)?;
    check_size(column, value)?;
    let start = out.len();
    ordered(value, out);
    match column.kind {
        ColumnKind::Partition => tie_break(value, out),
        ColumnKind::Clustering(Order::Descending) => out.iter_mut().skip(start).for_each(|byte| *byte = !*byte),
        ColumnKind::Clustering(Order::Ascending) | ColumnKind::Value => {}
    }
    Ok(())
}

fn check_size(column: &Column, value: &Value) -> Result<()> {
    let bits = match value {
        Value::Decimal(decimal) => decimal.unscaled.bits(),
        Value::Varint(varint) => varint.0.bits(),
        _ => return Ok(()),
    };
    if bits < MAX_NUMBER_BITS {
        return Ok(());
    }
    let message = format!("key column {}: a {} of {bits} bits; a key takes {MAX_NUMBER_BITS}", column.name, column.ty);
    Err(Error::new(ErrorKind::TooLarge, message))
}

fn ordered(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(value) => out.push(u8::from(*value)),
        Value::I8(value) => out.extend((value ^ i8::MIN).to_be_bytes()),
        Value::I16(value) => out.extend((value ^ i16::MIN).to_be_bytes()),
        Value::I32(value) => out.extend((value ^ i32::MIN).to_be_bytes()),
        Value::I64(value) | Value::Counter(value) | Value::Timestamp(Timestamp(value)) => {
            out.extend((value ^ i64::MIN).to_be_bytes());
        }
        Value::F32(value) => out.extend(float::rank_32(*value).to_be_bytes()),
        Value::F64(value) => out.extend(float::rank_64(*value).to_be_bytes()),
        Value::Text(text) => escaped(text.as_bytes(), out),
        Value::Blob(bytes) => escaped(bytes, out),
        Value::Date(Date(days)) => out.extend((days ^ i32::MIN).to_be_bytes()),
        Value::Time(Time(nanos)) => out.extend(nanos.to_be_bytes()),
        Value::Uuid(value) => {
            let (version, bits) = uuid::rank(*value);
            out.push(version);
            out.extend(bits.to_be_bytes());
        }
        Value::TimeUuid(value) => out.extend(uuid::time_rank(*value).to_be_bytes()),
        Value::Inet(IpAddr::V4(address)) => escaped(&address.octets(), out),
        Value::Inet(IpAddr::V6(address)) => escaped(&address.octets(), out),
        Value::Decimal(value) => decimal::encode(value, out),
        Value::Varint(value) => varint(value, out),
    }
}

/// What tells partitions apart whose values compare equal.
fn tie_break(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::F32(value) if value.is_nan() => out.extend(value.to_bits().to_be_bytes()),
        Value::F64(value) if value.is_nan() => out.extend(value.to_bits().to_be_bytes()),
        Value::Decimal(value) => out.extend((value.scale ^ i32::MIN).to_be_bytes()),
        _ => {}
    }
}

fn escaped(bytes: &[u8], out: &mut Vec<u8>) {
    let mut pieces = bytes.split(|byte| *byte == 0);
    out.extend_from_slice(pieces.next().unwrap_or_default());
    for piece in pieces {
        out.extend([0x00, 0xff]);
        out.extend_from_slice(piece);
    }
    out.extend([0x00, 0x00]);
}

/// The length counts as negative with negative numbers, so that longer ones come first.
fn varint(value: &Varint, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
    let signed = if value.0.sign() == Sign::Minus { -length } else { length };
    out.extend((signed ^ i32::MIN).to_be_bytes());
    out.extend(bytes);
}
