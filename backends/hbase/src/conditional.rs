//! Conditional puts.
//!
//! HBase checks one cell and writes the row in one step. What is checked is the column of the condition; where that can't tell
//! (whether a row of several columns is absent, or an empty value from an absent one) it is the guard, a cell that every
//! conditional put changes. Either way the row is read first, which tells the condition, and a timestamp behind all that is
//! stored: HBase's own would be in milliseconds, and hidden.

use std::borrow::Cow;
use std::cmp::Ordering;

use bytes::Bytes;
use peristyle_core::codec::value::decode_value;
use peristyle_core::model::{Type, Value};
use peristyle_core::request::{Condition, Mutation, Projection, Wipe};
use peristyle_core::response::Comparison;
use peristyle_core::{Capability, Error, ErrorKind, Outcome, Result};
use uuid::Uuid;

use crate::codec::{Layout, encode_row_key, may_be_empty, newest, stored_row};
use crate::connection::Call;
use crate::mutation::{Moment, row_steps};
use crate::store::Store;
use crate::wire::{CellName, CellValue, Few, RowCells, RowStep, RowWrite, calls, thrift2};

/// How often it is tried anew when another conditional put comes between.
const MAX_ROUNDS: usize = 32;

impl Store {
    pub(crate) async fn compare_and_put(
        &self,
        layout: &Layout,
        mutation: &Mutation,
        condition: &Condition,
        call: &Call,
    ) -> Result<Comparison> {
        self.need_thrift2(Capability::CompareAndPut)?;
        if mutation.wipe != Wipe::Nothing {
            return Err(Error::invalid("a conditional put that also wipes; put the columns alone"));
        }
        let row = encode_row_key(layout, mutation.key.values())?;
        let call = call.at(self.place(layout, &row));
        for _ in 0..MAX_ROUNDS {
            let current = calls::get(&self.gateways, &call.reading(), &layout.table, &row).await?;
            if !holds(layout, condition, current.as_ref())? {
                let everything = Projection::default();
                let current =
                    current.map(|row| stored_row(layout, &row, Some(mutation.key.clone()), &everything)).transpose()?;
                return Ok(Comparison { applied: false, current: current.flatten() });
            }
            let check = check(layout, condition, current.as_ref())?;
            let write = self.guarded(layout, mutation, &row, current.as_ref())?;
            if thrift2::check_and_mutate(&self.gateways, &call, &layout.table, check, &write).await? {
                return Ok(Comparison { applied: true, current: None });
            }
        }
        let message = format!("{MAX_ROUNDS} other conditional puts of the row came first; try again later");
        Err(Error::new(ErrorKind::Overloaded, message).with_outcome(Outcome::NotApplied))
    }

    /// The put behind all that is stored, with a new guard.
    fn guarded<'a>(
        &self,
        layout: &'a Layout,
        mutation: &'a Mutation,
        row: &'a [u8],
        current: Option<&RowCells>,
    ) -> Result<RowWrite<'a>> {
        let newest = newest(layout, current);
        let (timestamp, before) = layout.timestamps_behind(row, newest, self.clock.micros());
        let moment = Moment { timestamp, before, now: self.clock.seconds() };
        let mut write = row_steps(layout, mutation, row, moment)?;
        let guard = CellValue::Bytes(Cow::Owned(Uuid::new_v4().as_bytes().to_vec()));
        write.steps.push(RowStep::Put { cells: Few::One((&layout.guard, guard)), timestamp, ttl: None });
        Ok(write)
    }
}

/// Whether the condition holds for the row as it was read.
fn holds(layout: &Layout, condition: &Condition, current: Option<&RowCells>) -> Result<bool> {
    Ok(match condition {
        Condition::RowAbsent => !current.is_some_and(|row| crate::codec::is_live_row(layout, row)),
        Condition::ColumnAbsent(column) => stored(current, layout.cell(*column)?).is_none(),
        Condition::ColumnEquals(column, expected) => match stored(current, layout.cell(*column)?) {
            Some(bytes) => {
                let value = decode_value(column_type(layout, *column)?, Bytes::copy_from_slice(bytes))?;
                value.ty() == expected.ty() && Value::cluster_cmp(&value, expected) == Ordering::Equal
            }
            None => false,
        },
    })
}

/// The cell that must still be as it was read, and how it was: no bytes for an absent one.
fn check<'a>(
    layout: &'a Layout,
    condition: &Condition,
    current: Option<&'a RowCells>,
) -> Result<(&'a CellName, &'a [u8])> {
    let tells = |column: usize| Ok::<_, Error>(!may_be_empty(column_type(layout, column)?));
    let cell = match condition {
        Condition::ColumnEquals(column, _) => {
            let cell = layout.cell(*column)?;
            stored(current, cell).filter(|bytes| !bytes.is_empty()).map(|_| cell)
        }
        Condition::ColumnAbsent(column) if tells(*column)? => Some(layout.cell(*column)?),
        Condition::RowAbsent => match layout.spec.value_columns().len() {
            0 => Some(&layout.marker),
            1 if tells(layout.spec.key_len())? => Some(layout.cell(layout.spec.key_len())?),
            _ => None,
        },
        Condition::ColumnAbsent(_) => None,
    };
    let cell = cell.unwrap_or(&layout.guard);
    Ok((cell, stored(current, cell).unwrap_or_default()))
}

fn stored<'a>(current: Option<&'a RowCells>, name: &CellName) -> Option<&'a [u8]> {
    current?.value_of(name)
}

fn column_type(layout: &Layout, column: usize) -> Result<Type> {
    let found = layout.spec.columns().get(column).map(|column| column.ty);
    found.ok_or_else(|| Error::invalid(format!("table {} has no column {column}", layout.spec.name())))
}
