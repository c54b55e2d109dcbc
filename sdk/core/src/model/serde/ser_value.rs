//! A scalar of the user's becomes the value of a column.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::ser::{self, Impossible, Serialize, Serializer};
use uuid::Uuid;

use super::Fault;
use crate::model::{Date, Decimal, Time, Timestamp, Type, Value, Varint};

/// Serializes one scalar into a value of the given type; `None` comes out as absent.
#[derive(Clone, Copy)]
pub(super) struct ValueSerializer {
    pub(super) ty: Type,
}

type Absent = Option<Value>;

impl ValueSerializer {
    fn integer(self, number: i128) -> Result<Absent, Fault> {
        let fits = || Fault(format!("{number} is out of range for type {}", self.ty));
        Ok(Some(match self.ty {
            Type::I8 => Value::I8(number.try_into().map_err(|_| fits())?),
            Type::I16 => Value::I16(number.try_into().map_err(|_| fits())?),
            Type::I32 => Value::I32(number.try_into().map_err(|_| fits())?),
            Type::I64 => Value::I64(number.try_into().map_err(|_| fits())?),
            Type::Counter => Value::Counter(number.try_into().map_err(|_| fits())?),
            Type::Timestamp => Value::Timestamp(Timestamp(number.try_into().map_err(|_| fits())?)),
            Type::Date => Value::Date(Date(number.try_into().map_err(|_| fits())?)),
            Type::Time => Value::Time(Time(number.try_into().map_err(|_| fits())?)),
            Type::Varint => Value::Varint(Varint(number.into())),
            Type::Decimal => Decimal::new(number, 0).into(),
            other => return Err(Fault::mismatch("an integer", other)),
        }))
    }

    fn bytes(self, bytes: &[u8]) -> Result<Absent, Fault> {
        let uuid = || Uuid::from_slice(bytes).map_err(|_| Fault(format!("{} bytes are no UUID", bytes.len())));
        Ok(Some(match self.ty {
            Type::Blob => Value::from(bytes),
            Type::Uuid => Value::Uuid(uuid()?),
            Type::TimeUuid => Value::TimeUuid(uuid()?),
            Type::Inet => Value::Inet(address(bytes).ok_or_else(|| Fault::mismatch("a list of bytes", self.ty))?),
            other => return Err(Fault::mismatch("a list of bytes", other)),
        }))
    }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => <[u8; 4]>::try_from(octets).ok().map(|v4| Ipv4Addr::from(v4).into()),
        16 => <[u8; 16]>::try_from(octets).ok().map(|v6| Ipv6Addr::from(v6).into()),
        _ => None,
    }
}

macro_rules! integers {
    ($($method:ident: $type:ty),*) => {$(
        fn $method(self, number: $type) -> Result<Absent, Fault> {
            self.integer(i128::from(number))
        }
    )*};
}

impl Serializer for ValueSerializer {
    type Ok = Absent;
    type Error = Fault;
    type SerializeSeq = BytesSerializer;
    type SerializeTuple = BytesSerializer;
    type SerializeTupleStruct = Impossible<Absent, Fault>;
    type SerializeTupleVariant = Impossible<Absent, Fault>;
    type SerializeMap = Impossible<Absent, Fault>;
    type SerializeStruct = SystemTimeSerializer;
    type SerializeStructVariant = Impossible<Absent, Fault>;

