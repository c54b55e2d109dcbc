//! One value of a column.

use std::cmp::Ordering;
use std::fmt;
use std::net::IpAddr;

use bytes::Bytes;
use num_bigint::{BigInt, Sign};
use uuid::Uuid;

use super::{Date, Decimal, Time, Timestamp, Type, Varint};

/// A value of any column type. Absence is no value: an absent column has none, and an empty text or blob is not absent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A [`Type::Bool`].
    Bool(bool),
    /// A [`Type::I8`].
    I8(i8),
    /// A [`Type::I16`].
    I16(i16),
    /// A [`Type::I32`].
    I32(i32),
    /// A [`Type::I64`].
    I64(i64),
    /// A [`Type::F32`].
    F32(f32),
    /// A [`Type::F64`].
    F64(f64),
    /// A [`Type::Text`].
    Text(String),
    /// A [`Type::Blob`].
    Blob(Bytes),
    /// A [`Type::Timestamp`].
    Timestamp(Timestamp),
    /// A [`Type::Date`].
    Date(Date),
    /// A [`Type::Time`].
    Time(Time),
    /// A [`Type::Uuid`].
    Uuid(Uuid),
    /// A [`Type::TimeUuid`].
    TimeUuid(Uuid),
    /// A [`Type::Inet`].
    Inet(IpAddr),
    /// A [`Type::Decimal`].
    Decimal(Box<Decimal>),
    /// A [`Type::Varint`].
    Varint(Varint),
    /// A [`Type::Counter`], as read; counters are written by increments.
    Counter(i64),
}

impl Value {
    /// The type that this is a value of.
    pub fn ty(&self) -> Type {
        match self {
            Self::Bool(_) => Type::Bool,
            Self::I8(_) => Type::I8,
            Self::I16(_) => Type::I16,
            Self::I32(_) => Type::I32,
            Self::I64(_) => Type::I64,
            Self::F32(_) => Type::F32,
            Self::F64(_) => Type::F64,
            Self::Text(_) => Type::Text,
            Self::Blob(_) => Type::Blob,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Date(_) => Type::Date,
            Self::Time(_) => Type::Time,
            Self::Uuid(_) => Type::Uuid,
            Self::TimeUuid(_) => Type::TimeUuid,
            Self::Inet(_) => Type::Inet,
            Self::Decimal(_) => Type::Decimal,
            Self::Varint(_) => Type::Varint,
            Self::Counter(_) => Type::Counter,
        }
    }

    /// Whether all of it is in place.
    pub(crate) fn is_small(&self) -> bool {
        !matches!(self, Self::Text(_) | Self::Blob(_) | Self::Decimal(_) | Self::Varint(_))
    }

    /// How many bytes it takes on the wire; what size limits are checked against.
    pub fn size(&self) -> usize {
        match self {
            Self::Bool(_) | Self::I8(_) => 1,
            Self::I16(_) => 2,
            Self::I32(_) | Self::F32(_) | Self::Date(_) => 4,
            Self::I64(_) | Self::F64(_) | Self::Timestamp(_) | Self::Time(_) | Self::Counter(_) => 8,
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
            Self::Uuid(_) | Self::TimeUuid(_) => 16,
            Self::Inet(IpAddr::V4(_)) => 4,
            Self::Inet(IpAddr::V6(_)) => 16,
            Self::Decimal(decimal) => 4 + varint_size(&decimal.unscaled),
            Self::Varint(varint) => varint_size(&varint.0),
        }
    }

    /// The order of clustering columns, as Cassandra has it: decimals by size, every NaN equal and largest, -0.0 before 0.0,
    /// time UUIDs by time and then by signed bytes, other UUIDs by version first, addresses by their raw bytes. Values of
    /// different types compare by type.
    ///
    /// ```
    /// use peristyle_core::model::Value;
    /// use std::cmp::Ordering;
    ///
    /// assert_eq!(Value::from(-0.0).cluster_cmp(&Value::from(0.0)), Ordering::Less);
    /// assert_eq!(Value::from(f64::NAN).cluster_cmp(&Value::from(-f64::NAN)), Ordering::Equal);
    /// ```
    pub fn cluster_cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::I8(a), Self::I8(b)) => a.cmp(b),
            (Self::I16(a), Self::I16(b)) => a.cmp(b),
            (Self::I32(a), Self::I32(b)) => a.cmp(b),
            (Self::I64(a), Self::I64(b)) | (Self::Counter(a), Self::Counter(b)) => a.cmp(b),
            (Self::F32(a), Self::F32(b)) => float_cmp(f64::from(*a), f64::from(*b)),
            (Self::F64(a), Self::F64(b)) => float_cmp(*a, *b),
            (Self::Text(a), Self::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Blob(a), Self::Blob(b)) => a.cmp(b),
            (Self::Timestamp(a), Self::Timestamp(b)) => a.cmp(b),
            (Self::Date(a), Self::Date(b)) => a.cmp(b),
            (Self::Time(a), Self::Time(b)) => a.cmp(b),
            (Self::Uuid(a), Self::Uuid(b)) => uuid_rank(a).cmp(&uuid_rank(b)),
            (Self::TimeUuid(a), Self::TimeUuid(b)) => timeuuid_rank(a).cmp(&timeuuid_rank(b)),
            (Self::Inet(a), Self::Inet(b)) => octets(a).cmp(&octets(b)),
            (Self::Decimal(a), Self::Decimal(b)) => a.numeric_cmp(b),
            (Self::Varint(a), Self::Varint(b)) => a.cmp(b),
            _ => self.ty().name().cmp(other.ty().name()),
        }
    }
}

