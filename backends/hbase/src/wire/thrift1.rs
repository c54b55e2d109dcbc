//! The calls of Thrift 1.
//!
//! All rows of a call have one timestamp, a put and a delete of one row are two calls, and a scan is a thing of the gateway that
//! must be opened and closed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::hbase1::{
    AtomicIncrementArgs, ColumnDescriptor, CreateTableArgs, NoArgs, ScannerCloseArgs, ScannerGetListArgs,
    ScannerOpenWithScanArgs, TRegionInfo, TScan, TableNameArgs,
};
use super::rows1::{GetRow, GetRows, Mutate, MutateRows, column, read_row};
use super::{CellName, NewTable, Region, RowCells, RowStep, RowWrite, ScanSpan, Server, StepOfRow, TableName};
use crate::connection::{
    Call, Gateways, Input, Unread, read_bytes_list, read_i32, read_i64, read_list, read_nothing, read_with,
};
use peristyle_core::model::Compression;
use peristyle_core::{Error, Result};

pub(super) async fn get(gateways: &Gateways, call: &Call, table: &TableName, row: &[u8]) -> Result<Option<RowCells>> {
    let found = gateways.call(call, "getRow", &GetRow { table: &table.bytes(), row }, read_rows).await?;
    Ok(found.into_iter().flatten().next())
}

/// The rows in the order asked for. The gateway leaves those out that aren't there.
pub(super) async fn get_multiple(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    rows: &[&[u8]],
) -> Result<Vec<Option<RowCells>>> {
    let found = gateways.call(call, "getRows", &GetRows { table: &table.bytes(), rows }, read_rows).await?;
    let found: HashMap<&[u8], &RowCells> = found.iter().flatten().map(|row| (row.row(), row)).collect();
    Ok(rows.iter().map(|row| found.get(row).copied().cloned()).collect())
}

fn read_rows(input: Option<&mut Input<'_>>) -> std::result::Result<Vec<Option<RowCells>>, Unread> {
    read_with(input, |input| input.list(read_row))
}

/// Opens a scan, takes its first rows and closes it, all on one connection.
pub(super) async fn scan(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    span: &ScanSpan,
) -> Result<Vec<RowCells>> {
    let nb_rows = i32::try_from(span.limit).unwrap_or(i32::MAX);
    let bound = |key: &Vec<u8>| (!key.is_empty()).then(|| key.clone());
    let from_to = TScan {
        start_row: bound(&span.start),
        stop_row: bound(&span.stop),
        caching: Some(nb_rows),
        reversed: Some(span.reverse),
    };
    let open = ScannerOpenWithScanArgs { table_name: table.bytes(), scan: from_to, attributes: BTreeMap::new() };
    let mut session = gateways.session(call).await?;
    let id = session.call(call, "scannerOpenWithScan", &open, read_i32).await?;
    let list = ScannerGetListArgs { id, nb_rows };
    let found = session.call(call, "scannerGetList", &list, read_rows).await;
    let closed = session.call(call, "scannerClose", &ScannerCloseArgs { id }, read_nothing).await;
    let found = found?;
    closed?;
    Ok(found.into_iter().flatten().collect())
}

/// Writes one row, each step in a call of its own, the newest first: what is deleted below a put that expires goes behind it.
pub(super) async fn write(gateways: &Gateways, call: &Call, table: &TableName, write: &RowWrite<'_>) -> Result<()> {
    let (table, row) = (&*table.bytes(), write.row);
    let mut steps: Vec<&RowStep<'_>> = write.steps.iter().collect();
    steps.sort_by_key(|step| Reverse(step.timestamp()));
    for step in steps {
        let method = if matches!(step, RowStep::DeleteRow { .. }) { "deleteAllRowTs" } else { "mutateRowTs" };
        gateways.call(call, method, &Mutate { table, row, step }, read_nothing).await?;
    }
    Ok(())
}