    integers!(serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128);
    integers!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64);

    /// UUIDs and addresses come as their bytes.
    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, value: bool) -> Result<Absent, Fault> {
        match self.ty {
            Type::Bool => Ok(Some(Value::Bool(value))),
            other => Err(Fault::mismatch("a boolean", other)),
        }
    }

    fn serialize_f32(self, value: f32) -> Result<Absent, Fault> {
        match self.ty {
            Type::F32 => Ok(Some(Value::F32(value))),
            Type::F64 => Ok(Some(Value::F64(value.into()))),
            other => Err(Fault::mismatch("a floating-point number", other)),
        }
    }

    fn serialize_f64(self, value: f64) -> Result<Absent, Fault> {
        match self.ty {
            Type::F64 => Ok(Some(Value::F64(value))),
            other => Err(Fault::mismatch("a double-precision number", other)),
        }
    }

    fn serialize_char(self, value: char) -> Result<Absent, Fault> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Result<Absent, Fault> {
        let number = |fault: crate::model::ParseNumberError| Fault(fault.to_string());
        let uuid = || text.parse::<Uuid>().map_err(|_| Fault(format!("{text:?} is no UUID")));
        Ok(Some(match self.ty {
            Type::Text => Value::from(text),
            Type::Decimal => text.parse::<Decimal>().map_err(number)?.into(),
            Type::Varint => text.parse::<Varint>().map_err(number)?.into(),
            Type::Uuid => Value::Uuid(uuid()?),
            Type::TimeUuid => Value::TimeUuid(uuid()?),
            Type::Inet => Value::Inet(text.parse().map_err(|_| Fault(format!("{text:?} is no IP address")))?),
            other => return Err(Fault::mismatch("text", other)),
        }))
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Absent, Fault> {
        self.bytes(bytes)
    }

    fn serialize_none(self) -> Result<Absent, Fault> {
        Ok(None)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Absent, Fault> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Absent, Fault> {
        Err(Fault::mismatch("()", self.ty))
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<Absent, Fault> {
        Err(Fault::mismatch(name, self.ty))
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Absent, Fault> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<Absent, Fault> {
        value.serialize(self)
    }

    /// `IpAddr` comes as a variant that holds its octets.
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<Absent, Fault> {
        match self.ty {
            Type::Inet => value.serialize(self),
            other => Err(Fault::mismatch(name, other)),
        }
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<BytesSerializer, Fault> {
        Ok(BytesSerializer { target: self, bytes: Vec::with_capacity(len.unwrap_or(0)) })
    }

    fn serialize_tuple(self, len: usize) -> Result<BytesSerializer, Fault> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(self, name: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Fault> {
        Err(Fault::mismatch(name, self.ty))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Fault> {
        Err(Fault::mismatch(name, self.ty))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Fault> {
        Err(Fault::mismatch("a map", self.ty))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<SystemTimeSerializer, Fault> {
        match (self.ty, name) {
            (Type::Timestamp, "SystemTime") => Ok(SystemTimeSerializer { seconds: 0, nanos: 0 }),
            _ => Err(Fault::mismatch(name, self.ty)),
        }
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Fault> {
        Err(Fault::mismatch(name, self.ty))
    }
}

/// Gathers a list of `u8`.
pub(super) struct BytesSerializer {
    target: ValueSerializer,
    bytes: Vec<u8>,
}

impl BytesSerializer {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        match value.serialize(ValueSerializer { ty: Type::I16 }) {
            Ok(Some(Value::I16(byte))) => {
                let byte = u8::try_from(byte).map_err(|_| Fault(format!("{byte} is no byte")))?;
                self.bytes.push(byte);
                Ok(())
            }
            _ => Err(Fault::mismatch("a list", self.target.ty)),
        }
    }
}

impl ser::SerializeSeq for BytesSerializer {
    type Ok = Absent;
    type Error = Fault;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.push(value)
    }

    fn end(self) -> Result<Absent, Fault> {
        self.target.bytes(&self.bytes)
    }
}

impl ser::SerializeTuple for BytesSerializer {
    type Ok = Absent;
    type Error = Fault;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.push(value)
    }

    fn end(self) -> Result<Absent, Fault> {
        self.target.bytes(&self.bytes)
    }
}

/// Gathers the two fields that `std::time::SystemTime` serializes; times before 1970 can't be serialized by serde.
pub(super) struct SystemTimeSerializer {
    seconds: i64,
    nanos: i64,
}

impl ser::SerializeStruct for SystemTimeSerializer {
    type Ok = Absent;
    type Error = Fault;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Fault> {
        let Some(Value::I64(number)) = value.serialize(ValueSerializer { ty: Type::I64 })? else {
            return Err(Fault(format!("field {key} of a SystemTime is no number")));
        };
        match key {
            "secs_since_epoch" => self.seconds = number,
            _ => self.nanos = number,
        }
        Ok(())
    }

    fn end(self) -> Result<Absent, Fault> {
        let millis = self.seconds.checked_mul(1000).and_then(|millis| millis.checked_add(self.nanos / 1_000_000));
        let millis = millis.ok_or_else(|| Fault("the time is too far away".into()))?;
        Ok(Some(Value::Timestamp(Timestamp(millis))))
    }
}
