//! A row as one key and one value.
//!
//! The key is the [ordered](peristyle_core::codec::ordered) encoding of the primary key. The value is the [`Record`], after
//! the original key values where the encoding doesn't tell them: byte 0 or 1, and for 1 the length of what follows in 4
//! bytes and each value's length in 4 bytes and CQL bytes.

use bytes::Bytes;
use fjall::Slice;
use peristyle_core::codec::ordered::{decode_key, encode_key, is_lossy};
use peristyle_core::codec::value::{decode_value, encode_value};
use peristyle_core::model::{Key, TableSpec, Value};
use peristyle_core::record::Record;
use peristyle_core::{Error, ErrorKind, Result};

/// An encoded primary key.
#[derive(Debug, Clone)]
pub(crate) struct RowKey {
    /// Its ordered bytes.
    pub(crate) bytes: Slice,
    /// How many of them are the partition key's.
    pub(crate) partition: usize,
    /// The values' own bytes, where the ordered ones don't tell them.
    pub(crate) original: Option<Bytes>,
}

impl RowKey {
    /// Encodes a full primary key.
    pub(crate) fn new(spec: &TableSpec, key: &Key) -> Result<Self> {
        let columns = spec.primary_key();
        check_len(key.values(), columns.len())?;
        let (first, rest) = columns.split_at(spec.partition_len());
        let (partition_values, clustering_values) = key.values().split_at(spec.partition_len());
        let mut bytes = Vec::with_capacity(32);
        encode_key(partition_values, first, &mut bytes)?;
        let partition = bytes.len();
        encode_key(clustering_values, rest, &mut bytes)?;
        let lossy = columns.iter().zip(key.values()).any(|(column, value)| is_lossy(value, column));
        Ok(Self { bytes: bytes.into(), partition, original: lossy.then(|| original(key)) })
    }

    /// The partition key's bytes: what every key of the partition begins with.
    pub(crate) fn partition(&self) -> &[u8] {
        self.bytes.get(..self.partition).unwrap_or(&self.bytes)
    }
}

/// Encodes a partition key.
pub(crate) fn partition_key(spec: &TableSpec, key: &Key) -> Result<Slice> {
    check_len(key.values(), spec.partition_len())?;
    let mut bytes = Vec::with_capacity(32);
    encode_key(key.values(), spec.partition_key(), &mut bytes)?;
    Ok(bytes.into())
}

fn check_len(values: &[Value], columns: usize) -> Result<()> {
    if values.len() == columns {
        return Ok(());
    }
    Err(Error::invalid(format!("{} key values for {columns} key columns", values.len())))
}

fn original(key: &Key) -> Bytes {
    let mut out = Vec::new();
    for value in key.values() {
        out.extend(u32::try_from(value.size()).unwrap_or(u32::MAX).to_be_bytes());
        encode_value(value, &mut out);
    }
    out.into()
}

/// What is stored for a row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stored {
    /// The key as it was first written, where the ordered bytes don't tell it.
    pub(crate) original: Option<Bytes>,
    /// Its columns.
    pub(crate) record: Record,
}

impl Stored {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        match &self.original {
            None => out.push(0),
            Some(original) => {
                out.push(1);
                out.extend(u32::try_from(original.len()).unwrap_or(u32::MAX).to_be_bytes());
                out.extend_from_slice(original);
            }
        }
        self.record.encode(&mut out);
        out
    }

    pub(crate) fn decode(value: impl Into<Bytes>) -> Result<Self> {
        let mut bytes = value.into();
        let original = match take(&mut bytes, 1)?.first() {
            Some(0) => None,
            Some(1) => Some(take_counted(&mut bytes)?),
            _ => return Err(garbled()),
        };
        Ok(Self { original, record: Record::decode(&bytes)? })
    }

    /// The row's primary key.
    pub(crate) fn key(&self, spec: &TableSpec, encoded: &[u8]) -> Result<Key> {
        let Some(original) = &self.original else {
            return Ok(Key::new(decode_key(encoded, spec.primary_key())?));
        };
        let mut bytes = original.clone();
        let decode = |column: &peristyle_core::model::Column| decode_value(column.ty, take_counted(&mut bytes)?);
        spec.primary_key().iter().map(decode).collect::<Result<Vec<Value>>>().map(Key::new)
    }

    /// Whether nothing is left but that the row was wiped.
    pub(crate) fn is_wiped_only(&self) -> bool {
        self.record.newest() == self.record.wiped()
    }
}

