//! Cells to columns.

use bytes::Bytes;
use peristyle_core::codec::value::decode_value;
use peristyle_core::model::{CellMeta, Key, StoredRow, WriteTime};
use peristyle_core::request::Projection;
use peristyle_core::{Error, Result};

use super::Layout;
use super::key::decode_row_key;
use crate::wire::RowCells;

/// Whether the row exists: whether it has a cell of a column, of this declaration or not, or its marker.
pub(crate) fn is_live_row(layout: &Layout, row: &RowCells) -> bool {
    row.cells().any(|cell| !layout.original.is(cell.name) && !layout.guard.is(cell.name))
}

/// The row as a read returns it, or `None` if it doesn't exist. `key` is the one asked for, where one was.
///
/// # Errors
/// `Corrupt` for a row key or a value that can't be.
pub(crate) fn stored_row(
    layout: &Layout,
    row: &RowCells,
    key: Option<Key>,
    projection: &Projection,
) -> Result<Option<StoredRow>> {
    if !is_live_row(layout, row) {
        return Ok(None);
    }
    let spec = &*layout.spec;
    let original = row.value_of(&layout.original);
    let key = match (key, original) {
        (Some(key), None) => key,
        _ => decode_row_key(layout, row.row(), original)?,
    };
    let mut values = Vec::with_capacity(spec.columns().len());
    values.extend(key.values().iter().cloned().map(Some));
    values.resize(spec.columns().len(), None);
    let mut stored = StoredRow { values, meta: Vec::new() };
    if projection.write_time || projection.ttl {
        stored.meta = vec![CellMeta::default(); spec.columns().len()];
    }
    for cell in row.cells() {
        let Some(index) = layout.column(cell.name).filter(|index| projection.includes(*index)) else { continue };
        let Some(column) = spec.columns().get(index) else { continue };
        // A value must not keep the whole reply.
        let value = decode_value(column.ty, Bytes::copy_from_slice(cell.value))
            .map_err(|error| in_column(error, &column.name))?;
        if let Some(place) = stored.values.get_mut(index) {
            *place = Some(value);
        }
        if let Some(meta) = stored.meta.get_mut(index).filter(|_| projection.write_time) {
            meta.write_time = WriteTime::from_micros(layout.micros(cell.timestamp)).ok();
        }
    }
    Ok(Some(stored))
}

fn in_column(error: Error, column: &str) -> Error {
    let message = format!("column {column}: {}; check the column's type and cell", error.message());
    Error::new(error.kind(), message)
}

/// The newest timestamp in a row, in microseconds; 0 for no row.
pub(crate) fn newest(layout: &Layout, row: Option<&RowCells>) -> i64 {
    let cells = row.into_iter().flat_map(RowCells::cells);
    cells.map(|cell| layout.micros(cell.timestamp)).max().unwrap_or(0)
}
