//! A stored row of an engine of our own: its columns with their write times, merged by "the last write wins".
//!
//! The rules are those observed on Apache Cassandra: a larger write time wins; at equal times a delete wins over a value, an
//! expiring value over a lasting one, the later expiry over the earlier, and then the larger bytes. What is deleted or
//! expired stays as a tombstone, so that an older write which arrives late stays hidden.

use std::num::NonZeroU32;

use bytes::Bytes;

use crate::codec::value::{decode_value, encode_value};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{CellMeta, Key, StoredRow, TableSpec, Ttl, Type, Value, WriteTime};
use crate::request::{CellWrite, Mutation, Projection, Wipe};

/// The columns of one stored row, and when the row was last wiped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    wiped: Option<WriteTime>,
    marker: Option<Slot>,
    /// Ascending by column.
    cells: Vec<(u16, Slot)>,
}

/// The last write of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Slot {
    time: WriteTime,
    /// The second since 1970 at which it ends; `None` is never.
    expires: Option<i64>,
    /// The serialised value; `None` is deleted.
    value: Option<Bytes>,
}

impl Slot {
    fn is_live(&self, now: i64) -> bool {
        self.value.is_some() && self.expires.is_none_or(|expires| expires > now)
    }

    /// The order in which writes of one column win.
    fn rank(&self) -> (WriteTime, bool, Option<i64>, Option<&Bytes>) {
        (self.time, self.value.is_none(), self.expires, self.value.as_ref())
    }
}

impl Record {
    /// Merges a mutation of this row in. `now` is the second since 1970 from which times to live count.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if it writes a column beyond the 65 535th; nothing is merged then.
    pub fn apply(&mut self, mutation: &Mutation, default_ttl: Option<NonZeroU32>, now: i64) -> Result<()> {
        let mut slots = Vec::with_capacity(mutation.cells.len());
        for cell in &*mutation.cells {
            let column = u16::try_from(cell.column).map_err(|_| Error::invalid("too many columns"))?;
            slots.push((column, slot(&cell.write, mutation.write_time, default_ttl, now)));
        }
        if mutation.wipe != Wipe::Nothing {
            self.wipe(mutation.wipe_time());
        }
        if let Some(ttl) = mutation.marker {
            let time = mutation.write_time;
            let slot = Slot { time, expires: expiry(ttl, default_ttl, now), value: Some(Bytes::new()) };
            self.merge_marker(slot);
        }
        for (column, slot) in slots {
            self.merge_cell(column, slot);
        }
        Ok(())
    }

    /// Hides everything written up to this time, now and later.
    pub fn wipe(&mut self, time: WriteTime) {
        self.wiped = self.wiped.max(Some(time));
        let wiped = self.wiped;
        self.cells.retain(|(_, slot)| Some(slot.time) > wiped);
        self.marker.take_if(|slot| Some(slot.time) <= wiped);
    }

    /// When the row was last wiped.
    pub fn wiped(&self) -> Option<WriteTime> {
        self.wiped
    }

    /// The newest write time in it.
    pub fn newest(&self) -> Option<WriteTime> {
        let slots = self.cells.iter().map(|(_, slot)| slot).chain(&self.marker);
        slots.map(|slot| slot.time).max().max(self.wiped)
    }

    fn merge_marker(&mut self, slot: Slot) {
        let current = self.marker.as_ref();
        if Some(slot.time) > self.wiped && current.is_none_or(|current| slot.rank() > current.rank()) {
            self.marker = Some(slot);
        }
    }

    fn merge_cell(&mut self, column: u16, slot: Slot) {
        if Some(slot.time) <= self.wiped {
            return;
        }
        match self.cells.binary_search_by_key(&column, |(existing, _)| *existing) {
            Err(place) => self.cells.insert(place, (column, slot)),
            Ok(place) => {
                if let Some((_, current)) = self.cells.get_mut(place)
                    && slot.rank() > current.rank()
                {
                    *current = slot;
                }
            }
        }
    }

    /// Whether the row exists: whether a column or its marker is live.
    pub fn exists(&self, now: i64) -> bool {
        self.cells.iter().map(|(_, slot)| slot).chain(&self.marker).any(|slot| slot.is_live(now))
    }

    /// The row as a read sees it, or `None` if it doesn't exist.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if a value can't be one of its column's type.
    pub fn read(&self, table: &TableSpec, key: &Key, projection: &Projection, now: i64) -> Result<Option<StoredRow>> {
        if !self.exists(now) {
            return Ok(None);
        }
        let mut row = StoredRow { values: vec![None; table.columns().len()], meta: Vec::new() };
        for (place, value) in row.values.iter_mut().zip(key.values()) {
            *place = Some(value.clone());
        }
        let wants_meta = projection.write_time || projection.ttl;
        if wants_meta {
            row.meta = vec![CellMeta::default(); table.columns().len()];
        }
        for (index, slot) in &self.cells {
            let index = usize::from(*index);
            let (Some(column), Some(bytes)) = (table.columns().get(index), &slot.value) else { continue };
            if !slot.is_live(now) || !projection.includes(index) {
                continue;
            }
            if let Some(place) = row.values.get_mut(index) {
                *place = Some(decode_value(column.ty, bytes.clone())?);
            }
            if let Some(place) = row.meta.get_mut(index) {
                *place = slot.meta(projection, now);
            }
        }
        Ok(Some(row))
    }

