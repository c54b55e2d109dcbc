//! Calls and replies as bytes.

mod input;

use bytes::Bytes;
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol, TInputProtocol,
    TMessageIdentifier, TMessageType, TOutputProtocol, TSerializable, TType,
};
use thrift::{ApplicationErrorKind, Error as ThriftError};

pub(crate) use self::input::Input;
use self::input::Source;
use crate::config::{Protocol, Transport};

/// The longest reply that is read, in bytes.
pub(super) const MAX_REPLY_BYTES: usize = 256 << 20;
/// The bytes of a frame's length.
const FRAME_HEADER: usize = 4;

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
    fn write<P: TOutputProtocol>(&self, out: &mut P) -> thrift::Result<()>;
}

impl<T: TSerializable> Arguments for T {
    fn write<P: TOutputProtocol>(&self, out: &mut P) -> thrift::Result<()> {
        self.write_to_out_protocol(out)
    }
}

impl Wire {
    /// A call as bytes.
    pub(crate) fn encode<A: Arguments>(self, call: Pending<'_>, arguments: &A) -> thrift::Result<Vec<u8>> {
        let mut buffer = Vec::with_capacity(256);
        if self.transport == Transport::Framed {
            buffer.extend([0; FRAME_HEADER]);
        }
        match self.protocol {
            Protocol::Binary => write_call(&mut TBinaryOutputProtocol::new(&mut buffer, true), call, arguments)?,
            Protocol::Compact => write_call(&mut TCompactOutputProtocol::new(&mut buffer), call, arguments)?,
        }
        if self.transport == Transport::Framed {
            let length = u32::try_from(buffer.len() - FRAME_HEADER).unwrap_or(u32::MAX);
            if let Some(header) = buffer.first_chunk_mut::<FRAME_HEADER>() {
                *header = length.to_be_bytes();
            }
        }
        Ok(buffer)
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
        let source = Source::new(&message, self.protocol);
        let outcome = match self.protocol {
            Protocol::Binary => read_reply(&mut TBinaryInputProtocol::new(&source, true), &source, call, read),
            Protocol::Compact => read_reply(&mut TCompactInputProtocol::new(&source), &source, call, read),
        };
        match outcome {
            Ok(reply) if source.left() == 0 => Ok(Decoded::Reply(reply)),
            Ok(_) => Err(Garbled::Malformed(format!("{} bytes behind a reply", source.left()))),
            Err(_) if source.ran_out() && self.transport != Transport::Framed => {
                Ok(Decoded::Incomplete(bytes.len() + 1))
            }
            Err(garbled) => Err(garbled),
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

fn write_call<A: Arguments, P: TOutputProtocol>(out: &mut P, call: Pending<'_>, arguments: &A) -> thrift::Result<()> {
    out.write_message_begin(&TMessageIdentifier::new(call.method, TMessageType::Call, call.sequence))?;
    arguments.write(out)?;
    out.write_message_end()?;
    out.flush()
}

/// Reads what a call returns; `None` where the reply holds nothing.
pub(crate) type Reader<T> = fn(Option<&mut Input<'_>>) -> thrift::Result<T>;

/// Reads a struct.
pub(crate) fn read_struct<T: TSerializable>(input: Option<&mut Input<'_>>) -> thrift::Result<T> {
    T::read_from_in_protocol(input.ok_or_else(no_result)?.protocol)
}

/// Reads what must be there.
pub(crate) fn read_with<T>(
    input: Option<&mut Input<'_>>,
    read: impl FnOnce(&mut Input<'_>) -> thrift::Result<T>,
) -> thrift::Result<T> {
    read(input.ok_or_else(no_result)?)
}

/// Reads a list of structs.
pub(crate) fn read_list<T: TSerializable>(input: Option<&mut Input<'_>>) -> thrift::Result<Vec<T>> {
    let input = &mut *input.ok_or_else(no_result)?.protocol;
    let list = input.read_list_begin()?;
    let items = (0..list.size).map(|_| T::read_from_in_protocol(input)).collect::<thrift::Result<_>>()?;
    input.read_list_end()?;
    Ok(items)
}

/// Reads a struct that may be left out.
pub(crate) fn read_optional<T: TSerializable>(input: Option<&mut Input<'_>>) -> thrift::Result<Option<T>> {
    input.map(|input| T::read_from_in_protocol(input.protocol)).transpose()
}

/// Reads a list of bytes.
pub(crate) fn read_bytes_list(input: Option<&mut Input<'_>>) -> thrift::Result<Vec<Vec<u8>>> {
    let input = &mut *input.ok_or_else(no_result)?.protocol;
    let list = input.read_list_begin()?;
    let items = (0..list.size).map(|_| input.read_bytes()).collect::<thrift::Result<_>>()?;
    input.read_list_end()?;
    Ok(items)
}

/// Reads a number of 4 bytes.
pub(crate) fn read_i32(input: Option<&mut Input<'_>>) -> thrift::Result<i32> {
    input.ok_or_else(no_result)?.protocol.read_i32()
}

/// Reads a number of 8 bytes.
pub(crate) fn read_i64(input: Option<&mut Input<'_>>) -> thrift::Result<i64> {
    input.ok_or_else(no_result)?.protocol.read_i64()
}

/// Reads a bool.
pub(crate) fn read_bool(input: Option<&mut Input<'_>>) -> thrift::Result<bool> {
    input.ok_or_else(no_result)?.protocol.read_bool()
}

/// Reads the answer of calls that return nothing, or nothing of interest.
pub(crate) fn read_nothing(input: Option<&mut Input<'_>>) -> thrift::Result<()> {
    input.map_or(Ok(()), |_| Err(no_result()))
}

fn no_result() -> ThriftError {
    ThriftError::from("a reply without the result that is due")
}

type Reply<T> = Result<T, ServerException>;

fn read_reply<T>(
    input: &mut dyn TInputProtocol,
    source: &Source<'_>,
    call: Pending<'_>,
    read: Reader<T>,
) -> Result<Reply<T>, Garbled> {
    let message = input.read_message_begin().map_err(malformed)?;
    if message.sequence_number != call.sequence {
        return Err(Garbled::Sequence { expected: call.sequence, found: message.sequence_number });
    }
    match message.message_type {
        TMessageType::Reply if message.name == call.method => read_result(input, source, read),
        TMessageType::Exception => {
            let error = ThriftError::read_application_error_from_in_protocol(input).map_err(malformed)?;
            let message = match error.kind {
                ApplicationErrorKind::UnknownMethod => format!("unknown method: {}", error.message),
                _ => error.message,
            };
            Ok(Err(ServerException { id: 0, message, can_retry: None }))
        }
        other => Err(Garbled::Malformed(format!("a {other:?} of {:?} where {} was asked", message.name, call.method))),
    }
}

/// Field 0 is what is returned; the others are exceptions.
fn read_result<T>(input: &mut dyn TInputProtocol, source: &Source<'_>, read: Reader<T>) -> Result<Reply<T>, Garbled> {
    let mut reply = None;
    input.read_struct_begin().map_err(malformed)?;
    loop {
        let field = input.read_field_begin().map_err(malformed)?;
        match (field.field_type, field.id) {
            (TType::Stop, _) => break,
            (_, Some(0)) => {
                reply = Some(Ok(read(Some(&mut Input { protocol: input, source })).map_err(malformed)?));
            }
            (TType::Struct, Some(id)) => reply = Some(Err(read_exception(input, id).map_err(malformed)?)),
            (ty, _) => input.skip(ty).map_err(malformed)?,
        }
        input.read_field_end().map_err(malformed)?;
    }
    input.read_struct_end().map_err(malformed)?;
    reply.map_or_else(|| read(None).map(Ok).map_err(malformed), Ok)
}

/// Every exception of both interfaces has its message in field 1, and in field 2 whether to try again.
fn read_exception(input: &mut dyn TInputProtocol, id: i16) -> thrift::Result<ServerException> {
    let mut exception = ServerException { id, message: String::new(), can_retry: None };
    input.read_struct_begin()?;
    loop {
        let field = input.read_field_begin()?;
        match (field.field_type, field.id) {
            (TType::Stop, _) => break,
            (TType::String, Some(1)) => exception.message = String::from_utf8_lossy(&input.read_bytes()?).into_owned(),
            (TType::Bool, Some(2)) => exception.can_retry = Some(input.read_bool()?),
            (ty, _) => input.skip(ty)?,
        }
        input.read_field_end()?;
    }
    input.read_struct_end()?;
    Ok(exception)
}

fn malformed(error: ThriftError) -> Garbled {
    Garbled::Malformed(error.to_string())
}

#[cfg(test)]
mod tests;
