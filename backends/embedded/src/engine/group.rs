//! The writes that become durable together.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use fjall::{Error as Fjall, OwnedWriteBatch, Slice};
use peristyle_core::model::{Type, Value, WriteTime};
use peristyle_core::request::{Cell, CellWrite, Condition, Mutation, Projection, Wipe};
use peristyle_core::response::Comparison;
use peristyle_core::{Error, Outcome, Response, Result};

use super::Store;
use super::partitions::Partitions;
use super::queue::{Operation, RowWrite};
use crate::codec::{RowKey, Stored, partition_key};
use crate::error::{from_fjall, not_applied};
use crate::schema::Table;

/// The rows that a group has touched, as they are after its writes so far. A row that several writes touch is stored once.
pub(crate) struct Group<'a> {
    store: &'a Store,
    partitions: &'a mut Partitions,
    batch: OwnedWriteBatch,
    rows: HashMap<RowId, Row>,
    tables: Vec<Arc<Table>>,
    /// Microseconds since 1970.
    micros: i64,
    /// Seconds since 1970, from which times to live count.
    seconds: i64,
}

#[derive(PartialEq, Eq, Hash)]
struct RowId {
    table: u64,
    key: Slice,
}

struct Row {
    stored: Stored,
    /// How many bytes of its key are the partition's.
    partition: usize,
    changed: bool,
}

impl<'a> Group<'a> {
    pub(crate) fn new(store: &'a Store, partitions: &'a mut Partitions) -> Self {
        Self {
            store,
            partitions,
            batch: store.db.batch().durability(store.settings.persist),
            rows: HashMap::new(),
            tables: Vec::new(),
            micros: store.clock().micros(),
            seconds: store.clock().seconds(),
        }
    }

    /// Applies one write, which changes everything it says or, with an error, nothing.
    pub(crate) fn apply(&mut self, table: Arc<Table>, operation: Operation) -> Result<Response> {
        let answer = self.apply_to(&table, operation);
        if self.tables.iter().all(|known| known.id != table.id) {
            self.tables.push(table);
        }
        answer.map_err(not_applied)
    }

    fn apply_to(&mut self, table: &Table, operation: Operation) -> Result<Response> {
        match operation {
            Operation::Apply(write) => self.put(table, &write).map(|()| Response::Done),
            Operation::ApplyAll(writes) => {
                let put = |write: Result<RowWrite>| write.and_then(|write| self.put(table, &write));
                Ok(Response::Outcomes(writes.into_iter().map(put).collect()))
            }
            Operation::DeletePartition(mutation) => self.delete_partition(table, &mutation).map(|()| Response::Done),
            Operation::Increment { key, deltas } => self.increment(table, &key, &deltas).map(|()| Response::Done),
            Operation::CompareAndPut { write, condition } => {
                self.compare_and_put(table, write, &condition).map(Response::Compared)
            }
        }
    }

    fn put(&mut self, table: &Table, write: &RowWrite) -> Result<()> {
        let seconds = self.seconds;
        let row = self.row(table, &write.key)?;
        row.stored.record.apply(&write.mutation, table.spec.default_ttl(), seconds)?;
        row.changed = true;
        Ok(())
    }

    fn increment(&mut self, table: &Table, key: &RowKey, deltas: &[(usize, i64)]) -> Result<()> {
        let (micros, seconds) = (self.micros, self.seconds);
        let row = self.row(table, key)?;
        let mut cells = Vec::with_capacity(deltas.len());
        for (column, delta) in deltas {
            let count = match row.stored.record.value(*column, Type::Counter, seconds)? {
                Some(Value::Counter(count)) => count,
                _ => 0,
            };
            let value = Value::Counter(count.wrapping_add(*delta));
            cells.push(Cell { column: *column, write: CellWrite::Put(value, peristyle_core::model::Ttl::Never) });
        }
        let mutation = Mutation {
            key: peristyle_core::model::Key::default(),
            write_time: row.next_time(micros)?,
            wipe: Wipe::Nothing,
            marker: None,
            cells: cells.into(),
        };
        row.stored.record.apply(&mutation, None, seconds)?;
        row.changed = true;
        Ok(())
    }

