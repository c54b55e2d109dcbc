//! Keys whose byte order is the order of the typed tuples: [`Value::cluster_cmp`] column by column, reversed where a column
//! is descending.
//!
//! Each column becomes a component that tells its own end, so the first columns of a key are a prefix of its bytes, and no
//! key is a prefix of another of the same table. What a component is:
//!
//! | Type | Bytes |
//! |---|---|
//! | integers, timestamp | big-endian, sign bit flipped |
//! | date, time | as CQL sends them |
//! | bool | 00 or 01 |
//! | floats | big-endian; all bits flipped where the sign is set, else the sign bit; every NaN as the positive quiet one |
//! | text, blob, inet | the bytes with 00 as 00 FF, then 00 00 |
//! | uuid | the version, then the 16 bytes, of version 1 with the time's high bytes first |
//! | timeuuid | the time, high bytes first, then the last 8 bytes with sign bits flipped |
//! | varint | 80000000 plus (negative: minus) the length, in 4 bytes, then two's complement |
//! | decimal | 01 for 0; else 02, the exponent + 2^63 in 8 bytes, the digits + 1 each, 00; negative: 00 and the complement |
//!
//! The end of a text needs two bytes: a single 00 could be taken for the escape when the next component begins with FF. A
//! descending component is complemented as a whole.
//!
//! Partition columns tell values apart by their bytes, clustering columns by type: 1.0 and 1.00 are two partitions, but one
//! row of a partition, and so are two patterns of NaN. So in a partition column a decimal is followed by its scale, and NaN
//! by its bits; in a clustering column they are lost, see [`is_lossy`].

mod decimal;
mod decode;
mod encode;
mod float;
#[cfg(test)]
mod tests;
mod uuid;

pub use self::decode::{decode_key, decode_prefix};
pub use self::encode::encode_key;

use crate::model::{Column, ColumnKind, Value};

/// A varint or decimal in a key has fewer bits: no server takes a key of more than 65 535 bytes.
const MAX_NUMBER_BITS: u64 = 8 * 65_535;

/// Whether [`decode_key`] gives back a form of this value that differs from it, though it compares equal: in a clustering
/// column, a NaN other than the usual one, and a decimal with trailing zeros. An engine keeps the original beside such a key.
///
/// ```
/// use peristyle_core::codec::ordered::is_lossy;
/// use peristyle_core::model::{Decimal, Order, TableSpec, Type, Value};
///
/// let spec = TableSpec::builder("t")
///     .partition("p", Type::Decimal)
///     .clustering("c", Type::Decimal, Order::Ascending)
///     .build()?;
/// let one = Value::from(Decimal::new(10, 1));
/// let lossy: Vec<bool> = spec.primary_key().iter().map(|column| is_lossy(&one, column)).collect();
/// assert_eq!(lossy, [false, true]);
/// # Ok::<(), peristyle_core::Error>(())
/// ```
pub fn is_lossy(value: &Value, column: &Column) -> bool {
    if column.kind == ColumnKind::Partition {
        return false;
    }
    match value {
        Value::F32(value) => value.is_nan() && value.to_bits() != float::NAN_32,
        Value::F64(value) => value.is_nan() && value.to_bits() != float::NAN_64,
        Value::Decimal(value) => !decimal::is_normal(value),
        _ => false,
    }
}

/// The first key behind all those that begin with `prefix`; `None` where no key is: for the empty prefix, and FF bytes only.
///
/// ```
/// use peristyle_core::codec::ordered::prefix_end;
///
/// assert_eq!(prefix_end(&[0x03, 0xaa, 0xff]), Some(vec![0x03, 0xab]));
/// assert_eq!(prefix_end(&[0xff]), None);
/// ```
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix.get(..=last)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}
