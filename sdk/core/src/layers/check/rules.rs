//! The rules that a request must keep.

use std::ops::Bound;

use crate::capability::{Capabilities, Capability};
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::model::key::check_value;
use crate::model::{Column, Key, Salt, TableSpec, Ttl, Type, Value, WriteTime};
use crate::request::{
    Action, CellWrite, Condition, Mutation, Projection, Query, Read, Request, RequestOptions, Scan, ScanOrder, Schema,
    Wipe, Write,
};

/// How far a write time may lie ahead of the clock: a later one would hide all writes until the clock has passed it.
const MAX_SKEW_MICROS: i64 = 3_600_000_000;

/// The last second that Cassandra's expiry can name, 2038-01-19T03:14:06Z.
const LAST_EXPIRY: i64 = 2_147_483_646;

#[derive(Debug)]
pub(super) struct Rules {
    pub(super) backend: &'static str,
    pub(super) capabilities: Capabilities,
    pub(super) clock: Clock,
}

impl Rules {
    /// Checks all but the single mutations of an `ApplyAll`.
    pub(super) fn check(&self, request: &Request) -> Result<()> {
        self.options(&request.options)?;
        match &request.action {
            Action::Read { table, read } => self.read(table, read),
            Action::Write { table, write } => self.write(table, write),
            Action::Schema(schema) => self.schema(schema),
        }
    }

    fn need(&self, capability: Capability) -> Result<()> {
        if self.capabilities.has(capability) {
            return Ok(());
        }
        Err(Error::unsupported(capability, self.backend))
    }

    fn options(&self, options: &RequestOptions) -> Result<()> {
        if options.consistency.is_some() || options.serial_consistency.is_some() {
            self.need(Capability::ConsistencyLevel)?;
        }
        Ok(())
    }

    fn table(&self, table: &TableSpec) -> Result<()> {
        if table.salt().is_some() {
            self.need(Capability::Salt)?;
        }
        if table.is_counter() {
            self.need(Capability::Counters)?;
        }
        Ok(())
    }

    fn schema(&self, schema: &Schema) -> Result<()> {
        match schema {
            Schema::Create { table, .. } => self.table(table),
            Schema::Truncate { .. } => self.need(Capability::Truncate),
            Schema::Describe { .. } => self.need(Capability::Introspection),
            _ => Ok(()),
        }
    }

    fn read(&self, table: &TableSpec, read: &Read) -> Result<()> {
        self.table(table)?;
        self.projection(table, read.columns())?;
        match read {
            Read::Get { key, .. } => self.key(key, table.primary_key(), table),
            Read::GetAll { keys, .. } => {
                self.rows(keys.len())?;
                keys.iter().try_for_each(|key| self.key(key, table.primary_key(), table))
            }
            Read::Query(query) => self.query(table, query),
            Read::Scan(scan) => self.scan(table, scan),
        }
    }

    fn projection(&self, table: &TableSpec, projection: &Projection) -> Result<()> {
        if projection.write_time {
            self.need(Capability::ReadWriteTime)?;
        }
        if projection.ttl {
            self.need(Capability::ReadTtl)?;
        }
        let columns = projection.columns.as_deref().unwrap_or_default();
        columns.iter().try_for_each(|column| value_column(table, *column).map(|_| ()))
    }

    fn query(&self, table: &TableSpec, query: &Query) -> Result<()> {
        self.key(&query.partition, table.partition_key(), table)?;
        page_limit(query.limit)?;
        let clustering = table.clustering_key();
        if query.prefix.len() > clustering.len() {
            return Err(Error::invalid(format!(
                "{} prefix values for {} clustering columns",
                query.prefix.len(),
                clustering.len()
            )));
        }
        clustering.iter().zip(&query.prefix).try_for_each(|(column, value)| check_value(column, value))?;
        for bound in [&query.lower, &query.upper] {
            if let Bound::Included(value) | Bound::Excluded(value) = bound {
                let column = clustering.get(query.prefix.len()).ok_or_else(|| {
                    Error::invalid(format!("table {} has no clustering column left for a range", table.name()))
                })?;
                check_value(column, value)?;
            }
        }
        query.after.as_ref().map_or(Ok(()), |after| self.key(after, table.primary_key(), table))
    }

