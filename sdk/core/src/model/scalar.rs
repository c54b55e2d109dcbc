//! Column types and the newtypes of those that Rust has no type for.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The type of a column. The name in TOML is the variant in lower case; CQL's names (`int`, `bigint`, `double`, …) are
/// understood too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum Type {
    /// `true` or `false`.
    Bool,
    /// 8-bit signed integer; CQL `tinyint`.
    I8,
    /// 16-bit signed integer; CQL `smallint`.
    I16,
    /// 32-bit signed integer; CQL `int`.
    I32,
    /// 64-bit signed integer; CQL `bigint`.
    I64,
    /// IEEE 754 single; CQL `float`.
    F32,
    /// IEEE 754 double; CQL `double`.
    F64,
    /// UTF-8 text; CQL `text`, `varchar`, `ascii`.
    Text,
    /// Bytes.
    Blob,
    /// An instant, in milliseconds since 1970-01-01 UTC.
    Timestamp,
    /// A day of the proleptic Gregorian calendar.
    Date,
    /// A time of the day, in nanoseconds since midnight.
    Time,
    /// Any UUID.
    Uuid,
    /// A version 1 UUID, ordered by its time.
    TimeUuid,
    /// An IPv4 or IPv6 address.
    Inet,
    /// A decimal number of any size: unscaled · 10^-scale.
    Decimal,
    /// An integer of any size.
    Varint,
    /// A 64-bit counter; only in counter tables, never in a key.
    Counter,
}

impl Type {
    /// Every type.
    pub const ALL: [Self; 18] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F32,
        Self::F64,
        Self::Text,
        Self::Blob,
        Self::Timestamp,
        Self::Date,
        Self::Time,
        Self::Uuid,
        Self::TimeUuid,
        Self::Inet,
        Self::Decimal,
        Self::Varint,
        Self::Counter,
    ];

    /// The name used in TOML and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Text => "text",
            Self::Blob => "blob",
            Self::Timestamp => "timestamp",
            Self::Date => "date",
            Self::Time => "time",
            Self::Uuid => "uuid",
            Self::TimeUuid => "timeuuid",
            Self::Inet => "inet",
            Self::Decimal => "decimal",
            Self::Varint => "varint",
            Self::Counter => "counter",
        }
    }

    fn from_cql_name(name: &str) -> Option<Self> {
        Some(match name {
            "boolean" => Self::Bool,
            "tinyint" => Self::I8,
            "smallint" => Self::I16,
            "int" => Self::I32,
            "bigint" => Self::I64,
            "float" => Self::F32,
            "double" => Self::F64,
            "varchar" | "ascii" => Self::Text,
            _ => return None,
        })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Type {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let lower = name.to_ascii_lowercase();
        let own = Self::ALL.into_iter().find(|candidate| candidate.name() == lower);
        own.or_else(|| Self::from_cql_name(&lower)).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|known| known.name()).collect();
            format!("unknown column type {name:?}; the types are {}", known.join(", "))
        })
    }
}

impl TryFrom<String> for Type {
    type Error = String;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse()
    }
}

impl From<Type> for &'static str {
    fn from(ty: Type) -> Self {
        ty.name()
    }
}

/// An instant, in milliseconds since 1970-01-01 UTC; may be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The current time of the system's clock.
    pub fn now() -> Self {
        SystemTime::now().into()
    }
}

impl From<SystemTime> for Timestamp {
    /// Rounds down to a millisecond, and saturates beyond 292 million years.
    fn from(time: SystemTime) -> Self {
        let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(match time.duration_since(UNIX_EPOCH) {
            Ok(after) => millis(after),
            Err(before) => -millis(before.duration() + Duration::from_nanos(999_999)),
        })
    }
}

/// A day, counted from 1970-01-01; may be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Date(pub i32);

/// A time of the day, in nanoseconds since midnight: 0 to 86 399 999 999 999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Time(pub i64);

impl Time {
    /// The last nanosecond of the day.
    pub const MAX: Self = Self(86_399_999_999_999);

    /// Whether it lies within a day.
    pub fn is_valid(self) -> bool {
        (0..=Self::MAX.0).contains(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_reads_its_own_name_and_cqls() {
        for ty in Type::ALL {
            assert_eq!(ty.name().parse(), Ok(ty));
        }
        assert_eq!("BIGINT".parse(), Ok(Type::I64));
        let message = "strnig".parse::<Type>().unwrap_err();
        assert!(message.contains("\"strnig\"") && message.contains("text"), "{message}");
    }

    #[test]
    fn an_instant_rounds_towards_the_past() {
        let before = UNIX_EPOCH - Duration::from_nanos(1);
        assert_eq!(Timestamp::from(before), Timestamp(-1));
        assert_eq!(Timestamp::from(UNIX_EPOCH + Duration::from_nanos(1_999_999)), Timestamp(1));
    }
}
