//! Calls as they are written.
//!
//! By the specifications of Thrift's binary and compact protocols. The crate's own writers are made for generated structs: they go
//! through a trait, a result and a write for each number and each length, which for a row adds up to more than all the rest.

use peristyle_core::codec::value::encode_value;
use peristyle_core::model::Value;

use super::Pending;
use crate::config::Protocol;

/// The type of a field, by its number in each protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    binary: u8,
    compact: u8,
}

impl Kind {
    pub(crate) const BOOL: Self = Self { binary: 2, compact: 1 };
    pub(crate) const I32: Self = Self { binary: 8, compact: 5 };
    pub(crate) const I64: Self = Self { binary: 10, compact: 6 };
    pub(crate) const BYTES: Self = Self { binary: 11, compact: 8 };
    pub(crate) const STRUCT: Self = Self { binary: 12, compact: 12 };
    pub(crate) const MAP: Self = Self { binary: 13, compact: 11 };
    pub(crate) const LIST: Self = Self { binary: 15, compact: 9 };
}

/// The longest list whose length the compact protocol writes beside the type of its items, and one more.
const LONG_LIST: usize = 15;
/// The farthest that the compact protocol's short header of a field leads from the field before.
const FAR_FIELD: i16 = 15;

/// Lengths are checked before: no message has more than its limit.
fn length(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}

/// A message that is being written.
pub(crate) struct Output<'a> {
    pub(super) bytes: &'a mut Vec<u8>,
    pub(super) protocol: Protocol,
}

impl Output<'_> {
    /// Begins the message of a call.
    pub(super) fn call(&mut self, call: Pending<'_>) {
        let sequence = call.sequence.cast_unsigned();
        match self.protocol {
            Protocol::Binary => {
                self.bytes.extend_from_slice(&[0x80, 1, 0, 1]);
                self.bytes(call.method.as_bytes());
                self.bytes.extend_from_slice(&sequence.to_be_bytes());
            }
            Protocol::Compact => {
                self.bytes.extend_from_slice(&[0x82, 0x21]);
                self.varint(u64::from(sequence));
                self.bytes(call.method.as_bytes());
            }
        }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    #[inline]
    fn length(&mut self, items: usize) {
        match self.protocol {
            Protocol::Binary => self.bytes.extend_from_slice(&length(items).to_be_bytes()),
            Protocol::Compact => self.varint(u64::from(length(items))),
        }
    }

    fn varint(&mut self, mut number: u64) {
        let low = |number: u64| u8::try_from(number & 0x7f).unwrap_or_default();
        while number >= 0x80 {
            self.bytes.push(low(number) | 0x80);
            number >>= 7;
        }
        self.bytes.push(low(number));
    }

    /// Small numbers below 0 take as few bytes as those above.
    fn zigzag(&mut self, number: i64) {
        self.varint(((number << 1) ^ (number >> 63)).cast_unsigned());
    }

    #[inline]
    fn list(&mut self, kind: Kind, length: usize) {
        match self.protocol {
            Protocol::Binary => {
                let [a, b, c, d] = self::length(length).to_be_bytes();
                self.bytes.extend_from_slice(&[kind.binary, a, b, c, d]);
            }
            Protocol::Compact => match u8::try_from(length) {
                Ok(short) if length < LONG_LIST => self.bytes.push(short << 4 | kind.compact),
                _ => {
                    self.bytes.push(0xf0 | kind.compact);
                    self.length(length);
                }
            },
        }
    }
}

/// A struct that is being written, field by field in the order of their numbers.
pub(crate) struct Fields<'a, 'b> {
    out: &'a mut Output<'b>,
    /// The number of the field before.
    last: i16,
}

impl<'a, 'b> Fields<'a, 'b> {
    pub(crate) fn begin(out: &'a mut Output<'b>) -> Self {
        Self { out, last: 0 }
    }

    pub(crate) fn end(self) {
        self.out.bytes.push(0);
    }

