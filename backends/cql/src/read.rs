//! Reads of rows by key.

use std::collections::HashMap;
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use peristyle_core::codec::value::encode_value;
use peristyle_core::model::{Key, StoredRow, TableSpec, Type, Value};
use peristyle_core::request::Projection;
use peristyle_core::{Response, Result};

use crate::codec::{Binder, Bound, read_rows};
use crate::error::corrupt;
use crate::request::{Call, Shared};
use crate::statement::{Selection, Shape, Statement};

/// Keys in one `IN`: of more the server makes too much work at once.
const KEYS: usize = 100;

/// Reads of one `get_all` under way at once.
const IN_FLIGHT: usize = 64;

/// The read of one row.
pub(crate) struct Get {
    pub(crate) shared: Arc<Shared>,
    pub(crate) table: Arc<TableSpec>,
    pub(crate) key: Key,
    pub(crate) columns: Projection,
    pub(crate) call: Call,
}

pub(crate) async fn get(get: Get) -> Result<Response> {
    let Get { shared, table, key, columns, call } = get;
    Shared::check(&table)?;
    let statement = shared.statement(&table, of_one_row(selection(&columns, &table), &table), &call).await?;
    one(&shared, &table, &statement, &key, &call).await.map(Response::Row)
}

pub(crate) async fn get_all(
    shared: Arc<Shared>,
    table: Arc<TableSpec>,
    keys: Vec<Key>,
    columns: Projection,
    call: Call,
) -> Result<Response> {
    Shared::check(&table)?;
    let selection = selection(&columns, &table);
    if table.key_len() == 1 {
        return many(&shared, &table, &keys, selection, &call).await.map(Response::Rows);
    }
    let statement = shared.statement(&table, of_one_row(selection, &table), &call).await?;
    let reads: Vec<_> = keys.iter().map(|key| one(&shared, &table, &statement, key, &call)).collect();
    stream::iter(reads).buffered(IN_FLIGHT).try_collect().await.map(Response::Rows)
}

/// The read of a row, whose key need not come back, for it is known: unless nothing else is read, or the stored key may be another
/// form of it. The server compares decimals of clustering columns by their numbers, so that 1.0 finds 1.00.
fn of_one_row(selection: Selection, table: &TableSpec) -> Shape {
    let has_forms = table.clustering_key().iter().any(|column| column.ty == Type::Decimal);
    Shape::Get(Selection { key: selection.columns.is_empty() || has_forms, ..selection })
}

async fn one(
    shared: &Shared,
    table: &TableSpec,
    statement: &Statement,
    key: &Key,
    call: &Call,
) -> Result<Option<StoredRow>> {
    let values = Bound(|binder: &mut Binder<'_, '_, '_>| binder.values(key.values()));
    let answer = shared.execute(table, statement, values, call).await?;
    let answer = answer.into_rows_result().map_err(|error| corrupt(&error))?;
    let row = read_rows(&answer, &statement.slots, table).and_then(|mut rows| rows.next().transpose());
    let mut row = row.inspect_err(|error| shared.forget_changed(table, error))?;
    for (place, value) in row.iter_mut().flat_map(|row| &mut row.values).zip(key.values()) {
        place.get_or_insert_with(|| value.clone());
    }
    Ok(row)
}

/// Rows of a table whose key is one column, by `IN`. The server answers in token order and each row once, so the rows are put
/// back into the order of the keys.
async fn many(
    shared: &Arc<Shared>,
    table: &Arc<TableSpec>,
    keys: &[Key],
    selection: Selection,
    call: &Call,
) -> Result<Vec<Option<StoredRow>>> {
    let statement = shared.statement(table, Shape::GetMany(selection), call).await?;
    let statement = &statement;
    let reads: Vec<_> = keys.chunks(KEYS).map(|chunk| chunk_of(shared, table, statement, chunk, call)).collect();
    let chunks: Vec<Vec<_>> = stream::iter(reads).buffered(IN_FLIGHT).try_collect().await?;
    Ok(chunks.into_iter().flatten().collect())
}

async fn chunk_of(
    shared: &Shared,
    table: &TableSpec,
    statement: &Statement,
    keys: &[Key],
    call: &Call,
) -> Result<Vec<Option<StoredRow>>> {
    let values =
        Bound(|binder: &mut Binder<'_, '_, '_>| binder.list(keys.iter().filter_map(|key| key.values().first())));
    let mut rows = Vec::with_capacity(keys.len());
    // The server may cut an answer by its bytes, so there may be several.
    shared.fetch(table, statement, &values, call, usize::MAX, &mut rows).await?;
    Ok(in_order(keys, rows))
}

/// The rows in the order of the keys, which may repeat. Partition keys are the same if their bytes are.
fn in_order(keys: &[Key], rows: Vec<StoredRow>) -> Vec<Option<StoredRow>> {
    let bytes = |value: Option<&Value>| {
        let mut bytes = Vec::new();
        if let Some(value) = value {
            encode_value(value, &mut bytes);
        }
        bytes
    };
    let mut found: HashMap<Vec<u8>, StoredRow> =
        rows.into_iter().map(|row| (bytes(row.values.first().and_then(Option::as_ref)), row)).collect();
    let mut wanted: HashMap<Vec<u8>, usize> = HashMap::with_capacity(keys.len());
    let keys: Vec<_> = keys.iter().map(|key| bytes(key.values().first())).collect();
    for key in &keys {
        *wanted.entry(key.clone()).or_default() += 1;
    }
    let take = |key: Vec<u8>| match wanted.get_mut(&key) {
        Some(times) if *times > 1 => {
            *times -= 1;
            found.get(&key).cloned()
        }
        _ => found.remove(&key),
    };
    keys.into_iter().map(take).collect()
}

/// The columns that a projection names.
pub(crate) fn selection(projection: &Projection, table: &TableSpec) -> Selection {
    let columns = match &projection.columns {
        Some(columns) => columns.iter().copied().filter(|column| *column >= table.key_len()).collect(),
        None => (table.key_len()..table.columns().len()).collect(),
    };
    Selection { key: true, columns, write_time: projection.write_time, ttl: projection.ttl }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: i64) -> Key {
        Key::new(vec![Value::from(id)])
    }

    fn row(id: i64) -> StoredRow {
        StoredRow { values: vec![Some(Value::from(id))], meta: Vec::new() }
    }

    #[test]
    fn rows_come_in_the_order_of_their_keys_repeats_and_gaps_included() {
        let keys = [5, 2, 9, 5, 7, 5].map(key);
        let rows = in_order(&keys, vec![row(2), row(7), row(5)]);
        assert_eq!(rows, [Some(row(5)), Some(row(2)), None, Some(row(5)), Some(row(7)), Some(row(5))]);
    }
}
