//! How one table lies on HBase.

use std::sync::Arc;

use bytes::Bytes;
use peristyle_core::codec::raw::check_raw;
use peristyle_core::model::{HBaseMapping, KeyEncoding, TableSpec, Type};
use peristyle_core::{Error, Result};

use super::millis::Millis;
use crate::read::RowSize;
use crate::topology::TableRegions;
use crate::wire::{CellName, NameRef, TableName};

/// The longest row key that HBase takes, in bytes.
const MAX_ROW_KEY: usize = 32_767;
/// What the key of a region has beside the table's name and a row key. Gateways look regions up by such keys, which must be no
/// longer than other row keys; with a longer one they look for ever.
const REGION_KEY_BYTES: usize = 16;

/// The longest row key of a table with a name of so many bytes, namespace included.
pub(crate) const fn max_row_key(name: usize) -> usize {
    MAX_ROW_KEY.saturating_sub(REGION_KEY_BYTES + name)
}

/// The value of the cell that says that a row without columns exists. It isn't empty, since HBase takes an empty value for an
/// absent one in conditions.
pub(crate) const MARKER_VALUE: &[u8] = &[1];

/// How one table lies on HBase: its full name, the cell of each value column, and the cells that no column has.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) spec: Arc<TableSpec>,
    pub(crate) table: TableName,
    pub(crate) encoding: KeyEncoding,
    /// The longest row key, in bytes.
    pub(crate) max_row_key: usize,
    /// The cells of the value columns, in their order.
    cells: Vec<CellName>,
    /// The columns' indexes by their cells, sorted.
    by_cell: Vec<(CellName, usize)>,
    /// Says that the row exists.
    pub(crate) marker: CellName,
    /// Holds the key as it was written, where the row key doesn't tell it.
    pub(crate) original: CellName,
    /// Changes with each conditional put.
    pub(crate) guard: CellName,
    /// Gives timestamps in milliseconds, for tables that are shared with programs which write such.
    millis: Option<Millis>,
    /// How large its rows are.
    pub(crate) row_size: RowSize,
    /// Where its regions are.
    pub(crate) regions: Arc<TableRegions>,
}

impl Layout {
    /// Lays a table out.
    ///
    /// # Errors
    /// `InvalidArgument` for a mapping that can't be: another namespace than the client's, a column that isn't there, two
    /// columns in one cell, a bad family, and keys that the raw encoding has no bytes for.
    pub(crate) fn new(spec: Arc<TableSpec>, namespace: &Arc<str>) -> Result<Self> {
        let fallback = HBaseMapping::default();
        let mapping = spec.hbase().unwrap_or(&fallback);
        check_namespace(&spec, mapping, namespace)?;
        if let Some(name) = mapping.columns.keys().find(|name| !is_value_column(&spec, name)) {
            return Err(fault(&spec, &format!("the HBase mapping names {name:?}, which is no value column")));
        }
        if mapping.key_encoding == KeyEncoding::Raw {
            check_raw(&spec)?;
        }
        check_family(&spec, &mapping.family)?;
        let mut cells = Vec::with_capacity(spec.value_columns().len());
        for column in spec.value_columns() {
            let (family, qualifier) = match mapping.columns.get(&*column.name) {
                Some(cell) => cell.split_once(':').unwrap_or((cell, "")),
                None => (&*mapping.family, &*column.name),
            };
            check_family(&spec, family)?;
            cells.push(cell_name(family, qualifier));
        }
        let by_cell = by_cell(&spec, &cells)?;
        let table = TableName { namespace: Arc::clone(namespace), name: Arc::clone(spec.name()) };
        Ok(Self {
            max_row_key: max_row_key(table.bytes().len()),
            table,
            encoding: mapping.key_encoding,
            marker: cell_name(&mapping.family, ""),
            original: cell_name(&mapping.family, "\0key"),
            guard: cell_name(&mapping.family, "\0guard"),
            millis: (mapping.key_encoding == KeyEncoding::Raw).then(Millis::new),
            row_size: RowSize::default(),
            regions: Arc::default(),
            cells,
            by_cell,
            spec,
        })
    }