/// The length of the shortest two's complement; -128 needs one byte, as 127 does.
fn varint_size(number: &BigInt) -> usize {
    let bits = if number.sign() == Sign::Minus { (number + 1_u8).bits() } else { number.bits() };
    usize::try_from(bits / 8 + 1).unwrap_or(usize::MAX)
}

fn float_cmp(a: f64, b: f64) -> Ordering {
    a.is_nan().cmp(&b.is_nan()).then_with(|| if a.is_nan() { Ordering::Equal } else { a.total_cmp(&b) })
}

fn octets(address: &IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// The 60-bit time of a version 1 UUID, most significant byte first.
fn uuid_time(uuid: &Uuid) -> u64 {
    let (low, middle, high, _) = uuid.as_fields();
    (u64::from(high & 0x0fff) << 48) | (u64::from(middle) << 32) | u64::from(low)
}

fn uuid_rank(uuid: &Uuid) -> (usize, u64, [u8; 16]) {
    let version = uuid.get_version_num();
    let time = if version == 1 { uuid_time(uuid) } else { 0 };
    (version, time, *uuid.as_bytes())
}

fn timeuuid_rank(uuid: &Uuid) -> (u64, [u8; 8]) {
    let (_, _, _, rest) = uuid.as_fields();
    (uuid_time(uuid), rest.map(|byte| byte ^ 0x80))
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::I8(value) => value.fmt(f),
            Self::I16(value) => value.fmt(f),
            Self::I32(value) => value.fmt(f),
            Self::I64(value) | Self::Counter(value) => value.fmt(f),
            Self::F32(value) => value.fmt(f),
            Self::F64(value) => value.fmt(f),
            Self::Text(value) => write!(f, "{value:?}"),
            Self::Blob(value) => {
                f.write_str("0x")?;
                value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Self::Timestamp(value) => write!(f, "{} ms", value.0),
            Self::Date(value) => write!(f, "day {}", value.0),
            Self::Time(value) => write!(f, "{} ns", value.0),
            Self::Uuid(value) | Self::TimeUuid(value) => value.fmt(f),
            Self::Inet(value) => value.fmt(f),
            Self::Decimal(value) => value.fmt(f),
            Self::Varint(value) => value.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_cassandras() {
        let uuid = |text: &str| Uuid::parse_str(text).unwrap();
        let rising: Vec<Vec<Value>> = vec![
            [f64::NEG_INFINITY, -0.0, 0.0, f64::INFINITY, f64::NAN].map(Value::from).to_vec(),
            ["0.0.0.0", "::", "::1", "9.255.0.1", "10.0.0.1", "a00:1::", "127.0.0.1", "fe80::1", "255.255.255.255"]
                .map(|text| Value::Inet(text.parse().unwrap()))
                .to_vec(),
            ["", "\0", "A", "a", "a\0", "ab", "é", "\u{ffff}", "\u{1f600}"].map(Value::from).to_vec(),
            [
                "ffffffff-0000-1000-7f7f-7f7f7f7f7f7f",
                "00000000-0001-1000-8080-808080808080",
                "00000000-0000-1001-8080-808080808080",
                "00000000-0000-1001-0000-000000000000",
            ]
            .map(|text| Value::TimeUuid(uuid(text)))
            .to_vec(),
            [
                "ffffffff-ffff-0fff-8000-000000000000",
                "00000000-0000-1000-7f00-000000000000",
                "00000000-0000-1000-8000-000000000000",
                "ffffffff-0000-1000-8000-000000000000",
                "00000000-0000-1001-8000-000000000000",
                "00000000-0000-4000-8000-000000000000",
                "00000000-0000-7000-8000-000000000000",
            ]
            .map(|text| Value::Uuid(uuid(text)))
            .to_vec(),
        ];
        for values in rising {
            for (low, high) in values.iter().zip(&values[1..]) {
                assert_eq!(low.cluster_cmp(high), Ordering::Less, "{low} {high}");
                assert_eq!(high.cluster_cmp(low), Ordering::Greater, "{high} {low}");
            }
        }
    }

    #[test]
    fn sizes_are_those_of_the_wire() {
        for (number, size) in [(0, 1), (127, 1), (128, 2), (-128, 1), (32_767, 2), (32_768, 3)] {
            let varint = Value::Varint(Varint::from(number));
            assert_eq!(varint.size(), size, "{number}");
        }
        assert_eq!(Value::from("é").size(), 2);
    }
}
