//! One table in memory.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::key::{Part, parts};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::model::{Key, StoredRow, TableSpec, Ttl, Value, WriteTime};
use crate::record::Record;
use crate::request::{Condition, Mutation, Projection, Query, Read, Scan, ScanRange, Wipe, Write};
use crate::response::{Comparison, Page, Response};

#[derive(Debug)]
pub(super) struct MemoryTable {
    spec: Arc<TableSpec>,
    rows: BTreeMap<Vec<Part>, (Key, Record)>,
    /// When partitions were deleted, so that older writes which arrive later stay hidden.
    wiped_partitions: BTreeMap<Vec<Part>, WriteTime>,
}

impl MemoryTable {
    pub(super) fn new(spec: Arc<TableSpec>) -> Self {
        Self { spec, rows: BTreeMap::new(), wiped_partitions: BTreeMap::new() }
    }

    pub(super) fn spec(&self) -> &TableSpec {
        &self.spec
    }

    pub(super) fn truncate(&mut self) {
        self.rows.clear();
        self.wiped_partitions.clear();
    }

    pub(super) fn read(&self, read: &Read, now: i64) -> Result<Response> {
        match read {
            Read::Get { key, columns } => self.get(key, columns, now).map(Response::Row),
            Read::GetAll { keys, columns } => {
                let rows: Result<_> = keys.iter().map(|key| self.get(key, columns, now)).collect();
                rows.map(Response::Rows)
            }
            Read::Query(query) => self.query(query, now).map(Response::Page),
            Read::Scan(scan) => self.scan(scan, now).map(Response::Page),
        }
    }

    fn parts(&self, key: &Key) -> Vec<Part> {
        parts(self.spec.columns(), key.values())
    }

    fn get(&self, key: &Key, columns: &Projection, now: i64) -> Result<Option<StoredRow>> {
        match self.rows.get(&self.parts(key)) {
            Some((key, record)) => record.read(&self.spec, key, columns, now),
            None => Ok(None),
        }
    }

    fn query(&self, query: &Query, now: i64) -> Result<Page> {
        let partition = self.parts(&query.partition);
        let rows = self.rows.range(partition.clone()..).take_while(|(key, _)| key.starts_with(&partition));
        let mut matching: Vec<_> = rows.filter(|(_, (key, _))| self.matches(query, key)).collect();
        if query.reverse {
            matching.reverse();
        }
        let after = query.after.as_ref().map(|after| self.parts(after));
        let beyond = if query.reverse { Ordering::Less } else { Ordering::Greater };
        matching.retain(|(key, _)| after.as_ref().is_none_or(|after| (*key).cmp(after) == beyond));
        self.page(matching.into_iter().map(|(_, row)| row), query.limit, &query.columns, now)
    }

    fn matches(&self, query: &Query, key: &Key) -> bool {
        let clustering = key.values().get(self.spec.partition_len()..).unwrap_or_default();
        let equal = |(a, b): (&Value, &Value)| a.cluster_cmp(b) == Ordering::Equal;
        let next = clustering.get(query.prefix.len());
        let within = |bound: &Bound<Value>, outside: Ordering| match (bound, next) {
            (Bound::Included(bound), Some(value)) => value.cluster_cmp(bound) != outside,
            (Bound::Excluded(bound), Some(value)) => value.cluster_cmp(bound) == outside.reverse(),
            _ => true,
        };
        clustering.iter().zip(&query.prefix).all(equal)
            && within(&query.lower, Ordering::Less)
            && within(&query.upper, Ordering::Greater)
    }

    fn scan(&self, scan: &Scan, now: i64) -> Result<Page> {
        if scan.range != ScanRange::All {
            return Err(Error::invalid("the memory backend scans whole tables; use the ranges of its own topology"));
        }
        let from = match &scan.after {
            Some(after) => Bound::Excluded(self.parts(after)),
            None => Bound::Unbounded,
        };
        let rows = self.rows.range((from, Bound::Unbounded)).map(|(_, row)| row);
        self.page(rows, scan.limit, &scan.columns, now)
    }

