//! Structs as bytes, field by field and from borrowed data.
//!
//! The calls for rows are written so: the generated structs own all that they hold, and put the name of each field on the heap.

use thrift::protocol::{TFieldIdentifier, TListIdentifier, TMapIdentifier, TOutputProtocol, TStructIdentifier, TType};

/// Names aren't sent.
const UNNAMED: TStructIdentifier = TStructIdentifier { name: String::new() };

/// A struct that is being written.
pub(super) struct Fields<'a, P> {
    out: &'a mut P,
}

impl<'a, P: TOutputProtocol> Fields<'a, P> {
    pub(super) fn begin(out: &'a mut P) -> thrift::Result<Self> {
        out.write_struct_begin(&UNNAMED)?;
        Ok(Self { out })
    }

    pub(super) fn end(self) -> thrift::Result<()> {
        self.out.write_field_stop()?;
        self.out.write_struct_end()
    }

    /// A field of this type, whose value `write` writes.
    pub(super) fn field(
        &mut self,
        id: i16,
        field_type: TType,
        write: impl FnOnce(&mut P) -> thrift::Result<()>,
    ) -> thrift::Result<()> {
        self.out.write_field_begin(&TFieldIdentifier { name: None, field_type, id: Some(id) })?;
        write(self.out)?;
        self.out.write_field_end()
    }

    pub(super) fn bytes(&mut self, id: i16, bytes: &[u8]) -> thrift::Result<()> {
        self.field(id, TType::String, |out| out.write_bytes(bytes))
    }

    pub(super) fn i64(&mut self, id: i16, number: i64) -> thrift::Result<()> {
        self.field(id, TType::I64, |out| out.write_i64(number))
    }

    pub(super) fn i32(&mut self, id: i16, number: i32) -> thrift::Result<()> {
        self.field(id, TType::I32, |out| out.write_i32(number))
    }

    pub(super) fn bool(&mut self, id: i16, value: bool) -> thrift::Result<()> {
        self.field(id, TType::Bool, |out| out.write_bool(value))
    }

    /// A list, whose items are written one by one.
    pub(super) fn list<T>(
        &mut self,
        id: i16,
        item_type: TType,
        items: &[T],
        mut write: impl FnMut(&mut P, &T) -> thrift::Result<()>,
    ) -> thrift::Result<()> {
        self.field(id, TType::List, |out| {
            out.write_list_begin(&TListIdentifier::new(item_type, length(items.len())))?;
            items.iter().try_for_each(|item| write(out, item))?;
            out.write_list_end()
        })
    }

    /// A map of bytes with at most one entry.
    pub(super) fn entry(&mut self, id: i16, entry: Option<(&[u8], &[u8])>) -> thrift::Result<()> {
        self.field(id, TType::Map, |out| {
            out.write_map_begin(&TMapIdentifier::new(
                TType::String,
                TType::String,
                length(usize::from(entry.is_some())),
            ))?;
            if let Some((key, value)) = entry {
                out.write_bytes(key)?;
                out.write_bytes(value)?;
            }
            out.write_map_end()
        })
    }
}

fn length(items: usize) -> i32 {
    i32::try_from(items).unwrap_or(i32::MAX)
}
