//! The calls of Thrift 2 for rows: their arguments as bytes, and rows as they are answered.

use thrift::protocol::{TOutputProtocol, TType};

use super::fields::Fields;
use super::hbase2::{DELETE_COLUMNS, EQUAL};
use super::{CellName, RowCells, RowStep, RowWrite, StepOfRow, StoredCell, TTL};
use crate::connection::{Arguments, Input};

/// `get`.
pub(super) struct Get<'a> {
    pub(super) table: &'a [u8],
    pub(super) row: &'a [u8],
}

impl Arguments for Get<'_> {
    fn write<P: TOutputProtocol>(&self, out: &mut P) -> thrift::Result<()> {
        let mut call = Fields::begin(out)?;
        call.bytes(1, self.table)?;
        call.field(2, TType::Struct, |out| write_get(out, self.row))?;
        call.end()
    }
}

/// `getMultiple`.
pub(super) struct GetMultiple<'a> {
    pub(super) table: &'a [u8],
    pub(super) rows: &'a [&'a [u8]],
}

impl Arguments for GetMultiple<'_> {
    fn write<P: TOutputProtocol>(&self, out: &mut P) -> thrift::Result<()> {
        let mut call = Fields::begin(out)?;
        call.bytes(1, self.table)?;
        call.list(2, TType::Struct, self.rows, |out, row| write_get(out, row))?;
        call.end()
    }
}

/// `put` and `deleteSingle`.
pub(super) struct Single<'a> {
    pub(super) table: &'a [u8],
    pub(super) row: &'a [u8],
    pub(super) step: &'a RowStep<'a>,
}

impl Arguments for Single<'_> {
    fn write<P: TOutputProtocol>(&self, out: &mut P) -> thrift::Result<()> {
        let mut call = Fields::begin(out)?;
        call.bytes(1, self.table)?;
        call.field(2, TType::Struct, |out| write_step(out, self.row, self.step))?;
        call.end()
    }
}

/// `putMultiple` and `deleteMultiple`.
pub(super) struct Multiple<'a> {
    pub(super) table: &'a [u8],
    pub(super) steps: &'a [StepOfRow<'a>],
}

impl Arguments for Multiple<'_> {
    fn write<P: TOutputProtocol>(&self, out: &mut P) -> thrift::Result<()> {
        let mut call = Fields::begin(out)?;
        call.bytes(1, self.table)?;
        call.list(2, TType::Struct, self.steps, |out, step| write_step(out, step.row, &step.step))?;
        call.end()
    }
}

/// `mutateRow`.
pub(super) struct MutateRow<'a> {
    pub(super) table: &'a [u8],
    pub(super) write: &'a RowWrite<'a>,
}

impl Arguments for MutateRow<'_> {
    fn write<P: TOutputProtocol>(&self, out: &mut P) -> thrift::Result<()> {
        let mut call = Fields::begin(out)?;
        call.bytes(1, self.table)?;
        call.field(2, TType::Struct, |out| write_mutations(out, self.write))?;
        call.end()
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
    fn write<P: TOutputProtocol>(&self, out: &mut P) -> thrift::Result<()> {
        let mut call = Fields::begin(out)?;
        call.bytes(1, self.table)?;
        call.bytes(2, self.write.row)?;
        call.bytes(3, &self.checked.family)?;
        call.bytes(4, &self.checked.qualifier)?;
        call.i32(5, EQUAL)?;
        call.bytes(6, self.value)?;
        call.field(7, TType::Struct, |out| write_mutations(out, self.write))?;
        call.end()
    }
}

fn write_get<P: TOutputProtocol>(out: &mut P, row: &[u8]) -> thrift::Result<()> {
    let mut get = Fields::begin(out)?;
    get.bytes(1, row)?;
    get.end()
}

fn write_mutations<P: TOutputProtocol>(out: &mut P, write: &RowWrite<'_>) -> thrift::Result<()> {
    let mut mutations = Fields::begin(out)?;
    mutations.bytes(1, write.row)?;
    mutations.list(2, TType::Struct, &write.steps, |out, step| {
        let mut mutation = Fields::begin(out)?;
        let id = if step.is_put() { 1 } else { 2 };
        mutation.field(id, TType::Struct, |out| write_step(out, write.row, step))?;
        mutation.end()
    })?;
    mutations.end()
}

/// A `TPut` or a `TDelete`. A delete never carries a time to live: what it hides would come back.
fn write_step<P: TOutputProtocol>(out: &mut P, row: &[u8], step: &RowStep<'_>) -> thrift::Result<()> {
    let mut fields = Fields::begin(out)?;
    fields.bytes(1, row)?;
    match step {
        RowStep::Put { cells, timestamp, ttl } => {
            fields.list(2, TType::Struct, cells, |out, (name, value)| {
                let mut cell = Fields::begin(out)?;
                cell.bytes(1, &name.family)?;
                cell.bytes(2, &name.qualifier)?;
                cell.bytes(3, value)?;
                cell.end()
            })?;
            fields.i64(3, *timestamp)?;
            if let Some(ttl) = ttl {
                fields.entry(5, Some((TTL, &ttl.to_be_bytes())))?;
            }
        }
        RowStep::DeleteCells { cells, timestamp } => {
            fields.list(2, TType::Struct, cells, |out, name| {
                let mut column = Fields::begin(out)?;
                column.bytes(1, &name.family)?;
                column.bytes(2, &name.qualifier)?;
                column.i64(3, *timestamp)?;
                column.end()
            })?;
            fields.i64(3, *timestamp)?;
            fields.i32(4, DELETE_COLUMNS)?;
        }
        RowStep::DeleteRow { timestamp } => {
            fields.i64(3, *timestamp)?;
            fields.i32(4, DELETE_COLUMNS)?;
        }
    }
    fields.end()
}

/// Reads a `TResult`; a row that isn't there has no cells.
pub(super) fn read_row(input: &mut Input<'_>) -> thrift::Result<Option<RowCells>> {
    let (mut row, mut cells) = (None, Vec::new());
    input.fields(|input, id, ty| {
        match (id, ty) {
            (1, TType::String) => row = Some(input.bytes()?),
            (2, TType::List) => cells = input.list(read_cell)?,
            _ => input.protocol.skip(ty)?,
        }
        Ok(())
    })?;
    Ok(row.filter(|_| !cells.is_empty()).map(|row| RowCells { row, cells }))
}

/// Reads a `TColumnValue`.
fn read_cell(input: &mut Input<'_>) -> thrift::Result<StoredCell> {
    let mut cell = StoredCell::default();
    input.fields(|input, id, ty| {
        match (id, ty) {
            (1, TType::String) => cell.name.family = input.bytes()?,
            (2, TType::String) => cell.name.qualifier = input.bytes()?,
            (3, TType::String) => cell.value = input.bytes()?,
            (4, TType::I64) => cell.timestamp = input.protocol.read_i64()?,
            _ => input.protocol.skip(ty)?,
        }
        Ok(())
    })?;
    Ok(cell)
}
