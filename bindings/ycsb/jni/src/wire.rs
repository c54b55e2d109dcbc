//! Records as bytes between Java and here: numbers of four bytes, the highest first.

use bytes::Bytes;
use peristyle::model::StoredRow;
use peristyle::{Error, Result};
use peristyle_ycsb::{Record, Status, Store};

/// Number, length and bytes of each value.
pub(crate) fn decode(record: Vec<u8>) -> Result<Record> {
    let mut rest = Bytes::from(record);
    let mut values = Record::new();
    while !rest.is_empty() {
        let (field, length) = (number(&mut rest)?, number(&mut rest)?);
        if rest.len() < length {
            return Err(torn());
        }
        values.push((field, rest.split_to(length)));
    }
    Ok(values)
}

fn number(rest: &mut Bytes) -> Result<usize> {
    if rest.len() < 4 {
        return Err(torn());
    }
    let bytes = rest.split_to(4);
    let number = bytes.iter().fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
    usize::try_from(number).map_err(|_| torn())
}

fn torn() -> Error {
    Error::invalid("a record from Java ends before its values do; the class and the library are of different versions")
}

/// The status, then each record: how many values, then number, length and bytes of each.
pub(crate) fn encode(status: Status, rows: &[StoredRow], store: &Store) -> Vec<u8> {
    let mut out = vec![status as u8];
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
