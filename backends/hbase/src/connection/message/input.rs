//! Replies as they are read.
//!
//! By the specifications of Thrift's binary and compact protocols, in place: nothing is copied, and nothing is made for what is
//! passed over.

use std::io::{self, Read};

use bytes::Bytes;
use thrift::protocol::{TBinaryInputProtocol, TCompactInputProtocol, TSerializable};

use crate::config::Protocol;

/// The most items that room is made for before they are there.
const MAX_ROOM: usize = 1024;
/// How deep structs and lists may lie in each other.
const MAX_DEPTH: usize = 64;

/// Why a reply can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It goes on behind what has come.
    Short,
    /// It isn't one.
    Malformed(String),
}

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Stop,
    Bool,
    I8,
    I16,
    I32,
    I64,
    Double,
    Bytes,
    Struct,
    Map,
    Set,
    List,
    Uuid,
}

impl Kind {
    fn of(protocol: Protocol, number: u8) -> Result<Self, Unread> {
        Ok(match (protocol, number) {
            (_, 0) => Self::Stop,
            (Protocol::Binary, 2) | (Protocol::Compact, 1 | 2) => Self::Bool,
            (_, 3) => Self::I8,
            (Protocol::Binary, 6) | (Protocol::Compact, 4) => Self::I16,
            (Protocol::Binary, 8) | (Protocol::Compact, 5) => Self::I32,
            (Protocol::Binary, 10) | (Protocol::Compact, 6) => Self::I64,
            (Protocol::Binary, 4) | (Protocol::Compact, 7) => Self::Double,
            (Protocol::Binary, 11) | (Protocol::Compact, 8) => Self::Bytes,
            (_, 12) => Self::Struct,
            (Protocol::Binary, 13) | (Protocol::Compact, 11) => Self::Map,
            (Protocol::Binary, 14) | (Protocol::Compact, 10) => Self::Set,
            (Protocol::Binary, 15) | (Protocol::Compact, 9) => Self::List,
            (Protocol::Binary, 16) | (Protocol::Compact, 13) => Self::Uuid,
            (_, number) => return Err(Unread::Malformed(format!("a field of the unknown type {number}"))),
        })
    }
}

/// Where some bytes of a reply are. A reply is shorter than 4 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Part {
    start: u32,
    end: u32,
}

impl Part {
    /// The bytes, in the reply that it is a part of.
    pub(crate) fn of(self, reply: &[u8]) -> &[u8] {
        let [start, end] = [self.start, self.end].map(|place| usize::try_from(place).unwrap_or(usize::MAX));
        reply.get(start..end).unwrap_or_default()
    }

    /// What is before the first byte of this kind, and what is behind it.
    pub(crate) fn split(self, reply: &[u8], byte: u8) -> Option<(Self, Self)> {
        let place = self.of(reply).iter().position(|one| *one == byte)?;
        let place = self.start + u32::try_from(place).ok()?;
        Some((Self { end: place, ..self }, Self { start: place + 1, ..self }))
    }
}

/// The type of a list's items, or of a map's keys and values, and how many there are.
type Header<K> = (K, usize);

/// A reply that is being read.
pub(crate) struct Input<'a> {
    reply: &'a Bytes,
    /// What wasn't read.
    rest: &'a [u8],
    protocol: Protocol,
    /// What the header of the last field told, where a bool has no other bytes.
    told: bool,
}

impl<'a> Input<'a> {
    pub(super) fn new(reply: &'a Bytes, protocol: Protocol) -> Self {
        Self { reply, rest: reply, protocol, told: false }
    }

