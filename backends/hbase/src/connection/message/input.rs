//! Replies as they are read.

use std::cell::Cell;
use std::io::{self, Read};

use bytes::Bytes;
use thrift::protocol::{TInputProtocol, TType};

use crate::config::Protocol;

/// The most items that room is made for before they are there.
const MAX_ROOM: usize = 1024;

/// A reply that is being read.
pub(crate) struct Input<'a> {
    pub(crate) protocol: &'a mut dyn TInputProtocol,
    pub(super) source: &'a Source<'a>,
}

impl Input<'_> {
    /// Reads bytes, which share the reply's buffer: the protocol's own reader copies them.
    pub(crate) fn bytes(&mut self) -> thrift::Result<Bytes> {
        let before = self.source.place.get();
        self.protocol.skip_binary()?;
        let whole = before..self.source.place.get();
        let header = match self.source.protocol {
            Protocol::Binary => size_of::<i32>(),
            Protocol::Compact => {
                let bytes = self.source.all.get(whole.clone()).unwrap_or_default();
                bytes.iter().take_while(|byte| **byte >= 0x80).count() + 1
            }
        };
        Ok(self.source.all.slice((whole.start + header).min(whole.end)..whole.end))
    }

    /// Reads the fields of a struct; `read` is given each with its number and type, and must read or skip it.
    pub(crate) fn fields(
        &mut self,
        mut read: impl FnMut(&mut Self, i16, TType) -> thrift::Result<()>,
    ) -> thrift::Result<()> {
        self.protocol.read_struct_begin()?;
        loop {
            let field = self.protocol.read_field_begin()?;
            if field.field_type == TType::Stop {
                break;
            }
            read(self, field.id.unwrap_or_default(), field.field_type)?;
            self.protocol.read_field_end()?;
        }
        self.protocol.read_struct_end()
    }

    /// Reads a list, item by item.
    pub(crate) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> thrift::Result<T>) -> thrift::Result<Vec<T>> {
        let list = self.protocol.read_list_begin()?;
        // What a garbled length says is not believed.
        let mut items = Vec::with_capacity(usize::try_from(list.size).unwrap_or(0).min(MAX_ROOM));
        for _ in 0..list.size {
            items.push(item(self)?);
        }
        self.protocol.read_list_end()?;
        Ok(items)
    }
}

/// Bytes that know how far they were read, and whether more were asked for than there are.
pub(super) struct Source<'a> {
    all: &'a Bytes,
    protocol: Protocol,
    place: Cell<usize>,
    ran_out: Cell<bool>,
}

impl<'a> Source<'a> {
    pub(super) fn new(all: &'a Bytes, protocol: Protocol) -> Self {
        Self { all, protocol, place: Cell::new(0), ran_out: Cell::new(false) }
    }

    /// How many bytes weren't read.
    pub(super) fn left(&self) -> usize {
        self.all.len() - self.place.get()
    }

    pub(super) fn ran_out(&self) -> bool {
        self.ran_out.get()
    }

    fn rest(&self) -> &[u8] {
        self.all.get(self.place.get()..).unwrap_or_default()
    }
}

impl Read for &Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.left());
        self.ran_out.set(self.ran_out.get() || length < buffer.len());
        self.rest().read(buffer)?;
        self.place.set(self.place.get() + length);
        Ok(length)
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let Some(bytes) = self.rest().get(..buffer.len()) else {
            self.ran_out.set(true);
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        buffer.copy_from_slice(bytes);
        self.place.set(self.place.get() + buffer.len());
        Ok(())
    }
}
