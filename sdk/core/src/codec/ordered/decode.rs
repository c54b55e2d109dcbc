//! Ordered bytes to typed values.

use std::net::IpAddr;

use bytes::Bytes;
use uuid::Uuid;

use super::{decimal, float, uuid as ranks};
use crate::codec::{CHECK, check_end, corrupt};
use crate::error::Result;
use crate::model::{Column, ColumnKind, Date, Order, Time, Timestamp, Type, Value, Varint};

/// Reads the values of a whole key; the inverse of [`encode_key`](super::encode_key), but for what
/// [`is_lossy`](super::is_lossy) tells.
///
/// # Errors
/// [`Corrupt`](crate::ErrorKind::Corrupt), naming the column, for bytes that no values encode to, and for bytes behind the
/// last column.
pub fn decode_key(bytes: &[u8], columns: &[Column]) -> Result<Vec<Value>> {
    let (values, rest) = decode_prefix(bytes, columns)?;
    check_end(rest, bytes).map(|()| values)
}

/// Reads the values of the first columns of a key, and returns the bytes behind them too: those of the clustering key, when
/// the columns are the partition key's.
///
/// # Errors
/// As [`decode_key`].
pub fn decode_prefix<'a>(bytes: &'a [u8], columns: &[Column]) -> Result<(Vec<Value>, &'a [u8])> {
    let mut reader = Reader { rest: bytes, mask: 0 };
    let mut values = Vec::with_capacity(columns.len());
    for column in columns {
        let place = bytes.len() - reader.rest.len();
        reader.mask = if column.kind == ColumnKind::Clustering(Order::Descending) { 0xff } else { 0x00 };
        let value = component(&mut reader, column).map_err(|fault| {
            corrupt(format!("key column {}, from byte {place} of {}: {fault}; {CHECK}", column.name, bytes.len()))
        })?;
        values.push(value);
    }
    Ok((values, reader.rest))
}

/// What is wrong with a component.
pub(super) type Fault = &'static str;

fn component(reader: &mut Reader<'_>, column: &Column) -> Result<Value, Fault> {
    let partition = column.kind == ColumnKind::Partition;
    Ok(match column.ty {
        Type::Bool => match reader.array()? {
            [0] => Value::Bool(false),
            [1] => Value::Bool(true),
            _ => return Err("a bool is neither 0 nor 1"),
        },
        Type::I8 => Value::I8(i8::from_be_bytes(reader.array()?) ^ i8::MIN),
        Type::I16 => Value::I16(i16::from_be_bytes(reader.array()?) ^ i16::MIN),
        Type::I32 => Value::I32(i32::from_be_bytes(reader.array()?) ^ i32::MIN),
        Type::I64 => Value::I64(i64::from_be_bytes(reader.array()?) ^ i64::MIN),
        Type::F32 => Value::F32(single(reader, partition)?),
        Type::F64 => Value::F64(double(reader, partition)?),
        Type::Text => Value::Text(String::from_utf8(reader.escaped()?).map_err(|_| "a text is not UTF-8")?),
        Type::Blob => Value::Blob(Bytes::from(reader.escaped()?)),
        Type::Timestamp => Value::Timestamp(Timestamp(i64::from_be_bytes(reader.array()?) ^ i64::MIN)),
        Type::Date => Value::Date(Date(i32::from_be_bytes(reader.array()?) ^ i32::MIN)),
        Type::Time => Value::Time(time(reader)?),
        Type::Uuid => Value::Uuid(uuid(reader)?),
        Type::TimeUuid => {
            let rank = u128::from_be_bytes(reader.array()?);
            Value::TimeUuid(ranks::from_time_rank(rank).ok_or("the time of a timeuuid has more than 60 bits")?)
        }
        Type::Inet => Value::Inet(inet(&reader.escaped()?)?),
        Type::Decimal => Value::from(decimal::decode(reader, partition)?),
        Type::Varint => Value::Varint(varint(reader)?),
        Type::Counter => return Err("a counter can't be in a key"),
    })
}

fn single(reader: &mut Reader<'_>, partition: bool) -> Result<f32, Fault> {
    let value = float::from_rank_32(u32::from_be_bytes(reader.array()?)).ok_or(OTHER_NAN)?;
    if !(value.is_nan() && partition) {
        return Ok(value);
    }
    let original = f32::from_be_bytes(reader.array()?);
    if original.is_nan() { Ok(original) } else { Err(NO_NAN) }
}

fn double(reader: &mut Reader<'_>, partition: bool) -> Result<f64, Fault> {
    let value = float::from_rank_64(u64::from_be_bytes(reader.array()?)).ok_or(OTHER_NAN)?;
    if !(value.is_nan() && partition) {
        return Ok(value);
    }
    let original = f64::from_be_bytes(reader.array()?);
    if original.is_nan() { Ok(original) } else { Err(NO_NAN) }
}

const OTHER_NAN: Fault = "a float is a NaN other than the one that stands for all";
const NO_NAN: Fault = "the bits behind a NaN are none";

fn time(reader: &mut Reader<'_>) -> Result<Time, Fault> {
    let time = Time(i64::from_be_bytes(reader.array()?));
    if time.is_valid() { Ok(time) } else { Err("a time lies outside a day") }
}

fn uuid(reader: &mut Reader<'_>) -> Result<Uuid, Fault> {
    let [version] = reader.array()?;
    let bits = u128::from_be_bytes(reader.array()?);
    ranks::from_rank(version, bits).ok_or("the version of a uuid contradicts its bits")
}

fn inet(octets: &[u8]) -> Result<IpAddr, Fault> {
    let v4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    let address = v4.or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from));
    address.map_err(|_| "an inet has neither 4 nor 16 bytes")
}

fn varint(reader: &mut Reader<'_>) -> Result<Varint, Fault> {
    let length = i32::from_be_bytes(reader.array()?) ^ i32::MIN;
    let bytes = reader.take(usize::try_from(length.unsigned_abs()).unwrap_or(usize::MAX))?;
    let value = Varint::from_be_bytes(&bytes);
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    if value.to_be_bytes() != bytes || negative != (length < 0) {
        return Err("a varint's length and sign contradict its bytes");
    }
    Ok(value)
}

/// Takes bytes from the front of a key, complemented by the mask where a column is descending.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    mask: u8,
}

const TOO_SHORT: Fault = "it ends too early";

impl Reader<'_> {
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(TOO_SHORT)?;
        self.rest = rest;
        Ok(head.map(|byte| byte ^ self.mask))
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, Fault> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or(TOO_SHORT)?;
        self.rest = rest;
        Ok(head.iter().map(|byte| byte ^ self.mask).collect())
    }

    /// The bytes up to `end`, which is taken too.
    pub(super) fn until(&mut self, end: u8) -> Result<Vec<u8>, Fault> {
        let length = self.rest.iter().position(|byte| byte ^ self.mask == end).ok_or(TOO_SHORT)?;
        let bytes = self.take(length)?;
        let [_end] = self.array()?;
        Ok(bytes)
    }

    fn escaped(&mut self) -> Result<Vec<u8>, Fault> {
        let mut bytes = self.until(0)?;
        loop {
            match self.array()? {
                [0x00] => return Ok(bytes),
                [0xff] => bytes.push(0),
                _ => return Err("a 0 byte is followed by neither 0 nor 255"),
            }
            bytes.extend(self.until(0)?);
        }
    }
}