fn take(bytes: &mut Bytes, len: usize) -> Result<Bytes> {
    if len > bytes.len() {
        return Err(garbled());
    }
    Ok(bytes.split_to(len))
}

fn take_counted(bytes: &mut Bytes) -> Result<Bytes> {
    let len = take(bytes, 4)?;
    let len = u32::from_be_bytes(len.as_ref().try_into().map_err(|_| garbled())?);
    take(bytes, usize::try_from(len).unwrap_or(usize::MAX))
}

fn garbled() -> Error {
    Error::new(ErrorKind::Corrupt, "a stored row is cut short or garbled; restore the folder from a copy")
}

#[cfg(test)]
mod tests {
    use peristyle_core::model::{Decimal, Order, Ttl, Type, WriteTime};
    use peristyle_core::request::Mutation;
    use proptest::prelude::*;

    use super::*;

    fn spec() -> TableSpec {
        TableSpec::builder("t")
            .partition("p", Type::Text)
            .clustering("c", Type::Decimal, Order::Descending)
            .column("v", Type::Text)
            .build()
            .unwrap()
    }

    fn key(scale: i32) -> Key {
        let one = Decimal::new(10_i64.pow(scale.unsigned_abs()), scale);
        Key::new(vec![Value::from("p"), Value::from(one)])
    }

    fn stored(scale: i32) -> (RowKey, Stored) {
        let encoded = RowKey::new(&spec(), &key(scale)).unwrap();
        let time = WriteTime::from_micros(1).unwrap();
        let mut stored = Stored { original: encoded.original.clone(), ..Stored::default() };
        let put = Mutation::put(key(scale), time, vec![(2, Value::from("x"))], Ttl::Never);
        stored.record.apply(&put, None, 0).unwrap();
        (encoded, stored)
    }

    #[test]
    fn a_key_that_its_bytes_tell_is_not_kept_twice() {
        let (encoded, stored) = stored(0);
        assert_eq!(stored.original, None);
        assert_eq!(stored.key(&spec(), &encoded.bytes).unwrap(), key(0));
    }

    #[test]
    fn a_key_that_its_bytes_do_not_tell_comes_back_as_it_was() {
        let (encoded, stored) = stored(2);
        assert_eq!(encoded.bytes, RowKey::new(&spec(), &key(0)).unwrap().bytes);
        let back = Stored::decode(stored.encode()).unwrap();
        assert_eq!(back.record, stored.record);
        assert_eq!(format!("{:?}", back.key(&spec(), &encoded.bytes).unwrap()), format!("{:?}", key(2)));
    }

    #[test]
    fn the_partition_is_a_prefix_of_the_key() {
        let encoded = RowKey::new(&spec(), &key(0)).unwrap();
        let partition = partition_key(&spec(), &Key::new(vec![Value::from("p")])).unwrap();
        assert_eq!(encoded.partition(), &*partition);
        assert!(encoded.bytes.len() > partition.len());
    }

    #[test]
    fn a_part_of_a_key_is_no_key() {
        assert!(RowKey::new(&spec(), &Key::new(vec![Value::from("p")])).is_err());
        assert!(partition_key(&spec(), &key(0)).is_err());
    }

    #[test]
    fn a_row_cut_short_anywhere_is_corrupt_or_another_row() {
        let whole = stored(2).1.encode();
        for len in 0..whole.len() {
            match Stored::decode(whole[..len].to_vec()) {
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt),
                Ok(short) => assert!(!short.record.exists(0), "{len}"),
            }
        }
    }

    proptest! {
        #[test]
        fn bytes_of_any_kind_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(stored) = Stored::decode(bytes.clone()) {
                let _ = stored.key(&spec(), &bytes);
            }
        }
    }
}
