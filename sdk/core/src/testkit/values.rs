//! Values at the edges of each type.

use std::cmp::Ordering;
use std::net::IpAddr;

use uuid::Uuid;

use crate::model::{Date, Decimal, Time, Timestamp, Type, Value, Varint};

/// Values of a type in rising clustering order, no two equal: the edges, and what codecs get wrong.
///
/// The orders of text, addresses, UUIDs and time UUIDs are those that Apache Cassandra 5.0 gave for these very values.
pub fn of(ty: Type) -> Vec<Value> {
    fn values<T: Into<Value>>(values: impl IntoIterator<Item = T>) -> Vec<Value> {
        values.into_iter().map(Into::into).collect()
    }
    match ty {
        Type::Bool => values([false, true]),
        Type::I8 => values([i8::MIN, -1, 0, 1, i8::MAX]),
        Type::I16 => values([i16::MIN, -1, 0, 1, 256, i16::MAX]),
        Type::I32 => values([i32::MIN, -256, -1, 0, 1, 255, i32::MAX]),
        Type::I64 => values([i64::MIN, -256, -1, 0, 1, 255, i64::MAX]),
        Type::F32 => values([f32::NEG_INFINITY, -1.5, -f32::MIN_POSITIVE, -0.0, 0.0, 1.5, f32::INFINITY, f32::NAN]),
        Type::F64 => values([f64::NEG_INFINITY, -1.5, -f64::MIN_POSITIVE, -0.0, 0.0, 1.5, f64::INFINITY, f64::NAN]),
        Type::Text => values(TEXTS),
        Type::Blob => values([&b""[..], b"\0", b"\0\0", b"\0\xff", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\xff"]),
        Type::Timestamp => values([i64::MIN, -1, 0, 1, i64::MAX].map(Timestamp)),
        Type::Date => values([i32::MIN, -1, 0, 1, i32::MAX].map(Date)),
        Type::Time => values([0, 1, Time::MAX.0].map(Time)),
        Type::Uuid => values(UUIDS.map(uuid)),
        Type::TimeUuid => TIME_UUIDS.map(|text| Value::TimeUuid(uuid(text))).to_vec(),
        Type::Inet => values(ADDRESSES.map(|text| text.parse::<IpAddr>().unwrap())),
        Type::Decimal => values(DECIMALS.map(|text| text.parse::<Decimal>().unwrap())),
        Type::Varint => values(VARINTS.map(|text| text.parse::<Varint>().unwrap())),
        Type::Counter => Vec::new(),
    }
}

fn uuid(text: &str) -> Uuid {
    Uuid::parse_str(text).unwrap()
}

const TEXTS: [&str; 14] =
    ["", "\0", "A", "a", "a\0", "a\0b", "ab", "b", "z", "~", "\u{7f}", "\u{80}", "\u{ffff}", "\u{1f600}"];
const ADDRESSES: [&str; 11] = [
    "0.0.0.0",
    "::",
    "::1",
    "::ffff:10.0.0.1",
    "9.255.0.1",
    "10.0.0.1",
    "a00:1::",
    "2001:db8::1",
    "127.0.0.1",
    "fe80::1",
    "255.255.255.255",
];
const UUIDS: [&str; 9] = [
    "ffffffff-ffff-0fff-8000-000000000000",
    "00000000-0000-1000-7f00-000000000000",
    "00000000-0000-1000-8000-000000000000",
    "ffffffff-0000-1000-8000-000000000000",
    "00000000-0000-1001-8000-000000000000",
    "ffffffff-ffff-1fff-8000-000000000000",
    "00000000-0000-4000-8000-000000000000",
    "ffffffff-ffff-4fff-8000-000000000000",
    "00000000-0000-7000-8000-000000000000",
];
const TIME_UUIDS: [&str; 6] = [
    "00000000-0000-1000-8080-808080808080",
    "00000000-0000-1000-0000-000000000000",
    "00000000-0000-1000-7f7f-7f7f7f7f7f7f",
    "ffffffff-0000-1000-8080-808080808080",
    "00000000-0001-1000-8080-808080808080",
    "00000000-0000-1001-8080-808080808080",
];
const DECIMALS: [&str; 12] =
    ["-1E+100", "-123.45", "-1.5", "-1", "-1E-100", "0", "1E-100", "0.1", "1.00", "2.5", "100", "1E+100"];
const VARINTS: [&str; 11] = [
    "-1000000000000000000000000000000",
    "-256",
    "-129",
    "-128",
    "-1",
    "0",
    "1",
    "127",
    "128",
    "65536",
    "1000000000000000000000000000000",
];

/// Whether two values are the same to the bit, NaN included.
pub fn same(a: &Value, b: &Value) -> bool {
    let nan = |value: &Value| {
        matches!(value, Value::F32(float) if float.is_nan()) || matches!(value, Value::F64(float) if float.is_nan())
    };
    a == b && a.cluster_cmp(b) == Ordering::Equal || nan(a) && nan(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_a_type_rise() {
        for ty in Type::ALL {
            let values = of(ty);
            for (low, high) in values.iter().zip(values.iter().skip(1)) {
                assert_eq!(low.cluster_cmp(high), Ordering::Less, "{ty}: {low} {high}");
            }
        }
    }
}
