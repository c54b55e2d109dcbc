//! Statements: their shapes, their CQL, and the cache of what is prepared.

mod cache;
mod columns;
mod shape;
mod text;

use peristyle_core::model::{TableSpec, Type};

pub(crate) use self::cache::{Statement, StatementCache};
pub(crate) use self::columns::ColumnSet;
pub(crate) use self::shape::{Edge, ScanStart, Selection, Shape, Slice};

/// What one column of a read's answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The value of a column, by index.
    Value(usize, Type),
    /// The write time of a column.
    WriteTime(usize),
    /// The remaining time to live of a column.
    Ttl(usize),
}

/// The columns of a read's answer, as its text names them.
fn slots(selection: &Selection, spec: &TableSpec) -> Vec<Slot> {
    let value = |index: usize| spec.columns().get(index).map(|column| Slot::Value(index, column.ty));
    let mut slots: Vec<Slot> = (0..spec.key_len()).filter_map(value).collect();
    for index in selection.columns.indexes() {
        slots.extend(value(index));
        if selection.write_time {
            slots.push(Slot::WriteTime(index));
        }
        if selection.ttl {
            slots.push(Slot::Ttl(index));
        }
    }
    slots
}