/// Puts into many rows, or deletes in many, all with the timestamp and the time to live of the first. What is deleted as a
/// whole goes row by row.
pub(super) async fn write_multiple(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    steps: &[StepOfRow<'_>],
) -> Result<()> {
    let table = &*table.bytes();
    let is_whole = |step: &&StepOfRow<'_>| matches!(step.step, RowStep::DeleteRow { .. });
    let (whole, others): (Vec<&StepOfRow<'_>>, Vec<&StepOfRow<'_>>) = steps.iter().partition(is_whole);
    if !others.is_empty() {
        gateways.call(call, "mutateRowsTs", &MutateRows { table, steps: &others }, read_nothing).await?;
    }
    for StepOfRow { row, step } in whole {
        gateways.call(call, "deleteAllRowTs", &Mutate { table, row, step }, read_nothing).await?;
    }
    Ok(())
}

pub(super) async fn increment(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    row: Vec<u8>,
    deltas: Vec<(CellName, i64)>,
) -> Result<()> {
    for (name, value) in deltas {
        let arguments =
            AtomicIncrementArgs { table_name: table.bytes(), row: row.clone(), column: column(&name), value };
        gateways.call(call, "atomicIncrement", &arguments, read_i64).await?;
    }
    Ok(())
}

pub(super) async fn regions(gateways: &Gateways, call: &Call, table: &TableName) -> Result<Vec<Region>> {
    let arguments = TableNameArgs { table_name: table.bytes() };
    let found = gateways.call(call, "getTableRegions", &arguments, read_list::<TRegionInfo>).await?;
    let region = |region: TRegionInfo| Region {
        start: region.start_key.unwrap_or_default(),
        end: region.end_key.unwrap_or_default(),
        server: Server {
            host: String::from_utf8_lossy(&region.server_name.unwrap_or_default()).into_owned(),
            port: region.port.and_then(|port| port.try_into().ok()).unwrap_or(0),
        },
        id: region.id.unwrap_or_default(),
    };
    Ok(found.into_iter().map(region).collect())
}

/// Makes a table that is neither split nor has attributes.
pub(super) async fn create_table(gateways: &Gateways, call: &Call, table: &TableName, new: NewTable) -> Result<()> {
    if !new.splits.is_empty() {
        return Err(Error::invalid(
            "Thrift 1 makes no table that is split; make it through Thrift 2, or leave out pre_split",
        ));
    }
    let arguments = CreateTableArgs { table_name: table.bytes(), column_families: families(&new) };
    gateways.call(call, "createTable", &arguments, read_nothing).await
}

fn families(new: &NewTable) -> Vec<ColumnDescriptor> {
    let compression = match new.compression {
        Compression::Gz => "GZ",
        Compression::Snappy => "SNAPPY",
        Compression::Lz4 => "LZ4",
        Compression::Zstd => "ZSTD",
        _ => "NONE",
    };
    let family = |name: &Vec<u8>| ColumnDescriptor {
        name: [name.as_slice(), b":"].concat(),
        max_versions: 1,
        compression: compression.to_owned(),
        bloom_filter_type: "ROW".to_owned(),
        block_cache_enabled: true,
    };
    new.families.iter().map(family).collect()
}

/// What a new table has that wasn't asked for, in words.
pub(super) async fn differences(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    new: &NewTable,
) -> Result<Option<String>> {
    let arguments = TableNameArgs { table_name: table.bytes() };
    let mut live = gateways.call(call, "getColumnDescriptors", &arguments, read_families).await?;
    live.sort_by(|a, b| a.name.cmp(&b.name));
    let asked = families(new);
    Ok((live != asked).then(|| format!("families: {live:?} instead of {asked:?}")))
}

/// Reads a map of families by their names.
fn read_families(input: Option<&mut Input<'_>>) -> std::result::Result<Vec<ColumnDescriptor>, Unread> {
    read_with(input, |input| {
        let mut families = Vec::new();
        input.entries(|input| {
            input.bytes()?;
            families.push(input.generated()?);
            Ok(())
        })?;
        Ok(families)
    })
}

pub(super) async fn disable(gateways: &Gateways, call: &Call, table: &TableName) -> Result<()> {
    gateways.call(call, "disableTable", &TableNameArgs { table_name: table.bytes() }, read_nothing).await
}

pub(super) async fn delete_table(gateways: &Gateways, call: &Call, table: &TableName) -> Result<()> {
    gateways.call(call, "deleteTable", &TableNameArgs { table_name: table.bytes() }, read_nothing).await
}

/// Looks whether the gateway answers.
pub(super) async fn greet(gateways: &Gateways, call: &Call) -> Result<()> {
    gateways.call(call, "getTableNames", &NoArgs {}, read_bytes_list).await.map(|_| ())
}
