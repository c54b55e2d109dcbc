//! Row keys: the salt, the partition key, the clustering key.

use bytes::Bytes;
use peristyle_core::codec::ordered::{decode_key, decode_prefix, encode_key, is_lossy};
use peristyle_core::codec::raw::{decode_raw, encode_raw, raw_length};
use peristyle_core::codec::salt::{check_salted, salt_length, salt_prefix};
use peristyle_core::codec::value::{decode_value, encode_value};
use peristyle_core::model::{Column, Key, KeyEncoding, TableSpec, Value};
use peristyle_core::{Error, ErrorKind, Result};

use super::Layout;

/// The row key of a full primary key, or of its first values the prefix that rows with them share. The partition key must be
/// whole.
///
/// # Errors
/// `InvalidArgument` for values that fit no column, and an empty key; `TooLarge` over what HBase takes.
pub(crate) fn encode_row_key(layout: &Layout, values: &[Value]) -> Result<Vec<u8>> {
    let mut key = Vec::with_capacity(32);
    append_row_key(layout, values, &mut key)?;
    Ok(key)
}

fn append_row_key(layout: &Layout, values: &[Value], out: &mut Vec<u8>) -> Result<()> {
    let spec = &*layout.spec;
    let Some((partition, clustering)) = values.split_at_checked(spec.partition_len()) else {
        let message = format!("{} of {} values of the partition key", values.len(), spec.partition_len());
        return Err(Error::invalid(message));
    };
    let start = out.len();
    append_partition(layout, partition, out)?;
    encode(layout.encoding, clustering, spec.clustering_key(), out)?;
    check_length(layout, out.len() - start)
}

/// What the row keys of a partition begin with: the salt and the partition key.
pub(crate) fn encode_partition(layout: &Layout, partition: &[Value]) -> Result<Vec<u8>> {
    let mut key = Vec::with_capacity(32);
    append_partition(layout, partition, &mut key)?;
    Ok(key)
}

/// Appends what [`encode_partition`] gives.
pub(crate) fn append_partition(layout: &Layout, partition: &[Value], out: &mut Vec<u8>) -> Result<()> {
    let salt = layout.spec.salt();
    let start = out.len();
    out.resize(start + salt.map_or(0, salt_length), 0);
    encode(layout.encoding, partition, layout.spec.partition_key(), out)?;
    let key = out.get_mut(start..).unwrap_or_default();
    if let Some(salt) = salt
        && let Some((place, encoded)) = key.split_at_mut_checked(salt_length(salt))
    {
        if encoded.is_empty() {
            return Err(empty_key());
        }
        place.copy_from_slice(&salt_prefix(salt, encoded));
    }
    check_length(layout, out.len() - start)
}

/// Row keys, one behind the other in one buffer.
#[derive(Debug, Default)]
pub(crate) struct RowKeys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RowKeys {
    pub(crate) fn with_capacity(keys: usize) -> Self {
        Self { bytes: Vec::with_capacity(keys * 32), ends: Vec::with_capacity(keys) }
    }

    /// Adds a key; one that can't be is empty.
    ///
    /// # Errors
    /// Those of [`encode_row_key`].
    pub(crate) fn push(&mut self, layout: &Layout, values: &[Value]) -> Result<()> {
        let start = self.bytes.len();
        let encoded = append_row_key(layout, values, &mut self.bytes);
        if encoded.is_err() {
            self.bytes.truncate(start);
        }
        self.ends.push(self.bytes.len());
        encoded
    }

    /// The keys in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| self.bytes.get(*start..*end).unwrap_or_default())
    }
}

fn encode(encoding: KeyEncoding, values: &[Value], columns: &[Column], out: &mut Vec<u8>) -> Result<()> {
    match encoding {
        KeyEncoding::Ordered => encode_key(values, columns, out),
        KeyEncoding::Raw => encode_raw(values, columns, out),
    }
}

fn check_length(layout: &Layout, length: usize) -> Result<()> {
    let limit = layout.max_row_key;
    match length {
        0 => Err(empty_key()),
        length if length <= limit => Ok(()),
        length => {
            let message = format!("a row key of {length} bytes when encoded; HBase takes {limit} in this table");
            Err(Error::new(ErrorKind::TooLarge, message))
        }
    }
}

fn empty_key() -> Error {
    Error::invalid("an empty row key; HBase takes none")
}

/// The primary key of a row key; of an `original`, where the row has one.
///
/// # Errors
/// `Corrupt` for a row key that the table's layout can't give.
pub(crate) fn decode_row_key(layout: &Layout, row: &[u8], original: Option<&[u8]>) -> Result<Key> {
    let spec = &*layout.spec;
    if let Some(original) = original {
        return decode_original(spec, original);
    }
    let key = match spec.salt() {
        Some(salt) => check_salted(salt, row, |key| partition_length(layout, key))?,
        None => row,
    };
    match layout.encoding {
        KeyEncoding::Ordered => decode_key(key, spec.primary_key()),
        KeyEncoding::Raw => decode_raw(key, spec.primary_key()),
    }
    .map(Key::new)
}

fn partition_length(layout: &Layout, key: &[u8]) -> Result<usize> {
    let columns = layout.spec.partition_key();
    match layout.encoding {
        KeyEncoding::Ordered => decode_prefix(key, columns).map(|(_, rest)| key.len() - rest.len()),
        KeyEncoding::Raw => raw_length(key, columns),
    }
}

/// Whether a key's row key doesn't tell its bytes.
pub(crate) fn has_lossy_key(layout: &Layout, key: &Key) -> bool {
    let mut columns = layout.spec.primary_key().iter().zip(key.values());
    layout.encoding == KeyEncoding::Ordered && columns.any(|(column, value)| is_lossy(value, column))
}

/// The key's own bytes, where the row key doesn't tell them: each value's length in 4 bytes and its CQL bytes.
pub(crate) fn original(layout: &Layout, key: &Key) -> Option<Vec<u8>> {
    if !has_lossy_key(layout, key) {
        return None;
    }
    let mut out = Vec::new();
    for value in key.values() {
        out.extend(u32::try_from(value.size()).unwrap_or(u32::MAX).to_be_bytes());
        encode_value(value, &mut out);
    }
    Some(out)
}

fn decode_original(spec: &TableSpec, original: &[u8]) -> Result<Key> {
    let mut rest = Bytes::copy_from_slice(original);
    let garbled =
        || Error::new(ErrorKind::Corrupt, "a row's original key is cut short; delete the row and write it anew");
    let mut values = Vec::with_capacity(spec.key_len());
    for column in spec.primary_key() {
        let length = rest.first_chunk::<4>().map(|length| u32::from_be_bytes(*length)).ok_or_else(garbled)?;
        let _ = rest.split_to(4);
        let length = usize::try_from(length).ok().filter(|length| *length <= rest.len()).ok_or_else(garbled)?;
        values.push(decode_value(column.ty, rest.split_to(length))?);
    }
    Ok(Key::new(values))
}
