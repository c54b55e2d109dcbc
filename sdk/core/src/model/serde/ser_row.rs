//! A struct or map of the user's becomes the parts of a row.

use serde::ser::{Impossible, Serialize, SerializeMap, SerializeStruct, Serializer};
use smallvec::SmallVec;

use super::{Fault, RowParts, ValueSerializer, in_column, missing};
use crate::error::{Error, Result};
use crate::model::key::check_value;
use crate::model::{Key, RowValues, TableSpec, Type, Value};

pub(super) fn to_parts<T: Serialize + ?Sized>(value: &T, spec: &TableSpec) -> Result<RowParts> {
    let mut builder = PartsBuilder::new(spec);
    match value.serialize(RowSerializer(&mut builder)) {
        Ok(()) => builder.finish(),
        Err(RowFault::Typed(error)) => Err(error),
        Err(RowFault::Text(text)) => Err(Error::invalid(format!("a row of table {}: {text}", spec.name()))),
    }
}

/// Gathers values by column index into key and cells.
pub(super) struct PartsBuilder<'a> {
    spec: &'a TableSpec,
    /// The first values of the key.
    keys: SmallVec<[Value; 4]>,
    /// Values of the key that came before those in front of them.
    early: Vec<(usize, Value)>,
    values: RowValues,
    /// Where the next field is looked for first: structs mostly list their fields in the order of the table.
    next: usize,
}

impl<'a> PartsBuilder<'a> {
    pub(super) fn new(spec: &'a TableSpec) -> Self {
        Self { spec, keys: SmallVec::new(), early: Vec::new(), values: RowValues::default(), next: 0 }
    }

    /// Puts a value into its column.
    pub(super) fn set(&mut self, index: usize, value: Value) -> Result<()> {
        if let Some(column) = self.spec.columns().get(index) {
            check_value(column, &value)?;
        }
        if index >= self.spec.key_len() {
            self.values.push(index, value);
        } else if let Some(place) = self.keys.get_mut(index) {
            *place = value;
        } else if index == self.keys.len() {
            self.keys.push(value);
        } else {
            self.early.push((index, value));
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<RowParts> {
        while let Some(column) = self.spec.primary_key().get(self.keys.len()) {
            let early = self.early.iter().rposition(|(index, _)| *index == self.keys.len());
            let (_, value) = early.map(|place| self.early.swap_remove(place)).ok_or_else(|| missing(column))?;
            self.keys.push(value);
        }
        Ok((Key::taken(&mut self.keys), self.values))
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), RowFault> {
        let index = match self.spec.columns().get(self.next) {
            Some(column) if &*column.name == name => self.next,
            _ => self.spec.require(name)?,
        };
        self.next = index + 1;
        let Some(column) = self.spec.columns().get(index) else { return Ok(()) };
        let value = value.serialize(ValueSerializer { ty: column.ty }).map_err(|fault| in_column(column, &fault))?;
        match value {
            Some(value) => Ok(self.set(index, value)?),
            None => Ok(()),
        }
    }
}

/// A fault that already knows its column, or the text of one that doesn't.
#[derive(Debug)]
enum RowFault {
    Typed(Error),
    Text(String),
}

impl From<Error> for RowFault {
    fn from(error: Error) -> Self {
        Self::Typed(error)
    }
}

impl std::fmt::Display for RowFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Typed(error) => error.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for RowFault {}

impl serde::ser::Error for RowFault {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::Text(message.to_string())
    }
}

fn not_a_row<T>(found: &str) -> Result<T, RowFault> {
    Err(RowFault::Text(format!("{found} is not a row; give a struct, a map or a Row")))
}

struct RowSerializer<'b, 'a>(&'b mut PartsBuilder<'a>);

macro_rules! refuse {
    ($($method:ident: $type:ty),* $(,)?) => {$(
        fn $method(self, _: $type) -> Result<(), RowFault> {
            not_a_row(stringify!($type))
        }
    )*};
}

impl<'b, 'a> Serializer for RowSerializer<'b, 'a> {
    type Ok = ();
    type Error = RowFault;
    type SerializeSeq = Impossible<(), RowFault>;
    type SerializeTuple = Impossible<(), RowFault>;
    type SerializeTupleStruct = Impossible<(), RowFault>;
    type SerializeTupleVariant = Impossible<(), RowFault>;
    type SerializeMap = MapSerializer<'b, 'a>;
    type SerializeStruct = StructSerializer<'b, 'a>;
    type SerializeStructVariant = Impossible<(), RowFault>;

    refuse!(serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64);
    refuse!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64);
    refuse!(serialize_f32: f32, serialize_f64: f64, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8]);
    refuse!(serialize_unit_struct: &'static str);

    fn serialize_none(self) -> Result<(), RowFault> {
        not_a_row("None")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), RowFault> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), RowFault> {
        not_a_row("()")
    }

    fn serialize_unit_variant(self, name: &'static str, _: u32, _: &'static str) -> Result<(), RowFault> {
        not_a_row(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), RowFault> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), RowFault> {
        not_a_row(name)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, RowFault> {
        not_a_row("a list")
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, RowFault> {
        not_a_row("a tuple")
    }

    fn serialize_tuple_struct(self, name: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, RowFault> {
        not_a_row(name)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, RowFault> {
        not_a_row(name)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, RowFault> {
        Ok(MapSerializer { builder: self.0, key: None })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, RowFault> {
        Ok(StructSerializer(self.0))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, RowFault> {
        not_a_row(name)
    }
}

struct StructSerializer<'b, 'a>(&'b mut PartsBuilder<'a>);

impl SerializeStruct for StructSerializer<'_, '_> {
    type Ok = ();
    type Error = RowFault;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), RowFault> {
        self.0.field(key, value)
    }

    fn end(self) -> Result<(), RowFault> {
        Ok(())
    }
}

struct MapSerializer<'b, 'a> {
    builder: &'b mut PartsBuilder<'a>,
    key: Option<String>,
}

impl SerializeMap for MapSerializer<'_, '_> {
    type Ok = ();
    type Error = RowFault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), RowFault> {
        match key.serialize(ValueSerializer { ty: Type::Text }) {
            Ok(Some(Value::Text(name))) => {
                self.key = Some(name);
                Ok(())
            }
            Ok(_) => not_a_row("a map whose keys aren't column names"),
            Err(Fault(fault)) => Err(RowFault::Text(format!("a column name: {fault}"))),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), RowFault> {
        match self.key.take() {
            Some(name) => self.builder.field(&name, value),
            None => not_a_row("a map value without a key"),
        }
    }

    fn end(self) -> Result<(), RowFault> {
        Ok(())
    }
}
