//! A tuple, a scalar or a struct of the user's becomes key values.

use serde::ser::{self, Impossible, Serialize, SerializeMap, SerializeStruct, Serializer};

use super::{Fault, ValueSerializer, in_column, missing};
use crate::error::{Error, Result};
use crate::model::{Column, Key, Type, Value};

pub(super) fn to_key<T: Serialize + ?Sized>(value: &T, columns: &[Column]) -> Result<Key> {
    let parts = value.serialize(KeySerializer { columns }).map_err(|fault| match fault.column {
        Some(column) => in_column(column, &Fault(fault.text)),
        None => Error::invalid(format!("a key: {}", fault.text)),
    })?;
    let values = match parts {
        Parts::Named(values) => {
            let named = columns.iter().zip(values);
            named.map(|(column, value)| value.ok_or_else(|| missing(column))).collect::<Result<_>>()?
        }
        Parts::Listed(values) => values,
    };
    let key = Key::new(values);
    key.check(columns)?;
    Ok(key)
}

enum Parts {
    Listed(Vec<Value>),
    Named(Vec<Option<Value>>),
}

/// A fault in a column, or in the shape of the whole.
#[derive(Debug)]
struct KeyFault<'a> {
    column: Option<&'a Column>,
    text: String,
}

impl std::fmt::Display for KeyFault<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for KeyFault<'_> {}

impl ser::Error for KeyFault<'_> {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self { column: None, text: message.to_string() }
    }
}

fn convert<'a, T: Serialize + ?Sized>(column: &'a Column, value: &T) -> Result<Option<Value>, KeyFault<'a>> {
    let convert = value.serialize(ValueSerializer { ty: column.ty });
    convert.map_err(|Fault(text)| KeyFault { column: Some(column), text })
}

#[derive(Clone, Copy)]
struct KeySerializer<'a> {
    columns: &'a [Column],
}

impl<'a> KeySerializer<'a> {
    /// A single value is a key of one column.
    fn single<T: Serialize + ?Sized>(self, value: &T) -> Result<Parts, KeyFault<'a>> {
        match self.columns {
            [column] => Ok(Parts::Named(vec![convert(column, value)?])),
            columns => {
                let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
                let text = format!("one value for {} key columns; give ({})", columns.len(), names.join(", "));
                Err(KeyFault { column: None, text })
            }
        }
    }
}

macro_rules! single {
    ($($method:ident: $type:ty),* $(,)?) => {$(
        fn $method(self, value: $type) -> Result<Parts, KeyFault<'a>> {
            self.single(&value)
        }
    )*};
}

fn no_key<'a, T>(found: &str) -> Result<T, KeyFault<'a>> {
    Err(KeyFault { column: None, text: format!("{found} is no key; give a value, a tuple, a struct or a Key") })
}

impl<'a> Serializer for KeySerializer<'a> {
    type Ok = Parts;
    type Error = KeyFault<'a>;
    type SerializeSeq = ListSerializer<'a>;
    type SerializeTuple = ListSerializer<'a>;
    type SerializeTupleStruct = ListSerializer<'a>;
    type SerializeTupleVariant = Impossible<Parts, KeyFault<'a>>;
    type SerializeMap = NamedSerializer<'a>;
    type SerializeStruct = NamedSerializer<'a>;
    type SerializeStructVariant = Impossible<Parts, KeyFault<'a>>;

