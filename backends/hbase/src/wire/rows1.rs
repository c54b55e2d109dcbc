//! The calls of Thrift 1 for rows: their arguments as bytes, and rows as they are answered.

use super::{CellName, CellParts, CellValue, Few, RowCells, RowStep, StepOfRow, TTL};
use crate::connection::{Arguments, Fields, Input, Kind, Output, OutputKind, Unread};

/// `getRow`.
pub(super) struct GetRow<'a> {
    pub(super) table: &'a [u8],
    pub(super) row: &'a [u8],
}

impl Arguments for GetRow<'_> {
    fn write(&self, out: &mut Output<'_>) -> thrift::Result<()> {
        let mut call = Fields::begin(out);
        call.bytes(1, self.table);
        call.bytes(2, self.row);
        call.entry(3, None);
        call.end();
        Ok(())
    }
}

/// `getRows`.
pub(super) struct GetRows<'a> {
    pub(super) table: &'a [u8],
    pub(super) rows: &'a [&'a [u8]],
}

impl Arguments for GetRows<'_> {
    fn write(&self, out: &mut Output<'_>) -> thrift::Result<()> {
        let mut call = Fields::begin(out);
        call.bytes(1, self.table);
        call.list(2, OutputKind::BYTES, self.rows, |out, row| out.bytes(row));
        call.entry(3, None);
        call.end();
        Ok(())
    }
}

/// `mutateRowTs`, and `deleteAllRowTs` for a whole row.
pub(super) struct Mutate<'a> {
    pub(super) table: &'a [u8],
    pub(super) row: &'a [u8],
    pub(super) step: &'a RowStep<'a>,
}

impl Arguments for Mutate<'_> {
    fn write(&self, out: &mut Output<'_>) -> thrift::Result<()> {
        let mut call = Fields::begin(out);
        call.bytes(1, self.table);
        call.bytes(2, self.row);
        let next = if matches!(self.step, RowStep::DeleteRow { .. }) { 3 } else { 4 };
        write_mutations(&mut call, 3, self.step);
        write_moment(&mut call, next, self.step);
        call.end();
        Ok(())
    }
}

/// `mutateRowsTs`: steps of the same moment, none of which deletes a whole row.
pub(super) struct MutateRows<'a> {
    pub(super) table: &'a [u8],
    pub(super) steps: &'a [&'a StepOfRow<'a>],
}

impl Arguments for MutateRows<'_> {
    fn write(&self, out: &mut Output<'_>) -> thrift::Result<()> {
        let mut call = Fields::begin(out);
        call.bytes(1, self.table);
        call.list(2, OutputKind::STRUCT, self.steps, |out, step| {
            let mut row = Fields::begin(out);
            row.bytes(1, step.row);
            write_mutations(&mut row, 2, &step.step);
            row.end();
        });
        if let Some(first) = self.steps.first() {
            write_moment(&mut call, 3, &first.step);
        }
        call.end();
        Ok(())
    }
}

/// A list of mutations; nothing for a delete of a whole row.
fn write_mutations(fields: &mut Fields<'_, '_>, id: i16, step: &RowStep<'_>) {
    match step {
        RowStep::Put { cells, .. } => {
            fields.list(id, OutputKind::STRUCT, &**cells, |out, (name, value)| write_mutation(out, name, Some(value)));
        }
        RowStep::DeleteCells { cells, .. } => {
            fields.list(id, OutputKind::STRUCT, &**cells, |out, name| write_mutation(out, name, None));
        }
        RowStep::DeleteRow { .. } => {}
    }
}

/// A timestamp, and attributes with the time to live. A delete never carries one: what it hides would come back.
fn write_moment(fields: &mut Fields<'_, '_>, id: i16, step: &RowStep<'_>) {
    fields.i64(id, step.timestamp());
    let ttl = step.ttl().map(i64::to_be_bytes);
    fields.entry(id + 1, ttl.as_ref().map(|ttl| (TTL, ttl.as_slice())));
}

/// A `Mutation`: a put of a value, or a delete.
fn write_mutation(out: &mut Output<'_>, name: &CellName, value: Option<&CellValue<'_>>) {
    let mut mutation = Fields::begin(out);
    mutation.bool(1, value.is_none());
    mutation.bytes(2, &column(name));
    if let Some(value) = value {
        value.write(&mut mutation, 3);
    }
    mutation.bool(4, true);
    mutation.end();
}

/// A cell's name as Thrift 1 has it.
pub(super) fn column(name: &CellName) -> Vec<u8> {
    [&name.family, b":".as_slice(), &name.qualifier].concat()
}

/// Reads a `TRowResult`.
pub(super) fn read_row(input: &mut Input<'_>) -> Result<Option<RowCells>, Unread> {
    let (mut row, mut cells) = (None, Few::default());
    input.fields(|input, id, kind| {
        match (id, kind) {
            (1, Kind::Bytes) => row = Some(input.part()?),
            (2, Kind::Map) => input.entries(|input| {
                read_cell(input)?.into_iter().for_each(|cell| cells.push(cell));
                Ok(())
            })?,
            _ => input.skip(kind)?,
        }
        Ok(())
    })?;
    Ok(row.filter(|_| !cells.is_empty()).map(|row| RowCells { reply: input.reply().clone(), row, cells }))
}

/// Reads a column with its `TCell`; `None` for a name without a family.
fn read_cell(input: &mut Input<'_>) -> Result<Option<CellParts>, Unread> {
    let column = input.part()?;
    let mut cell = CellParts::default();
    input.fields(|input, id, kind| {
        match (id, kind) {
            (1, Kind::Bytes) => cell.value = input.part()?,
            (2, Kind::I64) => cell.timestamp = input.i64()?,
            _ => input.skip(kind)?,
        }
        Ok(())
    })?;
    let name = column.split(input.reply(), b':');
    Ok(name.map(|(family, qualifier)| CellParts { family, qualifier, ..cell }))
}
