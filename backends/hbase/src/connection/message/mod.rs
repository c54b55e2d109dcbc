//! Calls and replies as bytes.

mod input;
mod output;

use bytes::Bytes;
use thrift::protocol::{TBinaryOutputProtocol, TCompactOutputProtocol, TSerializable};

pub(crate) use self::input::{Input, Kind, Part, Unread};
pub(crate) use self::output::{Fields, Kind as OutputKind, Output};
use crate::config::{Protocol, Transport};

/// The longest reply that is read, in bytes.
pub(super) const MAX_REPLY_BYTES: usize = 256 << 20;
/// The bytes of a frame's length.
const FRAME_HEADER: usize = 4;
/// What begins each message of the binary protocol, before its type, and of the compact one.
const BINARY_VERSION: [u8; 3] = [0x80, 1, 0];
const COMPACT_ID: u8 = 0x82;
const COMPACT_VERSION: u8 = 1;
/// Types of messages.
const REPLY: u8 = 2;
const EXCEPTION: u8 = 3;
/// The number of the exception that a server answers a method with that it hasn't.
const UNKNOWN_METHOD: i32 = 1;

/// How messages become bytes on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) transport: Transport,
    pub(crate) protocol: Protocol,
}

/// What a gateway says instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerException {
    /// Which of the call's declared exceptions it is, from 1; 0 for one that is not declared.
    pub(crate) id: i16,
    pub(crate) message: String,
    pub(crate) can_retry: Option<bool>,
}

/// A reply that can't be used; the connection can't either.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Garbled {
    /// It answers another call than the last one.
    Sequence { expected: i32, found: i32 },
    /// It is longer than is read.
    TooLong,
    /// It isn't one.
    Malformed(String),
}

/// What became of a look at the bytes that have come so far.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded<T> {
    /// The whole reply.
    Reply(Result<T, ServerException>),
    /// More must come: this many bytes in all at least.
    Incomplete(usize),
}

/// A call that is being answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending<'a> {
    pub(crate) method: &'a str,
    pub(crate) sequence: i32,
}

/// What a call is given: a struct in which each argument is a field.
pub(crate) trait Arguments {
    /// Writes the struct.
    fn write(&self, out: &mut Output<'_>) -> thrift::Result<()>;
}

impl<T: TSerializable> Arguments for T {
    fn write(&self, out: &mut Output<'_>) -> thrift::Result<()> {
        match out.protocol {
            Protocol::Binary => self.write_to_out_protocol(&mut TBinaryOutputProtocol::new(&mut *out.bytes, true)),
            Protocol::Compact => self.write_to_out_protocol(&mut TCompactOutputProtocol::new(&mut *out.bytes)),
        }
    }
}

impl Wire {
    /// Puts a call as bytes into an empty buffer.
    pub(crate) fn encode<A: Arguments>(
        self,
        call: Pending<'_>,
        arguments: &A,
        buffer: &mut Vec<u8>,
    ) -> thrift::Result<()> {
        if self.transport == Transport::Framed {
            buffer.extend([0; FRAME_HEADER]);
        }
        let mut out = Output { bytes: buffer, protocol: self.protocol };
        out.call(call);
        arguments.write(&mut out)?;
        if self.transport == Transport::Framed {
            let length = u32::try_from(buffer.len() - FRAME_HEADER).unwrap_or(u32::MAX);
            if let Some(header) = buffer.first_chunk_mut::<FRAME_HEADER>() {
                *header = length.to_be_bytes();
            }
        }
        Ok(())
    }