    fn scan(&self, table: &TableSpec, scan: &Scan) -> Result<()> {
        page_limit(scan.limit)?;
        // Buckets are each in key order, and are merged, whatever the backend.
        if scan.order == ScanOrder::Key && !is_in_buckets(table) {
            self.need(Capability::OrderedScan)?;
        }
        scan.after.as_ref().map_or(Ok(()), |after| self.key(after, table.primary_key(), table))
    }

    fn write(&self, table: &TableSpec, write: &Write) -> Result<()> {
        self.table(table)?;
        match write {
            Write::Apply(mutation) => self.mutation(table, mutation, self.latest()),
            Write::ApplyAll(mutations) => self.rows(mutations.len()),
            Write::Increment { key, deltas } => self.increment(table, key, deltas),
            Write::CompareAndPut { mutation, condition } => self.compare_and_put(table, mutation, condition),
        }
    }

    /// The last write time that is allowed now.
    pub(super) fn latest(&self) -> WriteTime {
        WriteTime::from_micros(self.clock.micros().saturating_add(MAX_SKEW_MICROS)).unwrap_or_default()
    }

    pub(super) fn mutation(&self, table: &TableSpec, mutation: &Mutation, latest: WriteTime) -> Result<()> {
        not_a_counter(table)?;
        match mutation.wipe {
            Wipe::Nothing => self.key(&mutation.key, table.primary_key(), table)?,
            Wipe::Row => {
                self.key(&mutation.key, table.primary_key(), table)?;
                if !mutation.cells.is_empty() {
                    self.need(Capability::AtomicReplace)?;
                }
            }
            Wipe::Partition => {
                self.need(Capability::PartitionDelete)?;
                if is_in_buckets(table) {
                    let message = format!(
                        "table {} is salted in buckets, of which none can lose a partition: delete its rows",
                        table.name()
                    );
                    return Err(Error::new(ErrorKind::Unsupported(Capability::PartitionDelete), message));
                }
                self.key(&mutation.key, table.partition_key(), table)?;
                if !mutation.cells.is_empty() || mutation.marker.is_some() {
                    return Err(Error::invalid("a partition delete can't put columns; put the row on its own"));
                }
            }
        }
        check_write_time(mutation.write_time, latest)?;
        self.cells(table, mutation)
    }

    fn cells(&self, table: &TableSpec, mutation: &Mutation) -> Result<()> {
        if let Some(ttl) = mutation.marker {
            if !table.value_columns().is_empty() {
                self.need(Capability::RowMarker)?;
            }
            self.ttl(table, ttl)?;
        } else if mutation.cells.is_empty() && mutation.wipe == Wipe::Nothing {
            return Err(Error::invalid("a write of no columns does nothing; give at least one"));
        }
        for (place, cell) in mutation.cells.iter().enumerate() {
            let column = value_column(table, cell.column)?;
            if mutation.cells.iter().take(place).any(|earlier| earlier.column == cell.column) {
                return Err(Error::invalid(format!("column {} is written twice in one row", column.name)));
            }
            if let CellWrite::Put(value, ttl) = &cell.write {
                check_value(column, value)?;
                self.value_size(column, value)?;
                self.ttl(table, *ttl)?;
            }
        }
        Ok(())
    }

    fn increment(&self, table: &TableSpec, key: &Key, deltas: &[(usize, i64)]) -> Result<()> {
        if !table.is_counter() {
            return Err(Error::invalid(format!("table {} has no counters; put its values", table.name())));
        }
        if deltas.is_empty() {
            return Err(Error::invalid("an increment of no counter does nothing; name at least one"));
        }
        deltas.iter().try_for_each(|(column, _)| value_column(table, *column).map(|_| ()))?;
        self.key(key, table.primary_key(), table)
    }