    single!(serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64);
    single!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64);
    single!(serialize_f32: f32, serialize_f64: f64, serialize_char: char, serialize_str: &str);

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Parts, KeyFault<'a>> {
        struct Bytes<'b>(&'b [u8]);
        impl Serialize for Bytes<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bytes(self.0)
            }
        }
        self.single(&Bytes(bytes))
    }

    fn serialize_none(self) -> Result<Parts, KeyFault<'a>> {
        no_key("None")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Parts, KeyFault<'a>> {
        value.serialize(self)
    }

    /// `()` is the empty prefix.
    fn serialize_unit(self) -> Result<Parts, KeyFault<'a>> {
        Ok(Parts::Listed(Vec::new()))
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<Parts, KeyFault<'a>> {
        no_key(name)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<Parts, KeyFault<'a>> {
        self.single(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Parts, KeyFault<'a>> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<Parts, KeyFault<'a>> {
        match (self.columns, name) {
            ([Column { ty: Type::Inet, .. }], "IpAddr") => self.single(value),
            _ => no_key(name),
        }
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<ListSerializer<'a>, KeyFault<'a>> {
        Ok(ListSerializer { columns: self.columns, values: Vec::new(), bytes: Vec::new() })
    }

    fn serialize_tuple(self, len: usize) -> Result<ListSerializer<'a>, KeyFault<'a>> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<ListSerializer<'a>, KeyFault<'a>> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, KeyFault<'a>> {
        no_key(name)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<NamedSerializer<'a>, KeyFault<'a>> {
        Ok(NamedSerializer { columns: self.columns, values: vec![None; self.columns.len()], name: None })
    }

    fn serialize_struct(self, _: &'static str, len: usize) -> Result<NamedSerializer<'a>, KeyFault<'a>> {
        self.serialize_map(Some(len))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, KeyFault<'a>> {
        no_key(name)
    }
}

/// Takes values in the order of the columns. A list of `u8` for a single column of bytes is that column's value.
struct ListSerializer<'a> {
    columns: &'a [Column],
    values: Vec<Value>,
    bytes: Vec<u8>,
}

impl<'a> ListSerializer<'a> {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), KeyFault<'a>> {
        if let [Column { ty: Type::Blob | Type::Inet | Type::Uuid | Type::TimeUuid, .. }] = self.columns
            && let Ok(Some(Value::I16(byte))) = value.serialize(ValueSerializer { ty: Type::I16 })
            && let Ok(byte) = u8::try_from(byte)
        {
            self.bytes.push(byte);
            return Ok(());
        }
        let columns = self.columns;
        let Some(column) = columns.get(self.values.len()) else {
            let text = format!("more values than the {} key columns", columns.len());
            return Err(KeyFault { column: None, text });
        };
        match convert(column, value)? {
            Some(value) => self.values.push(value),
            None => return Err(KeyFault { column: Some(column), text: "a key column can't be absent".into() }),
        }
        Ok(())
    }

    fn finish(self) -> Result<Parts, KeyFault<'a>> {
        match self.columns {
            [column] if self.values.is_empty() => {
                struct List<'b>(&'b [u8]);
                impl Serialize for List<'_> {
                    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                        serializer.serialize_bytes(self.0)
                    }
                }
                Ok(Parts::Named(vec![convert(column, &List(&self.bytes))?]))
            }
            _ => Ok(Parts::Listed(self.values)),
        }
    }
}

macro_rules! list {
    ($($trait:ident::$method:ident),*) => {$(
        impl<'a> ser::$trait for ListSerializer<'a> {
            type Ok = Parts;
            type Error = KeyFault<'a>;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), KeyFault<'a>> {
                self.push(value)
            }

            fn end(self) -> Result<Parts, KeyFault<'a>> {
                self.finish()
            }
        }
    )*};
}

list!(SerializeSeq::serialize_element, SerializeTuple::serialize_element, SerializeTupleStruct::serialize_field);

/// Takes the fields that are key columns and leaves the others, so a whole row serves as its own key.
struct NamedSerializer<'a> {
    columns: &'a [Column],
    values: Vec<Option<Value>>,
    name: Option<String>,
}

impl<'a> NamedSerializer<'a> {
    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), KeyFault<'a>> {
        let mut named = self.columns.iter().zip(&mut self.values);
        if let Some((column, place)) = named.find(|(column, _)| &*column.name == name) {
            *place = convert(column, value)?;
        }
        Ok(())
    }
}

impl<'a> SerializeStruct for NamedSerializer<'a> {
    type Ok = Parts;
    type Error = KeyFault<'a>;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), KeyFault<'a>> {
        self.field(name, value)
    }

    fn end(self) -> Result<Parts, KeyFault<'a>> {
        Ok(Parts::Named(self.values))
    }
}

impl<'a> SerializeMap for NamedSerializer<'a> {
    type Ok = Parts;
    type Error = KeyFault<'a>;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), KeyFault<'a>> {
        match key.serialize(ValueSerializer { ty: Type::Text }) {
            Ok(Some(Value::Text(name))) => {
                self.name = Some(name);
                Ok(())
            }
            _ => no_key("a map whose keys aren't column names"),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), KeyFault<'a>> {
        match self.name.take() {
            Some(name) => self.field(&name, value),
            None => no_key("a map value without a key"),
        }
    }

    fn end(self) -> Result<Parts, KeyFault<'a>> {
        Ok(Parts::Named(self.values))
    }
}