    /// The whole reply.
    pub(crate) fn reply(&self) -> &'a Bytes {
        self.reply
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// How many bytes weren't read.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Unread> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or(Unread::Short)?;
        self.rest = rest;
        Ok(*array)
    }

    #[inline]
    fn pass(&mut self, length: usize) -> Result<&'a [u8], Unread> {
        let (passed, rest) = self.rest.split_at_checked(length).ok_or(Unread::Short)?;
        self.rest = rest;
        Ok(passed)
    }

    pub(super) fn varint(&mut self) -> Result<u64, Unread> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Unread::Malformed("a number of more than 10 bytes".to_owned()))
    }

    fn zigzag(&mut self) -> Result<i64, Unread> {
        let number = self.varint()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// A length that is no more than a message can have.
    #[inline]
    fn length(&mut self) -> Result<usize, Unread> {
        let length = match self.protocol {
            Protocol::Binary => u64::from(u32::from_be_bytes(self.array()?)),
            Protocol::Compact => self.varint()?,
        };
        let fits = i32::try_from(length).ok().and_then(|length| usize::try_from(length).ok());
        fits.ok_or_else(|| Unread::Malformed(format!("a length of {length}")))
    }

    /// Reads bytes and tells where they are.
    #[inline]
    pub(crate) fn part(&mut self) -> Result<Part, Unread> {
        let length = self.length()?;
        let start = self.reply.len() - self.rest.len();
        self.pass(length)?;
        let [start, end] = [start, start + length].map(|place| u32::try_from(place).unwrap_or(u32::MAX));
        Ok(Part { start, end })
    }

    /// Reads bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Unread> {
        let length = self.length()?;
        self.pass(length)
    }

    #[inline]
    pub(crate) fn i64(&mut self) -> Result<i64, Unread> {
        match self.protocol {
            Protocol::Binary => Ok(i64::from_be_bytes(self.array()?)),
            Protocol::Compact => self.zigzag(),
        }
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Unread> {
        match self.protocol {
            Protocol::Binary => Ok(i32::from_be_bytes(self.array()?)),
            Protocol::Compact => i32::try_from(self.zigzag()?)
                .map_err(|_| Unread::Malformed("a number of 4 bytes that takes more".to_owned())),
        }
    }

    /// Reads the bool that a field is.
    pub(crate) fn bool(&mut self) -> Result<bool, Unread> {
        match self.protocol {
            Protocol::Binary => Ok(self.array()? != [0]),
            Protocol::Compact => Ok(self.told),
        }
    }

    /// Reads the fields of a struct; `read` is given each with its number and type, and must read or skip it.
    #[inline]
    pub(crate) fn fields(
        &mut self,
        mut read: impl FnMut(&mut Self, i16, Kind) -> Result<(), Unread>,
    ) -> Result<(), Unread> {
        let mut id = 0;
        loop {
            let [first] = self.array()?;
            let kind = match (self.protocol, first) {
                (Protocol::Binary, 0) => return Ok(()),
                // What rows are made of, nearly all.
                (Protocol::Binary, 11) => {
                    id = i16::from_be_bytes(self.array()?);
                    Kind::Bytes
                }
                (Protocol::Binary, _) => {
                    id = i16::from_be_bytes(self.array()?);
                    Kind::of(self.protocol, first)?
                }
                (Protocol::Compact, _) => self.short_header(first, &mut id)?,
            };
            if kind == Kind::Stop {
                return Ok(());
            }
            read(self, id, kind)?;
        }
    }

    /// The rest of a compact field header that begins with this byte.
    fn short_header(&mut self, first: u8, id: &mut i16) -> Result<Kind, Unread> {
        let kind = Kind::of(self.protocol, first & 0x0f)?;
        self.told = first & 0x0f == 1;
        *id = match first >> 4 {
            0 if kind == Kind::Stop => *id,
            0 => i16::try_from(self.zigzag()?)
                .map_err(|_| Unread::Malformed("a field's number of more than 2 bytes".to_owned()))?,
            step => id.wrapping_add(i16::from(step)),
        };
        Ok(kind)
    }

    fn list_header(&mut self) -> Result<Header<Kind>, Unread> {
        let [first] = self.array()?;
        match self.protocol {
            Protocol::Binary => Ok((Kind::of(self.protocol, first)?, self.length()?)),
            Protocol::Compact => {
                let kind = Kind::of(self.protocol, first & 0x0f)?;
                Ok((kind, if first < 0xf0 { usize::from(first >> 4) } else { self.length()? }))
            }
        }
    }

    fn map_header(&mut self) -> Result<Header<[Kind; 2]>, Unread> {
        match self.protocol {
            Protocol::Binary => {
                let [key, value] = self.array()?;
                let kinds = [Kind::of(self.protocol, key)?, Kind::of(self.protocol, value)?];
                Ok((kinds, self.length()?))
            }
            Protocol::Compact => match self.length()? {
                0 => Ok(([Kind::Stop; 2], 0)),
                length => {
                    let [kinds] = self.array()?;
                    Ok(([Kind::of(self.protocol, kinds >> 4)?, Kind::of(self.protocol, kinds & 0x0f)?], length))
                }
            },
        }
    }

    /// Reads a list, item by item.
    pub(crate) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T, Unread>) -> Result<Vec<T>, Unread> {
        let (_, length) = self.list_header()?;
        // What a garbled length says is not believed.
        let mut items = Vec::with_capacity(length.min(MAX_ROOM));
        for _ in 0..length {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Reads a list whose items `item` keeps.
    pub(crate) fn each(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), Unread>) -> Result<(), Unread> {
        let (_, length) = self.list_header()?;
        (0..length).try_for_each(|_| item(self))
    }

    /// Reads a map whose entries `entry` keeps.
    pub(crate) fn entries(&mut self, mut entry: impl FnMut(&mut Self) -> Result<(), Unread>) -> Result<(), Unread> {
        let (_, length) = self.map_header()?;
        (0..length).try_for_each(|_| entry(self))
    }

    /// Reads a struct into generated code.
    pub(crate) fn generated<T: TSerializable>(&mut self) -> Result<T, Unread> {
        let mut source = Source { rest: self.rest, ran_out: false };
        let read = match self.protocol {
            Protocol::Binary => T::read_from_in_protocol(&mut TBinaryInputProtocol::new(&mut source, true)),
            Protocol::Compact => T::read_from_in_protocol(&mut TCompactInputProtocol::new(&mut source)),
        };
        self.rest = source.rest;
        read.map_err(|error| if source.ran_out { Unread::Short } else { Unread::Malformed(error.to_string()) })
    }

    /// Passes over a field of this type.
    pub(crate) fn skip(&mut self, kind: Kind) -> Result<(), Unread> {
        match (kind, self.protocol) {
            (Kind::Bool, Protocol::Compact) => Ok(()),
            _ => self.skip_item(kind, 0),
        }
    }

    /// Passes over an item of a list, or a field that is no compact bool.
    fn skip_item(&mut self, kind: Kind, depth: usize) -> Result<(), Unread> {
        if depth > MAX_DEPTH {
            return Err(Unread::Malformed(format!("structs more than {MAX_DEPTH} deep in each other")));
        }
        match (kind, self.protocol) {
            (Kind::Stop, _) => Err(Unread::Malformed("an item without a type".to_owned())),
            (Kind::Bool | Kind::I8, _) => self.pass(1).map(drop),
            (Kind::I16, Protocol::Binary) => self.pass(2).map(drop),
            (Kind::I32, Protocol::Binary) => self.pass(4).map(drop),
            (Kind::I64, Protocol::Binary) | (Kind::Double, _) => self.pass(8).map(drop),
            (Kind::I16 | Kind::I32 | Kind::I64, Protocol::Compact) => self.varint().map(drop),
            (Kind::Uuid, _) => self.pass(16).map(drop),
            (Kind::Bytes, _) => self.part().map(drop),
            (Kind::Struct, _) => self.fields(|input, _, kind| match (kind, input.protocol) {
                (Kind::Bool, Protocol::Compact) => Ok(()),
                _ => input.skip_item(kind, depth + 1),
            }),
            (Kind::List | Kind::Set, _) => {
                let (kind, length) = self.list_header()?;
                (0..length).try_for_each(|_| self.skip_item(kind, depth + 1))
            }
            (Kind::Map, _) => {
                let (kinds, length) = self.map_header()?;
                (0..length).try_for_each(|_| kinds.iter().try_for_each(|kind| self.skip_item(*kind, depth + 1)))
            }
        }
    }
}

/// Bytes that know whether more were asked for than there are.
struct Source<'a> {
    rest: &'a [u8],
    ran_out: bool,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.ran_out |= self.rest.len() < buffer.len();
        self.rest.read(buffer)
    }
}
