//! Statements: their shapes, their CQL, and the cache of what is prepared.

mod batches;
mod cache;
mod columns;
mod shape;
mod text;

use peristyle_core::model::{TableSpec, Type};

pub(crate) use self::cache::{Statement, StatementCache};
pub(crate) use self::columns::ColumnSet;
pub(crate) use self::shape::{Edge, ScanStart, Selection, Shape, Slice};
pub(crate) use self::text::cql;

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

/// The columns of an answer, as the statement names them. Those of conditional writes are found by their names.
pub(crate) fn slots(shape: &Shape, spec: &TableSpec) -> Vec<Slot> {
    match shape {
        Shape::Get(selection) | Shape::GetMany(selection) | Shape::Query(selection, _) => selected(selection, spec),
        Shape::Scan { selection, .. } => selected(selection, spec),
        Shape::SameToken => keys(spec, spec.partition_len()),
        _ => Vec::new(),
    }
}

fn selected(selection: &Selection, spec: &TableSpec) -> Vec<Slot> {
    let mut slots = keys(spec, if selection.key { spec.key_len() } else { 0 });
    for index in selection.columns.indexes() {
        slots.extend(spec.columns().get(index).map(|column| Slot::Value(index, column.ty)));
        if selection.write_time {
            slots.push(Slot::WriteTime(index));
        }
        if selection.ttl {
            slots.push(Slot::Ttl(index));
        }
    }
    slots
}

fn keys(spec: &TableSpec, count: usize) -> Vec<Slot> {
    spec.columns().iter().take(count).enumerate().map(|(index, column)| Slot::Value(index, column.ty)).collect()
}
