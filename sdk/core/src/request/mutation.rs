//! What happens to one row.

use std::sync::Arc;

use crate::error::Result;
use crate::model::{Key, TableSpec, ToRow, Ttl, Value, WriteTime};

/// A write of one row, or the delete of a partition: atomic, idempotent, and at one write time. A clone shares its key and
/// cells, so that to keep one for another attempt costs next to nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Mutation {
    /// The full primary key; the partition key for [`Wipe::Partition`].
    pub key: Key,
    /// When it happens. What is wiped by a mutation that also writes is wiped at the instant before, so the new columns stay.
    pub write_time: WriteTime,
    /// What is removed first.
    pub wipe: Wipe,
    /// That the row exists, whatever its columns, and for how long: for tables without value columns, and for
    /// [`Capability::RowMarker`](crate::Capability::RowMarker).
    pub marker: Option<Ttl>,
    /// What is written, at most once for each column.
    pub cells: Arc<[Cell]>,
}

/// What a mutation removes before it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wipe {
    /// Nothing.
    Nothing,
    /// The whole row.
    Row,
    /// The whole partition.
    Partition,
}

/// The write of one column.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The column's index in the table.
    pub column: usize,
    /// What happens to it.
    pub write: CellWrite,
}

/// What happens to a column.
#[derive(Debug, Clone, PartialEq)]
pub enum CellWrite {
    /// It gets this value for this long.
    Put(Value, Ttl),
    /// It becomes absent.
    Delete,
}

impl Mutation {
    /// Puts values into columns of a row; with none, it says that the row exists.
    pub fn put(key: Key, write_time: WriteTime, values: impl IntoIterator<Item = (usize, Value)>, ttl: Ttl) -> Self {
        let put = |(column, value)| Cell { column, write: CellWrite::Put(value, ttl) };
        let cells: Arc<[Cell]> = values.into_iter().map(put).collect();
        let marker = cells.is_empty().then_some(ttl);
        Self { key, write_time, wipe: Wipe::Nothing, marker, cells }
    }

    /// Puts the present columns of a row, as long as the table's default says, at a time that is yet to be set.
    pub(crate) fn put_row<R: ToRow + ?Sized>(row: &R, spec: &TableSpec) -> Result<Self> {
        let (key, mut values) = row.to_row(spec)?;
        Ok(Self::put(key, WriteTime::MIN, values.take(), Ttl::TableDefault))
    }

    /// Deletes a row.
    pub fn delete_row(key: Key, write_time: WriteTime) -> Self {
        Self { key, write_time, wipe: Wipe::Row, marker: None, cells: Arc::default() }
    }

    /// Deletes a partition.
    pub fn delete_partition(key: Key, write_time: WriteTime) -> Self {
        Self { key, write_time, wipe: Wipe::Partition, marker: None, cells: Arc::default() }
    }

    /// Deletes columns of a row.
    pub fn delete_columns(key: Key, write_time: WriteTime, columns: impl IntoIterator<Item = usize>) -> Self {
        let delete = |column| Cell { column, write: CellWrite::Delete };
        let cells = columns.into_iter().map(delete).collect();
        Self { key, write_time, wipe: Wipe::Nothing, marker: None, cells }
    }

    /// The same mutation, replacing the whole row.
    #[must_use]
    pub fn replacing(mut self) -> Self {
        self.wipe = Wipe::Row;
        self
    }

    /// The same mutation, whose columns live this long.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Ttl) -> Self {
        if self.ttls().all(|own| own == ttl) {
            return self;
        }
        self.marker = self.marker.map(|_| ttl);
        for cell in self.cells_mut() {
            if let CellWrite::Put(_, cell_ttl) = &mut cell.write {
                *cell_ttl = ttl;
            }
        }
        self
    }

    fn ttls(&self) -> impl Iterator<Item = Ttl> {
        let puts = self.cells.iter().filter_map(|cell| match cell.write {
            CellWrite::Put(_, ttl) => Some(ttl),
            CellWrite::Delete => None,
        });
        puts.chain(self.marker)
    }

    /// Its cells, to be changed: its own ones, copied if a clone has them too.
    pub fn cells_mut(&mut self) -> &mut [Cell] {
        Arc::make_mut(&mut self.cells)
    }

    /// Whether it only removes.
    pub fn is_delete(&self) -> bool {
        self.marker.is_none() && self.cells.iter().all(|cell| matches!(cell.write, CellWrite::Delete))
    }

    /// When what it wipes is wiped: the write time of a pure delete, the instant before it of a replace.
    pub fn wipe_time(&self) -> WriteTime {
        if self.cells.is_empty() && self.marker.is_none() { self.write_time } else { self.write_time.previous() }
    }

    /// Adds a later mutation of the same key to this one, so that one mutation has the effect of both in order.
    pub fn fold(&mut self, later: Self) {
        if later.wipe != Wipe::Nothing {
            *self = later;
            return;
        }
        self.write_time = later.write_time;
        self.marker = later.marker.or(self.marker);
        let stays = |cell: &&Cell| later.cells.iter().all(|newer| newer.column != cell.column);
        self.cells = self.cells.iter().filter(stays).chain(&*later.cells).cloned().collect();
    }

    /// The bytes of its key and values, roughly as they go over the wire.
    pub fn size(&self) -> usize {
        let keys: usize = self.key.values().iter().map(Value::size).sum();
        let values = self.cells.iter().map(|cell| match &cell.write {
            CellWrite::Put(value, _) => value.size(),
            CellWrite::Delete => 0,
        });
        keys + values.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> WriteTime {
        WriteTime::from_micros(micros).unwrap()
    }

    fn put(micros: i64, cells: &[(usize, i64)]) -> Mutation {
        let values: Vec<_> = cells.iter().map(|(column, value)| (*column, Value::from(*value))).collect();
        Mutation::put(Key::default(), at(micros), values, Ttl::default())
    }

    #[test]
    fn later_columns_replace_earlier_ones() {
        let mut folded = put(1, &[(1, 10), (2, 20)]);
        folded.fold(put(2, &[(2, 21), (3, 31)]));
        assert_eq!(folded, put(2, &[(1, 10), (2, 21), (3, 31)]));
    }

    #[test]
    fn a_put_after_a_delete_becomes_a_replace() {
        let mut folded = Mutation::delete_row(Key::default(), at(1));
        folded.fold(put(2, &[(1, 10)]));
        assert_eq!(folded, put(2, &[(1, 10)]).replacing());
        assert_eq!(folded.wipe_time(), at(1));
    }

    #[test]
    fn a_delete_drops_what_came_before() {
        let mut folded = put(1, &[(1, 10)]);
        folded.fold(Mutation::delete_row(Key::default(), at(2)));
        assert_eq!(folded, Mutation::delete_row(Key::default(), at(2)));
        assert_eq!(folded.wipe_time(), at(2));
    }
}