    /// A field's header; its value must follow.
    #[inline]
    fn header(&mut self, id: i16, kind: Kind) -> &mut Output<'b> {
        match self.out.protocol {
            Protocol::Binary => {
                let [high, low] = id.to_be_bytes();
                self.out.bytes.extend_from_slice(&[kind.binary, high, low]);
            }
            Protocol::Compact => match u8::try_from(id - self.last) {
                Ok(step) if (1..=FAR_FIELD).contains(&(id - self.last)) => {
                    self.out.bytes.push(step << 4 | kind.compact);
                }
                _ => {
                    self.out.bytes.push(kind.compact);
                    self.out.zigzag(i64::from(id));
                }
            },
        }
        self.last = id;
        self.out
    }

    #[inline]
    pub(crate) fn bytes(&mut self, id: i16, bytes: &[u8]) {
        if self.out.protocol == Protocol::Binary {
            let ([high, low], [a, b, c, d]) = (id.to_be_bytes(), length(bytes.len()).to_be_bytes());
            self.out.bytes.extend_from_slice(&[Kind::BYTES.binary, high, low, a, b, c, d]);
            self.out.bytes.extend_from_slice(bytes);
        } else {
            self.header(id, Kind::BYTES).bytes(bytes);
        }
    }

    /// The serialised bytes of a value.
    pub(crate) fn value(&mut self, id: i16, value: &Value) {
        match value {
            Value::Text(text) => self.bytes(id, text.as_bytes()),
            Value::Blob(bytes) => self.bytes(id, bytes),
            other => {
                let out = self.header(id, Kind::BYTES);
                out.length(other.size());
                encode_value(other, out.bytes);
            }
        }
    }

    #[inline]
    pub(crate) fn i64(&mut self, id: i16, number: i64) {
        let out = self.header(id, Kind::I64);
        match out.protocol {
            Protocol::Binary => out.bytes.extend_from_slice(&number.to_be_bytes()),
            Protocol::Compact => out.zigzag(number),
        }
    }

    pub(crate) fn i32(&mut self, id: i16, number: i32) {
        let out = self.header(id, Kind::I32);
        match out.protocol {
            Protocol::Binary => out.bytes.extend_from_slice(&number.to_be_bytes()),
            Protocol::Compact => out.zigzag(i64::from(number)),
        }
    }

    pub(crate) fn bool(&mut self, id: i16, value: bool) {
        match self.out.protocol {
            Protocol::Binary => self.header(id, Kind::BOOL).bytes.push(u8::from(value)),
            // The type tells the value.
            Protocol::Compact => {
                self.header(id, Kind { compact: if value { 1 } else { 2 }, ..Kind::BOOL });
            }
        }
    }

    /// A struct, whose fields `write` writes.
    pub(crate) fn nested(&mut self, id: i16, write: impl FnOnce(&mut Output<'b>)) {
        write(self.header(id, Kind::STRUCT));
    }

    /// A list, whose items are written one by one.
    #[inline]
    pub(crate) fn list<T>(
        &mut self,
        id: i16,
        kind: Kind,
        items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
        mut write: impl FnMut(&mut Output<'b>, T),
    ) {
        let items = items.into_iter();
        let out = self.header(id, Kind::LIST);
        out.list(kind, items.len());
        items.for_each(|item| write(out, item));
    }

    /// A map of bytes with at most one entry.
    pub(crate) fn entry(&mut self, id: i16, entry: Option<(&[u8], &[u8])>) {
        let out = self.header(id, Kind::MAP);
        match out.protocol {
            Protocol::Binary => {
                out.bytes.extend_from_slice(&[Kind::BYTES.binary; 2]);
                out.length(usize::from(entry.is_some()));
            }
            Protocol::Compact => {
                out.length(usize::from(entry.is_some()));
                out.bytes.extend(entry.is_some().then_some(Kind::BYTES.compact << 4 | Kind::BYTES.compact));
            }
        }
        if let Some((key, value)) = entry {
            out.bytes(key);
            out.bytes(value);
        }
    }
}
