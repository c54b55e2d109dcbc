//! Orders and records as bytes between Java and here: numbers of four bytes, the highest first.

use bytes::Bytes;
use peristyle::model::StoredRow;
use peristyle::{Error, Result};
use peristyle_ycsb::{Fields, Record, Status, Store};

use crate::clerk::Order;

/// An order: the operation, length and bytes of the key, and what the operation takes.
pub(crate) fn decode(order: Vec<u8>, store: &Store) -> Result<Order> {
    let mut rest = Bytes::from(order);
    if rest.is_empty() {
        return Err(torn());
    }
    let operation = rest.split_to(1);
    let key = value(&mut rest)?;
    let key =
        std::str::from_utf8(&key).map_err(|error| Error::invalid(format!("the key is no UTF-8: {error}")))?.to_owned();
    Ok(match *operation {
        [0] => {
            number(&mut rest)?;
            Order::Read { key, fields: fields(rest, store)? }
        }
        [1] => {
            let count = number(&mut rest)?;
            Order::Scan { start: key, count, fields: fields(rest, store)? }
        }
        [2] => Order::Update { key, record: record(rest)? },
        [3] => Order::Insert { key, record: record(rest)? },
        [4] => Order::Delete { key },
        _ => return Err(torn()),
    })
}

/// The numbers of fields, none for all of them.
fn fields(mut rest: Bytes, store: &Store) -> Result<Fields> {
    if rest.is_empty() {
        return Ok(Fields::default());
    }
    let mut numbers = Vec::with_capacity(rest.len() / 4);
    while !rest.is_empty() {
        numbers.push(number(&mut rest)?);
    }
    Ok(store.choose(numbers))
}

/// Number, length and bytes of each value.
fn record(mut rest: Bytes) -> Result<Record> {
    let mut values = Record::new();
    while !rest.is_empty() {
        values.push((number(&mut rest)?, value(&mut rest)?));
    }
    Ok(values)
}

fn value(rest: &mut Bytes) -> Result<Bytes> {
    let length = number(rest)?;
    if rest.len() < length { Err(torn()) } else { Ok(rest.split_to(length)) }
}

fn number(rest: &mut Bytes) -> Result<usize> {
    let (bytes, _) = rest.split_first_chunk().ok_or_else(torn)?;
    let number = u32::from_be_bytes(*bytes);
    let _ = rest.split_to(4);
    usize::try_from(number).map_err(|_| torn())
}

fn torn() -> Error {
    Error::invalid("an order from Java ends too early; the class and the library are of different versions")
}

/// The status, then each record: how many values, then number, length and bytes of each.
pub(crate) fn encode(status: Status, rows: &[StoredRow], store: &Store) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.push(status as u8);
    let put = |out: &mut Vec<u8>, number: usize| out.extend(u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
    for row in rows {
        put(&mut out, store.values(row).count());
        for (field, value) in store.values(row) {
            put(&mut out, field);
            put(&mut out, value.len());
            out.extend_from_slice(value);
        }
    }
    out
}