    fn compare_and_put(&self, table: &TableSpec, mutation: &Mutation, condition: &Condition) -> Result<()> {
        self.need(Capability::CompareAndPut)?;
        not_a_counter(table)?;
        let puts = mutation.cells.iter().all(|cell| matches!(cell.write, CellWrite::Put(..)));
        if mutation.wipe != Wipe::Nothing || !puts {
            return Err(Error::invalid("a conditional write puts columns; it can't delete"));
        }
        match condition {
            Condition::RowAbsent => {}
            Condition::ColumnAbsent(column) => value_column(table, *column).map(|_| ())?,
            Condition::ColumnEquals(column, value) => check_value(value_column(table, *column)?, value)?,
        }
        self.key(&mutation.key, table.primary_key(), table)?;
        self.cells(table, mutation)
    }

    fn key(&self, key: &Key, columns: &[Column], table: &TableSpec) -> Result<()> {
        key.check(columns)?;
        if let ([column], Some(Value::Text(_) | Value::Blob(_))) = (table.partition_key(), key.values().first())
            && key.values().first().is_some_and(|value| value.size() == 0)
        {
            return Err(Error::invalid(format!("partition key {} is empty; give at least one byte", column.name)));
        }
        let (partition, clustering) = key.values().split_at(table.partition_len().min(key.values().len()));
        let limits = self.capabilities.limits();
        key_size("partition", partition, limits.partition_key_bytes)?;
        key_size("clustering", clustering, limits.clustering_key_bytes)
    }

    fn rows(&self, rows: usize) -> Result<()> {
        let limit = self.capabilities.limits().batch_rows;
        if rows <= limit {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::TooLarge,
            format!("{rows} rows in one request; the limit is {limit}, send them in parts"),
        ))
    }

    fn value_size(&self, column: &Column, value: &Value) -> Result<()> {
        let (size, limit) = (value.size(), self.capabilities.limits().value_bytes);
        if size <= limit {
            return Ok(());
        }
        let message = format!("column {}: a value of {size} bytes; the limit is {limit}", column.name);
        Err(Error::new(ErrorKind::TooLarge, message))
    }

    fn ttl(&self, table: &TableSpec, ttl: Ttl) -> Result<()> {
        if ttl != Ttl::TableDefault {
            self.need(Capability::PerWriteTtl)?;
        }
        let Some(seconds) = ttl.resolve(table.default_ttl()) else { return Ok(()) };
        let limit = self.capabilities.limits().ttl.as_secs();
        if u64::from(seconds.get()) > limit {
            return Err(Error::invalid(format!("a time to live of {seconds} s; the limit is {limit} s")));
        }
        if self.clock.seconds() + i64::from(seconds.get()) > LAST_EXPIRY {
            return Err(Error::invalid(format!(
                "a time to live of {seconds} s ends after 2038-01-19T03:14:06Z, the last expiry that servers can store"
            )));
        }
        Ok(())
    }
}

fn check_write_time(time: WriteTime, latest: WriteTime) -> Result<()> {
    if time <= latest {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "write time {} µs lies over an hour ahead of the clock, and would hide all writes until then",
        time.as_micros()
    )))
}

fn value_column(table: &TableSpec, index: usize) -> Result<&Column> {
    let column = table.columns().get(index).filter(|_| index >= table.key_len());
    column.ok_or_else(|| Error::invalid(format!("table {} has no value column {index}", table.name())))
}

fn not_a_counter(table: &TableSpec) -> Result<()> {
    match table.value_columns().first() {
        Some(Column { ty: Type::Counter, .. }) => Err(Error::invalid(format!(
            "table {} holds counters, which can only be incremented: to reset one, add its negative, or use a new key",
            table.name()
        ))),
        _ => Ok(()),
    }
}

fn is_in_buckets(table: &TableSpec) -> bool {
    matches!(table.salt(), Some(Salt::Buckets(_)))
}

fn page_limit(limit: usize) -> Result<()> {
    if limit > 0 {
        return Ok(());
    }
    Err(Error::invalid("a page of 0 rows; ask for at least one"))
}

fn key_size(part: &str, values: &[Value], limit: usize) -> Result<()> {
    // A key of several columns carries three more bytes for each of them on CQL.
    let framing = if values.len() > 1 { 3 * values.len() } else { 0 };
    let size = values.iter().map(Value::size).sum::<usize>() + framing;
    if size <= limit {
        return Ok(());
    }
    Err(Error::new(ErrorKind::TooLarge, format!("a {part} key of {size} bytes; the limit is {limit}")))
}
