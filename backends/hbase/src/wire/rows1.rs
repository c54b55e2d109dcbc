//! The calls of Thrift 1 for rows: their arguments as bytes, and rows as they are answered.

use thrift::protocol::{TOutputProtocol, TType};

use super::fields::Fields;
use super::{CellName, RowCells, RowStep, StepOfRow, StoredCell, TTL};
use crate::connection::{Arguments, Input};

/// `getRow`.
pub(super) struct GetRow<'a> {
    pub(super) table: &'a [u8],
    pub(super) row: &'a [u8],
}

impl Arguments for GetRow<'_> {
    fn write<P: TOutputProtocol>(&self, out: &mut P) -> thrift::Result<()> {
        let mut call = Fields::begin(out)?;
        call.bytes(1, self.table)?;
        call.bytes(2, self.row)?;
        call.entry(3, None)?;
        call.end()
    }
}

/// `getRows`.
pub(super) struct GetRows<'a> {
    pub(super) table: &'a [u8],
    pub(super) rows: &'a [&'a [u8]],
}

impl Arguments for GetRows<'_> {
    fn write<P: TOutputProtocol>(&self, out: &mut P) -> thrift::Result<()> {
        let mut call = Fields::begin(out)?;
        call.bytes(1, self.table)?;
        call.list(2, TType::String, self.rows, |out, row| out.write_bytes(row))?;
        call.entry(3, None)?;
        call.end()
    }
}

/// `mutateRowTs`, and `deleteAllRowTs` for a whole row.
pub(super) struct Mutate<'a> {
    pub(super) table: &'a [u8],
    pub(super) row: &'a [u8],
    pub(super) step: &'a RowStep<'a>,
}

impl Arguments for Mutate<'_> {
    fn write<P: TOutputProtocol>(&self, out: &mut P) -> thrift::Result<()> {
        let mut call = Fields::begin(out)?;
        call.bytes(1, self.table)?;
        call.bytes(2, self.row)?;
        let next = if matches!(self.step, RowStep::DeleteRow { .. }) { 3 } else { 4 };
        write_mutations(&mut call, 3, self.step)?;
        write_moment(&mut call, next, self.step)?;
        call.end()
    }
}

/// `mutateRowsTs`: steps of the same moment, none of which deletes a whole row.
pub(super) struct MutateRows<'a> {
    pub(super) table: &'a [u8],
    pub(super) steps: &'a [&'a StepOfRow<'a>],
}

impl Arguments for MutateRows<'_> {
    fn write<P: TOutputProtocol>(&self, out: &mut P) -> thrift::Result<()> {
        let mut call = Fields::begin(out)?;
        call.bytes(1, self.table)?;
        call.list(2, TType::Struct, self.steps, |out, step| {
            let mut row = Fields::begin(out)?;
            row.bytes(1, step.row)?;
            write_mutations(&mut row, 2, &step.step)?;
            row.end()
        })?;
        if let Some(first) = self.steps.first() {
            write_moment(&mut call, 3, &first.step)?;
        }
        call.end()
    }
}

/// A list of mutations; nothing for a delete of a whole row.
fn write_mutations<P: TOutputProtocol>(fields: &mut Fields<'_, P>, id: i16, step: &RowStep<'_>) -> thrift::Result<()> {
    match step {
        RowStep::Put { cells, .. } => {
            fields.list(id, TType::Struct, cells, |out, (name, value)| write_mutation(out, name, Some(value)))
        }
        RowStep::DeleteCells { cells, .. } => {
            fields.list(id, TType::Struct, cells, |out, name| write_mutation(out, name, None))
        }
        RowStep::DeleteRow { .. } => Ok(()),
    }
}

/// A timestamp, and attributes with the time to live. A delete never carries one: what it hides would come back.
fn write_moment<P: TOutputProtocol>(fields: &mut Fields<'_, P>, id: i16, step: &RowStep<'_>) -> thrift::Result<()> {
    fields.i64(id, step.timestamp())?;
    let ttl = step.ttl().map(i64::to_be_bytes);
    fields.entry(id + 1, ttl.as_ref().map(|ttl| (TTL, ttl.as_slice())))
}

/// A `Mutation`: a put of a value, or a delete.
fn write_mutation<P: TOutputProtocol>(out: &mut P, name: &CellName, value: Option<&[u8]>) -> thrift::Result<()> {
    let mut mutation = Fields::begin(out)?;
    mutation.bool(1, value.is_none())?;
    mutation.bytes(2, &column(name))?;
    if let Some(value) = value {
        mutation.bytes(3, value)?;
    }
    mutation.bool(4, true)?;
    mutation.end()
}

/// A cell's name as Thrift 1 has it.
pub(super) fn column(name: &CellName) -> Vec<u8> {
    [&name.family, b":".as_slice(), &name.qualifier].concat()
}

/// Reads a `TRowResult`.
pub(super) fn read_row(input: &mut Input<'_>) -> thrift::Result<Option<RowCells>> {
    let (mut row, mut cells) = (None, Vec::new());
    input.fields(|input, id, ty| {
        match (id, ty) {
            (1, TType::String) => row = Some(input.bytes()?),
            (2, TType::Map) => {
                let map = input.protocol.read_map_begin()?;
                for _ in 0..map.size {
                    cells.extend(read_cell(input)?);
                }
                input.protocol.read_map_end()?;
            }
            _ => input.protocol.skip(ty)?,
        }
        Ok(())
    })?;
    Ok(row.filter(|_| !cells.is_empty()).map(|row| RowCells { row, cells }))
}

/// Reads a column with its `TCell`; `None` for a name without a family.
fn read_cell(input: &mut Input<'_>) -> thrift::Result<Option<StoredCell>> {
    let column = input.bytes()?;
    let mut cell = StoredCell::default();
    input.fields(|input, id, ty| {
        match (id, ty) {
            (1, TType::String) => cell.value = input.bytes()?,
            (2, TType::I64) => cell.timestamp = input.protocol.read_i64()?,
            _ => input.protocol.skip(ty)?,
        }
        Ok(())
    })?;
    let Some(colon) = column.iter().position(|byte| *byte == b':') else { return Ok(None) };
    cell.name = CellName { family: column.slice(..colon), qualifier: column.slice(colon + 1..) };
    Ok(Some(cell))
}