    /// The cell of a value column, by the column's index in the table.
    pub(crate) fn cell(&self, column: usize) -> Result<&CellName> {
        let place = column.checked_sub(self.spec.key_len());
        place
            .and_then(|place| self.cells.get(place))
            .ok_or_else(|| Error::invalid(format!("table {} has no value column {column}", self.spec.name())))
    }

    /// The index of the column in this cell.
    pub(crate) fn column(&self, cell: NameRef<'_>) -> Option<usize> {
        let place = self.by_cell.binary_search_by(|(other, _)| other.order(cell)).ok()?;
        self.by_cell.get(place).map(|(_, index)| *index)
    }

    /// The table's families.
    pub(crate) fn families(&self) -> Vec<Vec<u8>> {
        let mut families: Vec<Vec<u8>> = self.cells.iter().map(|cell| cell.family.to_vec()).collect();
        families.push(self.marker.family.to_vec());
        families.sort_unstable();
        families.dedup();
        families
    }

    /// The timestamps of a write of this row at this time: of what it puts or deletes, and of what it removes first.
    pub(crate) fn timestamps(&self, row: &[u8], micros: i64) -> (i64, i64) {
        match &self.millis {
            None => (micros, micros.saturating_sub(1).max(0)),
            Some(millis) => millis.timestamps(row, micros),
        }
    }

    /// The microseconds of a timestamp.
    pub(crate) fn micros(&self, timestamp: i64) -> i64 {
        if self.millis.is_some() { timestamp.saturating_mul(1_000) } else { timestamp }
    }

    /// The timestamps of a conditional write: behind all that is stored, see [`timestamps`](Self::timestamps).
    pub(crate) fn timestamps_behind(&self, row: &[u8], newest: i64, now: i64) -> (i64, i64) {
        match &self.millis {
            None => {
                let time = now.max(newest.saturating_add(2));
                (time, time - 1)
            }
            Some(millis) => millis.behind(row, newest, now),
        }
    }
}

/// Whether a value of this type may have no bytes.
pub(crate) fn may_be_empty(ty: Type) -> bool {
    matches!(ty, Type::Text | Type::Blob)
}

fn cell_name(family: &str, qualifier: &str) -> CellName {
    CellName {
        family: Bytes::copy_from_slice(family.as_bytes()),
        qualifier: Bytes::copy_from_slice(qualifier.as_bytes()),
    }
}

fn by_cell(spec: &TableSpec, cells: &[CellName]) -> Result<Vec<(CellName, usize)>> {
    let mut by_cell: Vec<(CellName, usize)> = cells.iter().cloned().zip(spec.key_len()..).collect();
    by_cell.sort_unstable();
    let twice = by_cell.iter().zip(by_cell.iter().skip(1)).find(|((a, _), (b, _))| a == b);
    match twice {
        Some(((CellName { family, qualifier }, _), _)) => {
            let cell = format!("{}:{}", String::from_utf8_lossy(family), String::from_utf8_lossy(qualifier));
            Err(fault(spec, &format!("two columns lie in {cell}")))
        }
        None => Ok(by_cell),
    }
}

fn is_value_column(spec: &TableSpec, name: &str) -> bool {
    spec.value_columns().iter().any(|column| &*column.name == name)
}

fn check_namespace(spec: &TableSpec, mapping: &HBaseMapping, namespace: &Arc<str>) -> Result<()> {
    if mapping.namespace == "default" || mapping.namespace == **namespace {
        return Ok(());
    }
    let other = &mapping.namespace;
    Err(fault(
        spec,
        &format!("it is mapped to the namespace {other}, but the client works in {namespace}; connect to {other}"),
    ))
}

fn check_family(spec: &TableSpec, family: &str) -> Result<()> {
    let fits = (1..=127).contains(&family.len())
        && !family.starts_with('.')
        && family != "recovered.edits"
        && !family.contains([':', '/', '\0']);
    if fits {
        return Ok(());
    }
    let message = format!("{family:?} is no column family; use 1 to 127 letters, digits and underscores");
    Err(fault(spec, &message))
}

fn fault(spec: &TableSpec, message: &str) -> Error {
    Error::invalid(format!("table {}: {message}", spec.name()))
}
