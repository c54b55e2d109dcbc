//! A stored row becomes a struct, map or tuple of the user's.

use std::net::IpAddr;

use serde::de::value::{SeqDeserializer, StrDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::Fault;
use crate::model::{StoredRow, TableSpec, Value};

/// Gives a row to serde: as a map of the present columns, or as a list of all of them.
pub(super) struct RowDeserializer<'a> {
    spec: &'a TableSpec,
    values: Vec<Option<Value>>,
}

impl<'a> RowDeserializer<'a> {
    pub(super) fn new(row: StoredRow, spec: &'a TableSpec) -> Self {
        Self { spec, values: row.values }
    }
}

impl<'de> Deserializer<'de> for RowDeserializer<'_> {
    type Error = Fault;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let columns = self.spec.columns().iter().zip(self.values);
        visitor.visit_map(PresentColumns { columns, pending: None })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_seq(SeqDeserializer::new(self.values.into_iter().map(Cell)))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct map struct enum
        identifier ignored_any
    }
}

struct PresentColumns<I> {
    columns: I,
    pending: Option<Value>,
}

impl<'de, 'a, I> MapAccess<'de> for PresentColumns<I>
where
    I: Iterator<Item = (&'a crate::model::Column, Option<Value>)>,
{
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let present = self.columns.find_map(|(column, value)| Some((column, value?)));
        let Some((column, value)) = present else { return Ok(None) };
        self.pending = Some(value);
        let name: StrDeserializer<'_, Fault> = (&*column.name).into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        seed.deserialize(Cell(self.pending.take()))
    }
}

/// One column's value, or its absence.
struct Cell(Option<Value>);

impl IntoDeserializer<'_, Fault> for Cell {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

fn absent<T>() -> Result<T, Fault> {
    Err(Fault("a column is absent; read it into an Option".into()))
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

macro_rules! number {
    ($($method:ident)*) => {$(
        /// Numbers of any size come as the number that is asked for, if they fit.
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            match self.0 {
                Some(Value::Varint(varint)) => match i64::try_from(&varint.0) {
                    Ok(number) => visitor.visit_i64(number),
                    Err(_) => Err(Fault(format!("{varint} is too large a number"))),
                },
                _ => self.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Cell {
    type Error = Fault;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Some(value) = self.0 else { return visitor.visit_none() };
        match value {
            Value::Bool(value) => visitor.visit_bool(value),
            Value::I8(value) => visitor.visit_i8(value),
            Value::I16(value) => visitor.visit_i16(value),
            Value::I32(value) => visitor.visit_i32(value),
            Value::I64(value) | Value::Counter(value) => visitor.visit_i64(value),
            Value::F32(value) => visitor.visit_f32(value),
            Value::F64(value) => visitor.visit_f64(value),
            Value::Text(value) => visitor.visit_string(value),
            Value::Blob(value) => visitor.visit_byte_buf(value.into()),
            Value::Timestamp(value) => visitor.visit_i64(value.0),
            Value::Date(value) => visitor.visit_i32(value.0),
            Value::Time(value) => visitor.visit_i64(value.0),
            Value::Uuid(value) | Value::TimeUuid(value) => visitor.visit_bytes(value.as_bytes()),
            Value::Inet(value) => visitor.visit_byte_buf(octets(value)),
            Value::Decimal(value) => visitor.visit_string(value.to_string()),
            Value::Varint(value) => visitor.visit_string(value.to_string()),
        }
    }

    number!(deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128);
    number!(deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128);

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Some(_) => visitor.visit_some(self),
            None => visitor.visit_none(),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    /// Text asked for where an address or UUID is stored comes as people write it.
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Some(Value::Inet(address)) => visitor.visit_string(address.to_string()),
            Some(Value::Uuid(uuid) | Value::TimeUuid(uuid)) => visitor.visit_string(uuid.to_string()),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_string(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Some(Value::Blob(bytes)) => visitor.visit_seq(SeqDeserializer::new(bytes.into_iter())),
            Some(Value::Inet(address)) => visitor.visit_seq(SeqDeserializer::new(octets(address).into_iter())),
            Some(Value::Uuid(uuid) | Value::TimeUuid(uuid)) => {
                visitor.visit_seq(SeqDeserializer::new(uuid.as_bytes().iter().copied()))
            }
            Some(other) => Err(Fault(format!("a {} is no list", other.ty()))),
            None => absent(),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    /// `SystemTime` is a struct to serde.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.0 {
            Some(Value::Timestamp(time)) if name == "SystemTime" => {
                let seconds = u64::try_from(time.0.div_euclid(1000))
                    .map_err(|_| Fault("a time before 1970 can't be read into a SystemTime".into()))?;
                let nanos = u64::try_from(time.0.rem_euclid(1000) * 1_000_000).unwrap_or(0);
                visitor.visit_seq(SeqDeserializer::new([seconds, nanos].into_iter()))
            }
            Some(other) => Err(Fault(format!("a {} is no {name}", other.ty()))),
            None => absent(),
        }
    }

    /// Text is a unit variant; an address is `IpAddr`'s variant with its octets.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.0 {
            Some(Value::Text(text)) => {
                let variant: StringDeserializer<Fault> = text.into_deserializer();
                visitor.visit_enum(variant)
            }
            Some(Value::Inet(address)) => visitor.visit_enum(AddressVariant(address)),
            Some(other) => Err(Fault(format!("a {} is no {name}", other.ty()))),
            None => absent(),
        }
    }

    forward_to_deserialize_any! {
        bool f32 f64 char bytes byte_buf unit unit_struct tuple_struct map identifier ignored_any
    }
}

struct AddressVariant(IpAddr);

impl<'de> EnumAccess<'de> for AddressVariant {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let name = if self.0.is_ipv4() { "V4" } else { "V6" };
        let variant: StrDeserializer<'_, Fault> = name.into_deserializer();
        Ok((seed.deserialize(variant)?, self))
    }
}

impl<'de> VariantAccess<'de> for AddressVariant {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Err(Fault("an address has octets".into()))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(Cell(Some(Value::Inet(self.0))))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Fault> {
        Cell(Some(Value::Inet(self.0))).deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Fault> {
        Err(Fault("an address is no struct".into()))
    }
}
