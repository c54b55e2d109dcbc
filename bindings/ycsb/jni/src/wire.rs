//! Orders and records as bytes between Java and here: numbers of four bytes, the highest first.

use bytes::Bytes;
use peristyle::model::StoredRow;
use peristyle::{Error, Result};
use peristyle_ycsb::{Fields, Record, Status, Store};

/// What a Java thread asks for.
#[derive(Debug)]
pub(crate) enum Order<'o> {
    Read { key: &'o str, fields: Fields },
    Scan { start: &'o str, count: usize, fields: Fields },
    Update { key: &'o str, record: Record },
    Insert { key: &'o str, record: Record },
    Delete { key: &'o str },
}

/// An order: the operation, length and bytes of the key, and what the operation takes.
pub(crate) fn decode<'o>(order: &'o [u8], store: &Store) -> Result<Order<'o>> {
    let (operation, mut rest) = order.split_first().ok_or_else(torn)?;
    let key = value(&mut rest)?;
    let key = std::str::from_utf8(key).map_err(|error| Error::invalid(format!("the key is no UTF-8: {error}")))?;
    Ok(match operation {
        0 => {
            number(&mut rest)?;
            Order::Read { key, fields: fields(rest, store)? }
        }
        1 => {
            let count = number(&mut rest)?;
            Order::Scan { start: key, count, fields: fields(rest, store)? }
        }
        2 => Order::Update { key, record: record(rest)? },
        3 => Order::Insert { key, record: record(rest)? },
        4 => Order::Delete { key },
        _ => return Err(torn()),
    })
}

/// The numbers of fields, none for all of them.
fn fields(mut rest: &[u8], store: &Store) -> Result<Fields> {
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
fn record(mut rest: &[u8]) -> Result<Record> {
    let mut values = Record::new();
    while !rest.is_empty() {
        values.push((number(&mut rest)?, Bytes::copy_from_slice(value(&mut rest)?)));
    }
    Ok(values)
}

fn value<'o>(rest: &mut &'o [u8]) -> Result<&'o [u8]> {
    let length = number(rest)?;
    rest.split_off(..length).ok_or_else(torn)
}

fn number(rest: &mut &[u8]) -> Result<usize> {
    let (bytes, behind) = rest.split_first_chunk().ok_or_else(torn)?;
    *rest = behind;
    usize::try_from(u32::from_be_bytes(*bytes)).map_err(|_| torn())
}

fn torn() -> Error {
    Error::invalid("an order from Java ends too early; the class and the library are of different versions")
}

/// The status, then each record: how many values, then number, length and bytes of each.
pub(crate) fn encode(status: Status, rows: &[StoredRow], store: &Store, out: &mut Vec<u8>) {
    out.push(status as u8);
    let put = |out: &mut Vec<u8>, number: usize| out.extend(u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
    for row in rows {
        put(out, store.values(row).count());
        for (field, value) in store.values(row) {
            put(out, field);
            put(out, value.len());
            out.extend_from_slice(value);
        }
    }
}
