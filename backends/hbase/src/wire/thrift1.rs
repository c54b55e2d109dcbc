//! The calls of Thrift 1.
//!
//! It puts and deletes rows one by one, a put and a delete of one row are two calls, and a scan is a thing of the gateway that
//! must be opened and closed.

use std::collections::BTreeMap;

use peristyle_core::model::Compression;
use peristyle_core::{Error, Result};

use super::hbase1::{
    AtomicIncrementArgs, ColumnDescriptor, CreateTableArgs, DeleteAllRowTsArgs, GetRowArgs, GetRowsArgs,
    MutateRowTsArgs, Mutation, NoArgs, ScannerCloseArgs, ScannerGetListArgs, ScannerOpenWithScanArgs, TCell,
    TRegionInfo, TRowResult, TScan, TableNameArgs,
};
use super::{CellName, NewTable, Region, RowCells, RowStep, RowWrite, ScanSpan, StoredCell, TTL, TableName};
use crate::connection::{Call, Gateways, read_bytes_list, read_i32, read_i64, read_list, read_nothing};

pub(super) async fn get(gateways: &Gateways, call: &Call, table: &TableName, row: Vec<u8>) -> Result<Option<RowCells>> {
    let arguments = GetRowArgs { table_name: table.bytes(), row, attributes: BTreeMap::new() };
    let found = gateways.call(call, "getRow", &arguments, read_list::<TRowResult>).await?;
    Ok(found.into_iter().find_map(row_cells))
}

/// The rows in the order asked for. The gateway leaves those out that aren't there.
pub(super) async fn get_multiple(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    rows: Vec<Vec<u8>>,
) -> Result<Vec<Option<RowCells>>> {
    let arguments = GetRowsArgs { table_name: table.bytes(), rows, attributes: BTreeMap::new() };
    let found = gateways.call(call, "getRows", &arguments, read_list::<TRowResult>).await?;
    let found: BTreeMap<Vec<u8>, RowCells> =
        found.into_iter().filter_map(row_cells).map(|row| (row.row.clone(), row)).collect();
    Ok(arguments.rows.iter().map(|row| found.get(row).cloned()).collect())
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
    let found = session.call(call, "scannerGetList", &list, read_list::<TRowResult>).await;
    let closed = session.call(call, "scannerClose", &ScannerCloseArgs { id }, read_nothing).await;
    let found = found?;
    closed?;
    Ok(found.into_iter().filter_map(row_cells).collect())
}

/// Writes one row, each step in a call of its own, the newest first: what is deleted below a put that expires goes behind it.
pub(super) async fn write(gateways: &Gateways, call: &Call, table: &TableName, write: RowWrite) -> Result<()> {
    let mut steps = write.steps;
    steps.sort_by_key(|step| std::cmp::Reverse(timestamp(step)));
    for step in steps {
        write_step(gateways, call, table, write.row.clone(), step).await?;
    }
    Ok(())
}

fn timestamp(step: &RowStep) -> i64 {
    match step {
        RowStep::Put { timestamp, .. } | RowStep::DeleteCells { timestamp, .. } | RowStep::DeleteRow { timestamp } => {
            *timestamp
        }
    }
}

async fn write_step(gateways: &Gateways, call: &Call, table: &TableName, row: Vec<u8>, step: RowStep) -> Result<()> {
    let (mutations, timestamp, ttl) = match step {
        RowStep::DeleteRow { timestamp } => {
            let attributes = BTreeMap::new();
            let arguments = DeleteAllRowTsArgs { table_name: table.bytes(), row, timestamp, attributes };
            return gateways.call(call, "deleteAllRowTs", &arguments, read_nothing).await;
        }
        RowStep::Put { cells, timestamp, ttl } => {
            (cells.into_iter().map(|(name, value)| mutation(&name, Some(value))).collect(), timestamp, ttl)
        }
        RowStep::DeleteCells { cells, timestamp } => {
            (cells.iter().map(|name| mutation(name, None)).collect(), timestamp, None)
        }
    };
    let attributes = ttl.map(|ttl| (TTL.to_vec(), ttl.to_be_bytes().to_vec())).into_iter().collect();
    let arguments = MutateRowTsArgs { table_name: table.bytes(), row, mutations, timestamp, attributes };
    gateways.call(call, "mutateRowTs", &arguments, read_nothing).await
}

fn mutation(name: &CellName, value: Option<Vec<u8>>) -> Mutation {
    Mutation { is_delete: value.is_none(), column: column(name), value, write_to_w_a_l: true }
}

fn column(name: &CellName) -> Vec<u8> {
    [&name.family, b":".as_slice(), &name.qualifier].concat()
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
        host: String::from_utf8_lossy(&region.server_name.unwrap_or_default()).into_owned(),
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
    let compression = match new.compression {
        Compression::Gz => "GZ",
        Compression::Snappy => "SNAPPY",
        Compression::Lz4 => "LZ4",
        Compression::Zstd => "ZSTD",
        _ => "NONE",
    };
    let family = |name: Vec<u8>| ColumnDescriptor {
        name: [name.as_slice(), b":"].concat(),
        max_versions: 1,
        compression: compression.to_owned(),
        bloom_filter_type: "ROW".to_owned(),
        block_cache_enabled: true,
    };
    let column_families = new.families.into_iter().map(family).collect();
    let arguments = CreateTableArgs { table_name: table.bytes(), column_families };
    gateways.call(call, "createTable", &arguments, read_nothing).await
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

fn row_cells(result: TRowResult) -> Option<RowCells> {
    let cell = |(column, cell): (Vec<u8>, TCell)| {
        let colon = column.iter().position(|byte| *byte == b':')?;
        let (family, qualifier) = column.split_at(colon);
        let name = CellName { family: family.to_vec(), qualifier: qualifier.get(1..)?.to_vec() };
        Some(StoredCell { name, value: cell.value, timestamp: cell.timestamp })
    };
    let cells: Vec<StoredCell> = result.columns.unwrap_or_default().into_iter().filter_map(cell).collect();
    (!cells.is_empty()).then_some(RowCells { row: result.row, cells })
}
