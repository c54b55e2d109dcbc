//! The calls of Thrift 2 for rows: their arguments as bytes, and rows as they are answered.

use super::hbase2::{DELETE_COLUMNS, EQUAL};
use super::{CellName, CellParts, Few, RowCells, RowStep, RowWrite, StepOfRow, TTL};
use crate::connection::{Arguments, Fields, Input, Kind, Output, OutputKind, Unread};

/// `get`.
pub(super) struct Get<'a> {
    pub(super) table: &'a [u8],
    pub(super) row: &'a [u8],
}

impl Arguments for Get<'_> {
    fn write(&self, out: &mut Output<'_>) -> thrift::Result<()> {
        let mut call = Fields::begin(out);
        call.bytes(1, self.table);
        call.nested(2, |out| write_get(out, self.row));
        call.end();
        Ok(())
    }
}

/// `getMultiple`.
pub(super) struct GetMultiple<'a> {
    pub(super) table: &'a [u8],
    pub(super) rows: &'a [&'a [u8]],
}

impl Arguments for GetMultiple<'_> {
    fn write(&self, out: &mut Output<'_>) -> thrift::Result<()> {
        let mut call = Fields::begin(out);
        call.bytes(1, self.table);
        call.list(2, OutputKind::STRUCT, self.rows, |out, row| write_get(out, row));
        call.end();
        Ok(())
    }
}

/// `put` and `deleteSingle`.
pub(super) struct Single<'a> {
    pub(super) table: &'a [u8],
    pub(super) row: &'a [u8],
    pub(super) step: &'a RowStep<'a>,
}

impl Arguments for Single<'_> {
    fn write(&self, out: &mut Output<'_>) -> thrift::Result<()> {
        let mut call = Fields::begin(out);
        call.bytes(1, self.table);
        call.nested(2, |out| write_step(out, self.row, self.step));
        call.end();
        Ok(())
    }
}

/// `putMultiple` and `deleteMultiple`.
pub(super) struct Multiple<'a> {
    pub(super) table: &'a [u8],
    pub(super) steps: &'a [StepOfRow<'a>],
}

impl Arguments for Multiple<'_> {
    fn write(&self, out: &mut Output<'_>) -> thrift::Result<()> {
        let mut call = Fields::begin(out);
        call.bytes(1, self.table);
        call.list(2, OutputKind::STRUCT, self.steps, |out, step| write_step(out, step.row, &step.step));
        call.end();
        Ok(())
    }
}

/// `mutateRow`.
pub(super) struct MutateRow<'a> {
    pub(super) table: &'a [u8],
    pub(super) write: &'a RowWrite<'a>,
}

impl Arguments for MutateRow<'_> {
    fn write(&self, out: &mut Output<'_>) -> thrift::Result<()> {
        let mut call = Fields::begin(out);
        call.bytes(1, self.table);
        call.nested(2, |out| write_mutations(out, self.write));
        call.end();
        Ok(())
    }
}

/// `checkAndMutate`, for a cell that has this value; an empty one stands for an absent cell too.
pub(super) struct CheckAndMutate<'a> {
    pub(super) table: &'a [u8],
    pub(super) checked: &'a CellName,
    pub(super) value: &'a [u8],
    pub(super) write: &'a RowWrite<'a>,
}

impl Arguments for CheckAndMutate<'_> {
    fn write(&self, out: &mut Output<'_>) -> thrift::Result<()> {
        let mut call = Fields::begin(out);
        call.bytes(1, self.table);
        call.bytes(2, self.write.row);
        call.bytes(3, &self.checked.family);
        call.bytes(4, &self.checked.qualifier);
        call.i32(5, EQUAL);
        call.bytes(6, self.value);
        call.nested(7, |out| write_mutations(out, self.write));
        call.end();
        Ok(())
    }
}

fn write_get(out: &mut Output<'_>, row: &[u8]) {
    let mut get = Fields::begin(out);
    get.bytes(1, row);
    get.end();
}

fn write_mutations(out: &mut Output<'_>, write: &RowWrite<'_>) {
    let mut mutations = Fields::begin(out);
    mutations.bytes(1, write.row);
    mutations.list(2, OutputKind::STRUCT, &write.steps, |out, step| {
        let mut mutation = Fields::begin(out);
        let id = if step.is_put() { 1 } else { 2 };
        mutation.nested(id, |out| write_step(out, write.row, step));
        mutation.end();
    });
    mutations.end();
}

/// A `TPut` or a `TDelete`. A delete never carries a time to live: what it hides would come back.
fn write_step(out: &mut Output<'_>, row: &[u8], step: &RowStep<'_>) {
    let mut fields = Fields::begin(out);
    fields.bytes(1, row);
    match step {
        RowStep::Put { cells, timestamp, ttl } => {
            fields.list(2, OutputKind::STRUCT, &**cells, |out, (name, value)| {
                let mut cell = Fields::begin(out);
                cell.bytes(1, &name.family);
                cell.bytes(2, &name.qualifier);
                value.write(&mut cell, 3);
                cell.end();
            });
            fields.i64(3, *timestamp);
            if let Some(ttl) = ttl {
                fields.entry(5, Some((TTL, &ttl.to_be_bytes())));
            }
        }
        RowStep::DeleteCells { cells, timestamp } => {
            fields.list(2, OutputKind::STRUCT, &**cells, |out, name| {
                let mut column = Fields::begin(out);
                column.bytes(1, &name.family);
                column.bytes(2, &name.qualifier);
                column.i64(3, *timestamp);
                column.end();
            });
            fields.i64(3, *timestamp);
            fields.i32(4, DELETE_COLUMNS);
        }
        RowStep::DeleteRow { timestamp } => {
            fields.i64(3, *timestamp);
            fields.i32(4, DELETE_COLUMNS);
        }
    }
    fields.end();
}

/// Reads a `TResult`; a row that isn't there has no cells.
pub(super) fn read_row(input: &mut Input<'_>) -> Result<Option<RowCells>, Unread> {
    let (mut row, mut cells) = (None, Few::default());
    input.fields(|input, id, kind| {
        match (id, kind) {
            (1, Kind::Bytes) => row = Some(input.part()?),
            (2, Kind::List) => input.each(|input| {
                cells.push(read_cell(input)?);
                Ok(())
            })?,
            _ => input.skip(kind)?,
        }
        Ok(())
    })?;
    Ok(row.filter(|_| !cells.is_empty()).map(|row| RowCells { reply: input.reply().clone(), row, cells }))
}

/// Reads a `TColumnValue`.
fn read_cell(input: &mut Input<'_>) -> Result<CellParts, Unread> {
    let mut cell = CellParts::default();
    input.fields(|input, id, kind| {
        match (id, kind) {
            (1, Kind::Bytes) => cell.family = input.part()?,
            (2, Kind::Bytes) => cell.qualifier = input.part()?,
            (3, Kind::Bytes) => cell.value = input.part()?,
            (4, Kind::I64) => cell.timestamp = input.i64()?,
            _ => input.skip(kind)?,
        }
        Ok(())
    })?;
    Ok(cell)
}