    /// The live value of a column.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if it can't be one of the type.
    pub fn value(&self, column: usize, ty: Type, now: i64) -> Result<Option<Value>> {
        let slot = self.cells.iter().find(|(existing, _)| usize::from(*existing) == column).map(|(_, slot)| slot);
        let live = slot.filter(|slot| slot.is_live(now)).and_then(|slot| slot.value.as_ref());
        live.map(|bytes| decode_value(ty, bytes.clone())).transpose()
    }

    /// Drops tombstones and expired columns that were written up to `before`. Returns whether anything is left.
    pub fn purge(&mut self, before: WriteTime, now: i64) -> bool {
        self.cells.retain(|(_, slot)| slot.is_live(now) || slot.time > before);
        self.marker.take_if(|slot| !slot.is_live(now) && slot.time <= before);
        self.wiped.take_if(|wiped| *wiped <= before);
        self.wiped.is_some() || self.marker.is_some() || !self.cells.is_empty()
    }
}

impl Slot {
    fn meta(&self, projection: &Projection, now: i64) -> CellMeta {
        let left = self.expires.and_then(|expires| u32::try_from(expires - now).ok()).and_then(NonZeroU32::new);
        CellMeta { write_time: projection.write_time.then_some(self.time), ttl: left.filter(|_| projection.ttl) }
    }
}

fn slot(write: &CellWrite, time: WriteTime, default_ttl: Option<NonZeroU32>, now: i64) -> Slot {
    match write {
        CellWrite::Delete => Slot { time, expires: None, value: None },
        CellWrite::Put(value, ttl) => {
            let mut bytes = Vec::with_capacity(value.size());
            encode_value(value, &mut bytes);
            Slot { time, expires: expiry(*ttl, default_ttl, now), value: Some(bytes.into()) }
        }
    }
}

fn expiry(ttl: Ttl, default_ttl: Option<NonZeroU32>, now: i64) -> Option<i64> {
    ttl.resolve(default_ttl).map(|seconds| now + i64::from(seconds.get()))
}

/// The first byte of an encoded record, so that the form can change.
const FORMAT: u8 = 1;
const DELETED: u8 = 1;
const EXPIRES: u8 = 2;
/// The column number that stands for the marker.
const MARKER: u16 = u16::MAX;

impl Record {
    /// Appends its stored form: format, wipe time (0 for never), then per column: number, flags, time, expiry, length, value.
    /// All numbers are big-endian.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(FORMAT);
        out.extend(self.wiped.map_or(0, WriteTime::as_micros).to_be_bytes());
        let marker = self.marker.iter().map(|slot| (MARKER, slot));
        for (column, slot) in self.cells.iter().map(|(column, slot)| (*column, slot)).chain(marker) {
            out.extend(column.to_be_bytes());
            let deleted = if slot.value.is_none() { DELETED } else { 0 };
            let expires = if slot.expires.is_some() { EXPIRES } else { 0 };
            out.push(deleted | expires);
            out.extend(slot.time.as_micros().to_be_bytes());
            if let Some(expires) = slot.expires {
                out.extend(expires.to_be_bytes());
            }
            if let Some(value) = &slot.value {
                out.extend(u32::try_from(value.len()).unwrap_or(u32::MAX).to_be_bytes());
                out.extend_from_slice(value);
            }
        }
    }

    /// Reads the stored form; values share the buffer.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] where it isn't one, [`ErrorKind::SchemaMismatch`] for a newer format.
    pub fn decode(bytes: &Bytes) -> Result<Self> {
        let mut reader = Reader { bytes: bytes.clone() };
        match reader.take(1)?.first() {
            Some(&FORMAT) => {}
            other => {
                let message = format!("a stored row has format {other:?}; this version reads {FORMAT}");
                return Err(Error::new(ErrorKind::SchemaMismatch, message));
            }
        }
        let mut record = Self { wiped: WriteTime::from_micros(reader.i64()?).ok(), ..Self::default() };
        while !reader.bytes.is_empty() {
            let (column, slot) = reader.slot()?;
            match column {
                MARKER => record.marker = Some(slot),
                column => record.cells.push((column, slot)),
            }
        }
        Ok(record)
    }
}

struct Reader {
    bytes: Bytes,
}

impl Reader {
    fn take(&mut self, len: usize) -> Result<Bytes> {
        if len > self.bytes.len() {
            return Err(corrupt());
        }
        Ok(self.bytes.split_to(len))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.as_ref().try_into().map_err(|_| corrupt())
    }

    fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    fn slot(&mut self) -> Result<(u16, Slot)> {
        let column = u16::from_be_bytes(self.array()?);
        let [flags] = self.array()?;
        let time = WriteTime::from_micros(self.i64()?).map_err(|_| corrupt())?;
        let expires = if flags & EXPIRES != 0 { Some(self.i64()?) } else { None };
        let value = if flags & DELETED == 0 {
            let len = u32::from_be_bytes(self.array()?);
            Some(self.take(usize::try_from(len).unwrap_or(usize::MAX))?)
        } else {
            None
        };
        Ok((column, Slot { time, expires, value }))
    }
}

fn corrupt() -> Error {
    Error::new(ErrorKind::Corrupt, "a stored row is cut short or garbled; restore the folder from a copy")
}

#[cfg(test)]
mod tests;