    fn page<'a>(
        &self,
        rows: impl Iterator<Item = &'a (Key, Record)>,
        limit: usize,
        columns: &Projection,
        now: i64,
    ) -> Result<Page> {
        let mut page = Page::default();
        for (key, record) in rows.filter(|(_, record)| record.exists(now)) {
            if page.rows.len() == limit {
                page.more = true;
                break;
            }
            page.rows.extend(record.read(&self.spec, key, columns, now)?);
        }
        Ok(page)
    }

    pub(super) fn write(&mut self, write: Write, clock: &Clock) -> Result<Response> {
        match write {
            Write::Apply(mutation) => self.apply(&mutation, clock.seconds()).map(|()| Response::Done),
            Write::ApplyAll(mutations) => {
                let now = clock.seconds();
                Ok(Response::Outcomes(mutations.iter().map(|mutation| self.apply(mutation, now)).collect()))
            }
            Write::Increment { key, deltas } => self.increment(&key, &deltas, clock).map(|()| Response::Done),
            Write::CompareAndPut { mutation, condition } => {
                self.compare_and_put(mutation, &condition, clock).map(Response::Compared)
            }
        }
    }

    fn apply(&mut self, mutation: &Mutation, now: i64) -> Result<()> {
        let parts = self.parts(&mutation.key);
        if mutation.wipe == Wipe::Partition {
            let time = mutation.wipe_time();
            self.rows
                .iter_mut()
                .filter(|(key, _)| key.starts_with(&parts))
                .for_each(|(_, (_, record))| record.wipe(time));
            let wiped = self.wiped_partitions.entry(parts).or_default();
            *wiped = time.max(*wiped);
            return Ok(());
        }
        let wiped = self.wiped_partitions.get(parts.get(..self.spec.partition_len()).unwrap_or_default()).copied();
        let (_, record) = self.rows.entry(parts).or_insert_with(|| (mutation.key.clone(), Record::default()));
        if let Some(time) = wiped {
            record.wipe(time);
        }
        record.apply(mutation, self.spec.default_ttl(), now)
    }

    /// The time of a write that the server itself decides: now, but never behind what is stored.
    fn server_time(&self, key: &Key, clock: &Clock) -> Result<WriteTime> {
        let newest = self.rows.get(&self.parts(key)).and_then(|(_, record)| record.newest());
        let behind = newest.map_or(1, |newest| newest.as_micros() + 1);
        WriteTime::from_micros(clock.micros().max(behind))
    }

    fn increment(&mut self, key: &Key, deltas: &[(usize, i64)], clock: &Clock) -> Result<()> {
        let current = self.get(key, &Projection::default(), clock.seconds())?;
        let add = |&(column, delta): &(usize, i64)| {
            let values = current.as_ref().map(|row| row.values.as_slice()).unwrap_or_default();
            let before = match values.get(column) {
                Some(Some(Value::Counter(before))) => *before,
                _ => 0,
            };
            (column, Value::Counter(before.wrapping_add(delta)))
        };
        let values = deltas.iter().map(add);
        let time = self.server_time(key, clock)?;
        self.apply(&Mutation::put(key.clone(), time, values, Ttl::Never), clock.seconds())
    }

    fn compare_and_put(&mut self, mut mutation: Mutation, condition: &Condition, clock: &Clock) -> Result<Comparison> {
        let current = self.get(&mutation.key, &Projection::default(), clock.seconds())?;
        let column = |index: usize| current.as_ref().and_then(|row| row.values.get(index)?.as_ref());
        let holds = match condition {
            Condition::RowAbsent => current.is_none(),
            Condition::ColumnAbsent(index) => column(*index).is_none(),
            Condition::ColumnEquals(index, expected) => {
                column(*index).is_some_and(|value| value.cluster_cmp(expected) == Ordering::Equal)
            }
        };
        if !holds {
            return Ok(Comparison { applied: false, current });
        }
        mutation.write_time = self.server_time(&mutation.key, clock)?;
        self.apply(&mutation, clock.seconds())?;
        Ok(Comparison { applied: true, current: None })
    }
}
