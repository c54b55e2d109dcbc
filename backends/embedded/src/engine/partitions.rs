//! When partitions were deleted, so that older writes which arrive late stay hidden in rows that aren't stored.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, Slice};
use peristyle_core::Result;
use peristyle_core::model::WriteTime;

use crate::error::{corrupt, from_fjall};

const PARTITIONS: &str = "partitions";
/// How many deletes of partitions pass between two looks for those that may be forgotten.
const SWEEP_EVERY: usize = 1024;

/// The deletes that are remembered: in memory, where every write of a row looks, and on disk for the next opening.
pub(crate) struct Partitions {
    /// By the table's number, then the partition key's bytes.
    wiped: HashMap<u64, HashMap<Slice, WriteTime>>,
    stored: Keyspace,
    since_sweep: usize,
}

impl Partitions {
    /// Reads them; those of tables that are gone are dropped.
    pub(crate) fn open(db: &Database, folder: &Path, tables: &HashSet<u64>) -> Result<Self> {
        let fail = |error| from_fjall(error, folder);
        let stored = db.keyspace(PARTITIONS, KeyspaceCreateOptions::default).map_err(fail)?;
        let mut partitions = Self { wiped: HashMap::new(), stored, since_sweep: 0 };
        for entry in partitions.stored.iter() {
            let (key, value) = entry.into_inner().map_err(fail)?;
            let (table, time) = decode(&key, &value).ok_or_else(|| corrupt(folder))?;
            if tables.contains(&table) {
                partitions.wiped.entry(table).or_default().insert(key.slice(8..), time);
            } else {
                partitions.stored.remove(key).map_err(fail)?;
            }
        }
        Ok(partitions)
    }

    /// Up to when the partition was deleted.
    pub(crate) fn wiped(&self, table: u64, partition: &[u8]) -> Option<WriteTime> {
        self.wiped.get(&table)?.get(partition).copied()
    }

    /// Remembers a delete, and forgets, now and then, those up to `before`.
    pub(crate) fn wipe(
        &mut self,
        table: u64,
        partition: &Slice,
        time: WriteTime,
        before: Option<WriteTime>,
        batch: &mut OwnedWriteBatch,
    ) {
        let known = self.wiped.entry(table).or_default().entry(partition.clone()).or_insert(time);
        *known = time.max(*known);
        batch.insert(&self.stored, encode_key(table, partition), known.as_micros().to_be_bytes());
        self.since_sweep += 1;
        if self.since_sweep >= SWEEP_EVERY {
            self.since_sweep = 0;
            self.sweep(before, batch);
        }
    }

    fn sweep(&mut self, before: Option<WriteTime>, batch: &mut OwnedWriteBatch) {
        for (table, partitions) in &mut self.wiped {
            partitions.retain(|partition, time| {
                let kept = Some(*time) > before;
                if !kept {
                    batch.remove(&self.stored, encode_key(*table, partition));
                }
                kept
            });
        }
    }

    /// Forgets a table that is gone; what is on disk goes at the next opening.
    pub(crate) fn forget(&mut self, table: u64) {
        self.wiped.remove(&table);
    }
}

fn encode_key(table: u64, partition: &[u8]) -> Vec<u8> {
    [&table.to_be_bytes(), partition].concat()
}

fn decode(key: &[u8], value: &[u8]) -> Option<(u64, WriteTime)> {
    let (table, _) = key.split_first_chunk()?;
    let time = WriteTime::from_micros(i64::from_be_bytes(value.try_into().ok()?)).ok()?;
    Some((u64::from_be_bytes(*table), time))
}
