//! The calls that both interfaces have.

use peristyle_core::Result;

use super::{CellName, NewTable, Region, RowCells, RowWrite, ScanSpan, StepOfRow, TableName, thrift1, thrift2};
use crate::config::Api;
use crate::connection::{Call, Gateways};

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $ty:ty),*) -> $answer:ty;)*) => {$(
        $(#[$doc])*
        pub(crate) async fn $name(
            gateways: &Gateways,
            call: &Call,
            $($argument: $ty),*
        ) -> Result<$answer> {
            match gateways.api() {
                Api::Thrift2 => thrift2::$name(gateways, call, $($argument),*).await,
                Api::Thrift1 => thrift1::$name(gateways, call, $($argument),*).await,
            }
        }
    )*};
}

calls! {
    /// One row.
    get(table: &TableName, row: &[u8]) -> Option<RowCells>;
    /// Rows in the order asked for; those that aren't there are `None`.
    get_multiple(table: &TableName, rows: &[&[u8]]) -> Vec<Option<RowCells>>;
    /// The first rows of a span.
    scan(table: &TableName, span: &ScanSpan) -> Vec<RowCells>;
    /// Writes one row; in one atomic unit over Thrift 2.
    write(table: &TableName, write: &RowWrite<'_>) -> ();
    /// Puts into many rows, or deletes in many; over Thrift 1 all at one moment.
    write_multiple(table: &TableName, steps: &[StepOfRow<'_>]) -> ();
    /// Adds to counters of one row.
    increment(table: &TableName, row: Vec<u8>, deltas: Vec<(CellName, i64)>) -> ();
    /// Where a table's regions are.
    regions(table: &TableName) -> Vec<Region>;
    /// Makes a table.
    create_table(table: &TableName, new: NewTable) -> ();
    /// What a new table has that wasn't asked for, in words.
    differences(table: &TableName, new: &NewTable) -> Option<String>;
    /// Disables a table.
    disable(table: &TableName) -> ();
    /// Removes a disabled table.
    delete_table(table: &TableName) -> ();
    /// Looks whether the gateway answers, and speaks this interface.
    greet() -> ();
}
