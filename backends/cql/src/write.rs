//! Writes of one row.

use std::pin::pin;
use std::sync::Arc;

use peristyle_core::clock::Clock;
use peristyle_core::model::{Key, StoredRow, TableSpec, Ttl, Value};
use peristyle_core::request::{CellWrite, Condition, Mutation};
use peristyle_core::response::Comparison;
use peristyle_core::{Error, ErrorKind, Outcome, Response, Result};
use scylla::deserialize::row::ColumnIterator;
use scylla::response::query_result::QueryResult;
use scylla::statement::batch::{Batch, BatchType};

use crate::codec::{Binder, Bound, read_value};
use crate::error::corrupt;
use crate::part::{Part, check_expiry, parts, seconds, single, sort_cells};
use crate::request::{Call, Shared};
use crate::statement::{ColumnSet, Shape, Statement};

/// The write of one row.
pub(crate) struct Apply {
    pub(crate) shared: Arc<Shared>,
    pub(crate) table: Arc<TableSpec>,
    pub(crate) mutation: Mutation,
    pub(crate) call: Call,
}

pub(crate) async fn apply(apply: Apply) -> Result<Response> {
    let Apply { shared, table, mut mutation, call } = apply;
    Shared::check(&table)?;
    shared.check_expiry(&table, &mutation)?;
    sort_cells(&mut mutation.cells);
    if let Some(part) = single(&table, &mutation) {
        let statement = shared.statement(&table, part.shape(), &call).await?;
        return shared.execute(&table, &statement, part, &call).await.map(|_| Response::Done);
    }
    let parts = parts(&table, &mutation);
    // Boxed, so that the plain put stays small.
    Box::pin(shared.send(&table, &parts, &call)).await.map(|()| Response::Done)
}

pub(crate) async fn increment(
    shared: Arc<Shared>,
    table: Arc<TableSpec>,
    key: Key,
    mut deltas: Vec<(usize, i64)>,
    call: Call,
) -> Result<Response> {
    Shared::check(&table)?;
    deltas.sort_unstable_by_key(|(column, _)| *column);
    deltas.dedup_by(|(column, delta), (kept, sum)| {
        let same = column == kept;
        *sum = if same { sum.wrapping_add(*delta) } else { *sum };
        same
    });
    if deltas.is_empty() {
        return Ok(Response::Done);
    }
    let shape = Shape::Increment { columns: deltas.iter().map(|(column, _)| *column).collect() };
    let statement = shared.statement(&table, shape, &call).await?;
    let values = Bound(|binder: &mut Binder<'_, '_, '_>| {
        deltas.iter().try_for_each(|(_, delta)| binder.bigint(*delta))?;
        binder.values(key.values())
    });
    shared.execute(&table, &statement, values, &call).await.map(|_| Response::Done)
}

pub(crate) async fn compare_and_put(
    shared: Arc<Shared>,
    table: Arc<TableSpec>,
    mut mutation: Mutation,
    condition: Condition,
    call: Call,
) -> Result<Response> {
    Shared::check(&table)?;
    shared.check_expiry(&table, &mutation)?;
    sort_cells(&mut mutation.cells);
    let (values, ttl) = conditional_cells(&mutation)?;
    let shape = conditional_shape(&mutation, &condition, ttl.is_some())?;
    let statement = shared.statement(&table, shape, &call).await?;
    let key = mutation.key.values();
    let bound = Bound(|binder: &mut Binder<'_, '_, '_>| {
        let bind_ttl = |binder: &mut Binder<'_, '_, '_>| ttl.map_or(Ok(()), |seconds| binder.int(seconds));
        if condition == Condition::RowAbsent {
            binder.values(key)?;
            values.iter().try_for_each(|value| binder.value(value))?;
            return bind_ttl(binder);
        }
        bind_ttl(binder)?;
        values.iter().try_for_each(|value| binder.value(value))?;
        binder.values(key)?;
        match &condition {
            Condition::ColumnEquals(_, expected) => binder.value(expected),
            _ => Ok(()),
        }
    });
    let answer = shared.execute(&table, &statement, bound, &call).await.map_err(doubtful)?;
    comparison(answer, &table, &mutation.key).map(Response::Compared)
}

/// Of a conditional write even a refusal for want of replicas may come from a late phase, so nothing is certain.
fn doubtful(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Unavailable if !error.attempts().is_empty() => error.with_outcome(Outcome::Unknown),
        _ => error,
    }
}

