//! Values from and to Rust's own types.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::SystemTime;

use bytes::Bytes;
use uuid::Uuid;

use super::{Date, Decimal, Time, Timestamp, Type, Value, Varint};

macro_rules! values {
    ($($rust:ty => $variant:ident),* $(,)?) => {$(
        impl From<$rust> for Value {
            fn from(value: $rust) -> Self {
                Self::$variant(value)
            }
        }

        impl TryFrom<Value> for $rust {
            type Error = FromValueError;

            fn try_from(value: Value) -> Result<Self, Self::Error> {
                match value {
                    Value::$variant(value) => Ok(value),
                    other => Err(FromValueError { found: other.ty(), expected: Type::$variant }),
                }
            }
        }
    )*};
}

values! {
    bool => Bool,
    i8 => I8,
    i16 => I16,
    i32 => I32,
    f32 => F32,
    f64 => F64,
    String => Text,
    Bytes => Blob,
    Timestamp => Timestamp,
    Date => Date,
    Time => Time,
    IpAddr => Inet,
    Varint => Varint,
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::I64(value)
    }
}

impl TryFrom<Value> for i64 {
    type Error = FromValueError;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match value {
            Value::I64(value) | Value::Counter(value) => Ok(value),
            other => Err(FromValueError { found: other.ty(), expected: Type::I64 }),
        }
    }
}

impl From<Uuid> for Value {
    fn from(value: Uuid) -> Self {
        Self::Uuid(value)
    }
}

impl TryFrom<Value> for Uuid {
    type Error = FromValueError;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match value {
            Value::Uuid(value) | Value::TimeUuid(value) => Ok(value),
            other => Err(FromValueError { found: other.ty(), expected: Type::Uuid }),
        }
    }
}

impl From<Decimal> for Value {
    fn from(value: Decimal) -> Self {
        Self::Decimal(Box::new(value))
    }
}

impl TryFrom<Value> for Decimal {
    type Error = FromValueError;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match value {
            Value::Decimal(value) => Ok(*value),
            other => Err(FromValueError { found: other.ty(), expected: Type::Decimal }),
        }
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Blob(value.into())
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Self {
        Self::Blob(Bytes::copy_from_slice(value))
    }
}

impl From<SystemTime> for Value {
    fn from(value: SystemTime) -> Self {
        Self::Timestamp(value.into())
    }
}

impl From<Ipv4Addr> for Value {
    fn from(value: Ipv4Addr) -> Self {
        Self::Inet(value.into())
    }
}

impl From<Ipv6Addr> for Value {
    fn from(value: Ipv6Addr) -> Self {
        Self::Inet(value.into())
    }
}

/// A value of another type than the one asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FromValueError {
    found: Type,
    expected: Type,
}

impl fmt::Display for FromValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected a value of type {}, found {}", self.expected, self.found)
    }
}

impl std::error::Error for FromValueError {}
