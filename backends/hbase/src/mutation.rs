//! Mutations as what is done to a row.

use std::borrow::Cow;

use peristyle_core::model::Ttl;
use peristyle_core::request::{CellWrite, Mutation, Wipe};
use peristyle_core::{Capability, Error, ErrorKind, Result};

use crate::codec::{Layout, MARKER_VALUE, has_lossy_key, original};
use crate::wire::{CellName, CellValue, Few, PutCells, RowStep, RowWrite, StepOfRow};

/// The room that a cell takes beside its value, row, family and qualifier.
const CELL_OVERHEAD: usize = 24;
/// The largest cell that a region server takes by default.
const MAX_CELL_BYTES: usize = 10 << 20;

/// When a row is written, in the table's timestamps, and in seconds since 1970 for times to live.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Of what is put or deleted.
    pub(crate) timestamp: i64,
    /// Of what is removed first.
    pub(crate) before: i64,
    /// The second from which times to live count.
    pub(crate) now: i64,
}

/// What a mutation does to its row, in one atomic unit.
///
/// # Errors
/// `InvalidArgument` for a delete of a partition and for columns that aren't there, `TooLarge` for keys and values over what
/// HBase takes.
pub(crate) fn row_write<'a>(
    layout: &'a Layout,
    mutation: &'a Mutation,
    row: &'a [u8],
    now: i64,
) -> Result<RowWrite<'a>> {
    if mutation.wipe == Wipe::Partition {
        return Err(Error::unsupported(Capability::PartitionDelete, crate::NAME));
    }
    let (timestamp, before) = layout.timestamps(row, mutation.write_time.as_micros());
    row_steps(layout, mutation, row, Moment { timestamp, before, now })
}

/// What a mutation does that only puts what doesn't expire, as most do; `None` for any other.
///
/// # Errors
/// Those of [`row_write`].
pub(crate) fn plain_put<'a>(
    layout: &'a Layout,
    mutation: &'a Mutation,
    row: &'a [u8],
) -> Result<Option<StepOfRow<'a>>> {
    let more = mutation.wipe != Wipe::Nothing || mutation.marker.is_some() || mutation.cells.is_empty();
    if more || has_lossy_key(layout, &mutation.key) {
        return Ok(None);
    }
    let mut cells = PutCells::default();
    for cell in &*mutation.cells {
        match &cell.write {
            CellWrite::Put(value, ttl) if ttl.resolve(layout.spec.default_ttl()).is_none() => {
                let name = layout.cell(cell.column)?;
                check_cell(row, name, value.size())?;
                cells.push((name, CellValue::Of(value)));
            }
            _ => return Ok(None),
        }
    }
    let (timestamp, _) = layout.timestamps(row, mutation.write_time.as_micros());
    Ok(Some(StepOfRow { row, step: RowStep::Put { cells, timestamp, ttl: None } }))
}

/// The same for a known moment.
pub(crate) fn row_steps<'a>(
    layout: &'a Layout,
    mutation: &'a Mutation,
    row: &'a [u8],
    moment: Moment,
) -> Result<RowWrite<'a>> {
    let mut puts = Puts::default();
    let mut deletes = Vec::new();
    for cell in &*mutation.cells {
        let name = layout.cell(cell.column)?;
        match &cell.write {
            CellWrite::Delete => deletes.push(name),
            CellWrite::Put(value, ttl) => {
                check_cell(row, name, value.size())?;
                puts.add(remaining(layout, *ttl, moment), name, CellValue::Of(value));
            }
        }
    }
    if let Some(ttl) = mutation.marker {
        puts.add(remaining(layout, ttl, moment), &layout.marker, CellValue::Bytes(Cow::Borrowed(MARKER_VALUE)));
    }
    if !puts.0.is_empty()
        && let Some(original) = original(layout, &mutation.key)
    {
        check_cell(row, &layout.original, original.len())?;
        puts.add(None, &layout.original, CellValue::Bytes(Cow::Owned(original)));
    }
    let mut steps = Vec::new();
    if mutation.wipe == Wipe::Row {
        let alone = puts.0.is_empty() && deletes.is_empty();
        steps.push(RowStep::DeleteRow { timestamp: if alone { moment.timestamp } else { moment.before } });
    } else {
        steps.extend(uncovered(&puts, moment.before));
    }
    if !deletes.is_empty() {
        steps.push(RowStep::DeleteCells { cells: deletes, timestamp: moment.timestamp });
    }
    let put = |(ttl, cells)| RowStep::Put { cells, timestamp: moment.timestamp, ttl };
    steps.extend(puts.0.into_iter().map(put));
    Ok(RowWrite { row, steps })
}

/// The cells that are put, by how long they live.
#[derive(Default)]
struct Puts<'a>(Vec<(Option<i64>, PutCells<'a>)>);

impl<'a> Puts<'a> {
    fn add(&mut self, ttl: Option<i64>, name: &'a CellName, value: CellValue<'a>) {
        match self.0.iter_mut().find(|(other, _)| *other == ttl) {
            Some((_, cells)) => cells.push((name, value)),
            None => self.0.push((ttl, Few::One((name, value)))),
        }
    }
}

/// When a cell that expires leaves, HBase shows the one below it again: so all below is deleted with its put.
fn uncovered<'a>(puts: &Puts<'a>, before: i64) -> Option<RowStep<'a>> {
    let expiring = puts.0.iter().filter(|(ttl, _)| ttl.is_some()).flat_map(|(_, cells)| &**cells);
    let cells: Vec<&CellName> = expiring.map(|(name, _)| *name).collect();
    (!cells.is_empty()).then_some(RowStep::DeleteCells { cells, timestamp: before })
}

/// How long a cell lives as HBase reckons it: in milliseconds from its timestamp, which it takes for milliseconds whatever it
/// is. From a timestamp in microseconds that is a number far below 0, which brings the sum to the right instant.
fn remaining(layout: &Layout, ttl: Ttl, moment: Moment) -> Option<i64> {
    let seconds = ttl.resolve(layout.spec.default_ttl())?;
    let expiry = (moment.now + i64::from(seconds.get())).saturating_mul(1_000);
    // A cell is gone after this instant, not at it.
    Some(expiry - 1 - moment.timestamp)
}

fn check_cell(row: &[u8], name: &CellName, value: usize) -> Result<()> {
    let size = row.len() + name.family.len() + name.qualifier.len() + value + CELL_OVERHEAD;
    if size <= MAX_CELL_BYTES {
        return Ok(());
    }
    let message = format!("a cell of {size} bytes with its key; HBase takes {MAX_CELL_BYTES}");
    Err(Error::new(ErrorKind::TooLarge, message))
}