fn conditional_cells(mutation: &Mutation) -> Result<(Vec<&Value>, Option<i32>)> {
    let mut values = Vec::with_capacity(mutation.cells.len());
    let mut ttl: Option<Ttl> = mutation.marker;
    for cell in &*mutation.cells {
        let CellWrite::Put(value, own) = &cell.write else {
            return Err(Error::invalid("a conditional put can't delete columns: do it in a write of its own"));
        };
        if ttl.is_some_and(|ttl| ttl != *own) {
            return Err(Error::invalid("a conditional put has one time to live for all its columns"));
        }
        ttl = Some(*own);
        values.push(value);
    }
    Ok((values, ttl.and_then(seconds)))
}

fn conditional_shape(mutation: &Mutation, condition: &Condition, ttl: bool) -> Result<Shape> {
    let columns: ColumnSet = mutation.cells.iter().map(|cell| cell.column).collect();
    match condition {
        Condition::RowAbsent => Ok(Shape::PutIfAbsent { columns, ttl }),
        _ if mutation.cells.is_empty() => {
            Err(Error::invalid("a put on the condition of a column needs a column to put"))
        }
        Condition::ColumnAbsent(column) => Ok(Shape::PutIfColumnAbsent { columns, ttl, column: *column }),
        Condition::ColumnEquals(column, _) => Ok(Shape::PutIfEqual { columns, ttl, column: *column }),
    }
}

/// Reads `[applied]`, and the columns that come with it where the condition didn't hold.
fn comparison(answer: QueryResult, table: &TableSpec, key: &Key) -> Result<Comparison> {
    let answer = answer.into_rows_result().map_err(|error| corrupt(&error))?;
    let mut rows = answer.rows::<ColumnIterator<'_, '_>>().map_err(|error| corrupt(&error))?;
    let row = rows.next().ok_or_else(|| corrupt(&"a conditional write without an outcome"))?;
    let mut applied = false;
    let mut current: Option<StoredRow> = None;
    for cell in row.map_err(|error| corrupt(&error))? {
        let cell = cell.map_err(|error| corrupt(&error))?;
        if cell.spec.name() == "[applied]" {
            applied = cell.slice.is_some_and(|bytes| bytes.as_slice() != [0]);
        } else if let (Some(index), Some(bytes)) = (table.index_of(cell.spec.name()), cell.slice) {
            let row = current.get_or_insert_with(|| with_key(table, key));
            let column = table.columns().get(index);
            if let (Some(column), Some(place)) = (column, row.values.get_mut(index)) {
                *place = read_value(column.ty, bytes)?;
            }
        }
    }
    Ok(Comparison { applied, current: current.filter(|_| !applied) })
}

fn with_key(table: &TableSpec, key: &Key) -> StoredRow {
    let mut values: Vec<_> = key.values().iter().cloned().map(Some).collect();
    values.resize(table.columns().len(), None);
    StoredRow { values, meta: Vec::new() }
}

impl Shared {
    pub(crate) fn check_expiry(&self, table: &TableSpec, mutation: &Mutation) -> Result<()> {
        check_expiry(table, mutation, self.config.max_expiry, || Clock::system().seconds())
    }

    /// Sends the statements of one partition, or of few, as one unit.
    pub(crate) async fn send(self: &Arc<Self>, table: &Arc<TableSpec>, parts: &[Part<'_>], call: &Call) -> Result<()> {
        let statement = |part: &Part<'_>| {
            let shape = part.shape();
            async move { self.statement(table, shape, call).await }
        };
        match parts {
            [] => Ok(()),
            [part] => {
                let statement = statement(part).await?;
                self.execute(table, &statement, part, call).await.map(drop)
            }
            parts => {
                let mut statements = Vec::with_capacity(parts.len());
                for part in parts {
                    statements.push(statement(part).await?);
                }
                self.send_batch(table, &statements, parts, call).await
            }
        }
    }

    /// Sends statements in one unlogged batch: atomic within each partition, and without the cost of a batch log.
    pub(crate) async fn send_batch(
        &self,
        table: &TableSpec,
        statements: &[Arc<Statement>],
        parts: &[Part<'_>],
        call: &Call,
    ) -> Result<()> {
        let prepared = statements.iter().map(|statement| statement.prepared.clone().into()).collect();
        let batch = Batch::new_with_statements(BatchType::Unlogged, prepared);
        let own = call.configured_batch(&batch);
        let request = pin!(self.session.batch(own.as_ref().unwrap_or(&batch), parts));
        self.attempt(Some(table), call, request).await.map(drop)
    }
}