    fn compare_and_put(&mut self, table: &Table, write: RowWrite, condition: &Condition) -> Result<Comparison> {
        let (micros, seconds) = (self.micros, self.seconds);
        let row = self.row(table, &write.key)?;
        if !row.meets(table, condition, seconds)? {
            let key = row.stored.key(&table.spec, &write.key.bytes)?;
            let current = row.stored.record.read(&table.spec, &key, &Projection::default(), seconds)?;
            return Ok(Comparison { applied: false, current });
        }
        let mutation = Mutation { write_time: row.next_time(micros)?, ..write.mutation };
        row.stored.record.apply(&mutation, table.spec.default_ttl(), seconds)?;
        row.changed = true;
        Ok(Comparison { applied: true, current: None })
    }

    fn delete_partition(&mut self, table: &Table, mutation: &Mutation) -> Result<()> {
        let partition = partition_key(&table.spec, &mutation.key)?;
        for entry in table.rows.prefix(&partition) {
            let (key, value) = entry.into_inner().map_err(|error| fault(self.store, error))?;
            if let Entry::Vacant(place) = self.rows.entry(RowId { table: table.id, key }) {
                place.insert(Row { stored: Stored::decode(value)?, partition: partition.len(), changed: false });
            }
        }
        let time = mutation.wipe_time();
        let of_partition = |id: &RowId| id.table == table.id && id.key.starts_with(&partition);
        for (_, row) in self.rows.iter_mut().filter(|(id, _)| of_partition(id)) {
            row.stored.record.wipe(time);
            row.changed = true;
        }
        self.partitions.wipe(table.id, &partition, time, self.store.settings.grace.before(), &mut self.batch);
        Ok(())
    }

    /// The row as this group's writes so far have left it.
    fn row(&mut self, table: &Table, key: &RowKey) -> Result<&mut Row> {
        match self.rows.entry(RowId { table: table.id, key: key.bytes.clone() }) {
            Entry::Occupied(place) => Ok(place.into_mut()),
            Entry::Vacant(place) => {
                let value = table.rows.get(&key.bytes).map_err(|error| fault(self.store, error))?;
                let mut stored = match value {
                    Some(value) => Stored::decode(value)?,
                    None => Stored { original: key.original.clone(), ..Stored::default() },
                };
                if let Some(time) = self.partitions.wiped(table.id, key.partition()) {
                    stored.record.wipe(time);
                }
                Ok(place.insert(Row { stored, partition: key.partition, changed: false }))
            }
        }
    }

    /// Makes everything durable in one step, and returns the tables concerned. If it fails, everything or nothing may be there
    /// at the next opening.
    pub(crate) fn commit(mut self) -> (Vec<Arc<Table>>, Result<()>) {
        for (id, row) in self.rows.drain().filter(|(_, row)| row.changed) {
            let Some(table) = self.tables.iter().find(|table| table.id == id.table) else { continue };
            if row.is_covered(&id, self.partitions) {
                self.batch.remove(&table.rows, id.key);
            } else {
                self.batch.insert(&table.rows, id.key, row.stored.encode());
            }
        }
        let written = self.batch.commit().map_err(|error| {
            let outcome = if matches!(error, Fjall::Poisoned) { Outcome::NotApplied } else { Outcome::Unknown };
            fault(self.store, error).with_outcome(outcome)
        });
        (self.tables, written)
    }
}

fn fault(store: &Store, error: Fjall) -> Error {
    from_fjall(error, &store.settings.folder)
}

impl Row {
    /// A write time for a write that the engine orders: now, or just behind everything in the row.
    fn next_time(&self, micros: i64) -> Result<WriteTime> {
        let behind = self.stored.record.newest().map_or(0, |newest| newest.as_micros().saturating_add(1));
        WriteTime::from_micros(micros.max(behind).max(1))
    }

    fn meets(&self, table: &Table, condition: &Condition, seconds: i64) -> Result<bool> {
        let value = |column: usize| {
            let ty = table.spec.columns().get(column).map_or(Type::Blob, |column| column.ty);
            self.stored.record.value(column, ty, seconds)
        };
        Ok(match condition {
            Condition::RowAbsent => !self.stored.record.exists(seconds),
            Condition::ColumnAbsent(column) => value(*column)?.is_none(),
            Condition::ColumnEquals(column, expected) => {
                value(*column)?.is_some_and(|value| value.cluster_cmp(expected).is_eq())
            }
        })
    }

    /// Whether the delete of its partition says all that is left of it.
    fn is_covered(&self, id: &RowId, partitions: &Partitions) -> bool {
        let partition = || id.key.get(..self.partition).unwrap_or_default();
        self.stored.is_wiped_only() && self.stored.record.wiped() <= partitions.wiped(id.table, partition())
    }
}