    /// Reads a reply from the bytes that have come so far.
    pub(crate) fn decode<T>(self, bytes: &Bytes, call: Pending<'_>, read: Reader<T>) -> Result<Decoded<T>, Garbled> {
        let message = match self.transport {
            Transport::Buffered | Transport::Http => bytes.clone(),
            Transport::Framed => match frame(bytes)? {
                Ok(message) => message,
                Err(length) => return Ok(Decoded::Incomplete(length)),
            },
        };
        if message.len() > MAX_REPLY_BYTES {
            return Err(Garbled::TooLong);
        }
        let mut input = Input::new(&message, self.protocol);
        match read_reply(&mut input, call, read) {
            Ok(Ok(reply)) if input.left() == 0 => Ok(Decoded::Reply(reply)),
            Ok(Ok(_)) => Err(Garbled::Malformed(format!("{} bytes behind a reply", input.left()))),
            Ok(Err(garbled)) => Err(garbled),
            Err(Unread::Short) if self.transport != Transport::Framed => Ok(Decoded::Incomplete(bytes.len() + 1)),
            Err(Unread::Short) => Err(Garbled::Malformed("a frame that ends too early".to_owned())),
            Err(Unread::Malformed(what)) => Err(Garbled::Malformed(what)),
        }
    }
}

/// The message of a frame, or how many bytes it needs.
fn frame(bytes: &Bytes) -> Result<Result<Bytes, usize>, Garbled> {
    let Some((header, rest)) = bytes.split_first_chunk::<FRAME_HEADER>() else { return Ok(Err(FRAME_HEADER)) };
    let length = usize::try_from(u32::from_be_bytes(*header)).unwrap_or(usize::MAX);
    if length > MAX_REPLY_BYTES {
        return Err(Garbled::TooLong);
    }
    if rest.len() < length {
        return Ok(Err(FRAME_HEADER + length));
    }
    Ok(Ok(bytes.slice(FRAME_HEADER..)))
}

/// Reads what a call returns; `None` where the reply holds nothing.
pub(crate) type Reader<T> = fn(Option<&mut Input<'_>>) -> Result<T, Unread>;

/// Reads a struct.
pub(crate) fn read_struct<T: TSerializable>(input: Option<&mut Input<'_>>) -> Result<T, Unread> {
    input.ok_or_else(no_result)?.generated()
}

/// Reads what must be there.
pub(crate) fn read_with<T>(
    input: Option<&mut Input<'_>>,
    read: impl FnOnce(&mut Input<'_>) -> Result<T, Unread>,
) -> Result<T, Unread> {
    read(input.ok_or_else(no_result)?)
}

/// Reads a list of structs.
pub(crate) fn read_list<T: TSerializable>(input: Option<&mut Input<'_>>) -> Result<Vec<T>, Unread> {
    read_with(input, |input| input.list(Input::generated))
}

/// Reads a struct that may be left out.
pub(crate) fn read_optional<T: TSerializable>(input: Option<&mut Input<'_>>) -> Result<Option<T>, Unread> {
    input.map(Input::generated).transpose()
}

/// Reads a list of bytes.
pub(crate) fn read_bytes_list(input: Option<&mut Input<'_>>) -> Result<Vec<Vec<u8>>, Unread> {
    read_with(input, |input| input.list(|input| input.bytes().map(<[u8]>::to_vec)))
}

/// Reads a number of 4 bytes.
pub(crate) fn read_i32(input: Option<&mut Input<'_>>) -> Result<i32, Unread> {
    input.ok_or_else(no_result)?.i32()
}

/// Reads a number of 8 bytes.
pub(crate) fn read_i64(input: Option<&mut Input<'_>>) -> Result<i64, Unread> {
    input.ok_or_else(no_result)?.i64()
}

/// Reads a bool.
pub(crate) fn read_bool(input: Option<&mut Input<'_>>) -> Result<bool, Unread> {
    input.ok_or_else(no_result)?.bool()
}

/// Reads the answer of calls that return nothing, or nothing of interest.
pub(crate) fn read_nothing(input: Option<&mut Input<'_>>) -> Result<(), Unread> {
    input.map_or(Ok(()), |_| Err(no_result()))
}

fn no_result() -> Unread {
    Unread::Malformed("a reply without the result that is due".to_owned())
}

type Reply<T> = Result<T, ServerException>;

/// A message's type, and the sequence number and method of the call that it answers.
fn read_message<'a>(input: &mut Input<'a>) -> Result<(u8, i32, &'a [u8]), Unread> {
    let wrong = |start: &[u8]| Unread::Malformed(format!("a message that begins with {start:02x?}"));
    match input.protocol() {
        Protocol::Binary => {
            let start = input.array::<4>()?;
            let [version @ .., kind] = start;
            if version != BINARY_VERSION {
                return Err(wrong(&start));
            }
            let method = input.bytes()?;
            Ok((kind, input.i32()?, method))
        }
        Protocol::Compact => {
            let start = input.array::<2>()?;
            let [COMPACT_ID, kind] = start else { return Err(wrong(&start)) };
            if kind & 0x1f != COMPACT_VERSION {
                return Err(wrong(&start));
            }
            let sequence = u32::try_from(input.varint()?).map_err(|_| wrong(&start))?;
            Ok((kind >> 5, sequence.cast_signed(), input.bytes()?))
        }
    }
}

fn read_reply<T>(
    input: &mut Input<'_>,
    call: Pending<'_>,
    read: Reader<T>,
) -> Result<Result<Reply<T>, Garbled>, Unread> {
    let (kind, found, method) = read_message(input)?;
    if found != call.sequence {
        return Ok(Err(Garbled::Sequence { expected: call.sequence, found }));
    }
    match kind {
        REPLY if method == call.method.as_bytes() => {
            // Every result ends with a 0: what ends with another byte isn't all of it, which is told for less than by reading it.
            if input.reply().last() == Some(&0) { read_result(input, read).map(Ok) } else { Err(Unread::Short) }
        }
        EXCEPTION => read_refusal(input).map(|refusal| Ok(Err(refusal))),
        _ => {
            let method = String::from_utf8_lossy(method);
            Err(Unread::Malformed(format!("a message of type {kind} of {method:?} where {} was asked", call.method)))
        }
    }
}

/// Field 0 is what is returned; the others are exceptions.
fn read_result<T>(input: &mut Input<'_>, read: Reader<T>) -> Result<Reply<T>, Unread> {
    let mut reply = None;
    input.fields(|input, id, kind| {
        match (id, kind) {
            (0, _) => reply = Some(Ok(read(Some(input))?)),
            (_, Kind::Struct) => reply = Some(Err(read_exception(input, id)?)),
            _ => input.skip(kind)?,
        }
        Ok(())
    })?;
    reply.map_or_else(|| read(None).map(Ok), Ok)
}

/// Every exception of both interfaces has its message in field 1, and in field 2 whether to try again.
fn read_exception(input: &mut Input<'_>, id: i16) -> Result<ServerException, Unread> {
    let mut exception = ServerException { id, message: String::new(), can_retry: None };
    input.fields(|input, id, kind| {
        match (id, kind) {
            (1, Kind::Bytes) => exception.message = String::from_utf8_lossy(input.bytes()?).into_owned(),
            (2, Kind::Bool) => exception.can_retry = Some(input.bool()?),
            _ => input.skip(kind)?,
        }
        Ok(())
    })?;
    Ok(exception)
}

/// What a server answers a call with that it can't make sense of: a message in field 1, and its kind in field 2.
fn read_refusal(input: &mut Input<'_>) -> Result<ServerException, Unread> {
    let (mut message, mut number) = (String::new(), 0);
    input.fields(|input, id, kind| {
        match (id, kind) {
            (1, Kind::Bytes) => message = String::from_utf8_lossy(input.bytes()?).into_owned(),
            (2, Kind::I32) => number = input.i32()?,
            _ => input.skip(kind)?,
        }
        Ok(())
    })?;
    if number == UNKNOWN_METHOD {
        message.insert_str(0, "unknown method: ");
    }
    Ok(ServerException { id: 0, message, can_retry: None })
}

#[cfg(test)]
mod tests;
