//! The calls of Thrift 2.

use std::collections::BTreeMap;

use peristyle_core::model::{BlockEncoding, Compression};
use peristyle_core::{Error, Result};

use super::hbase2::{
    CheckAndMutateArgs, CreateNamespaceArgs, CreateTableArgs, DELETE_COLUMNS, DeleteMultipleArgs, DeleteSingleArgs,
    EQUAL, GetArgs, GetMultipleArgs, GetNamespaceDescriptorArgs, GetScannerResultsArgs, IncrementArgs, MutateRowArgs,
    PutArgs, PutMultipleArgs, TColumn, TColumnFamilyDescriptor, TColumnIncrement, TColumnValue, TDelete, TGet,
    THRegionLocation, TIncrement, TMutation, TNamespaceDescriptor, TPut, TResult, TRowMutations, TScan,
    TTableDescriptor, TTableName, TableArgs, TableNameArgs, TruncateTableArgs,
};
use super::{CellName, NewTable, Region, RowCells, RowStep, RowWrite, ScanSpan, StoredCell, TTL, TableName};
use crate::connection::{Call, Gateways, read_bool, read_list, read_nothing, read_optional, read_struct};

pub(crate) async fn get(gateways: &Gateways, call: &Call, table: &TableName, row: Vec<u8>) -> Result<Option<RowCells>> {
    let arguments = GetArgs { table: table.bytes(), tget: TGet { row, columns: None } };
    gateways.call(call, "get", &arguments, read_struct::<TResult>).await.map(row_cells)
}

/// The rows in the order asked for; those that aren't there are `None`.
pub(crate) async fn get_multiple(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    rows: Vec<Vec<u8>>,
) -> Result<Vec<Option<RowCells>>> {
    let tgets = rows.into_iter().map(|row| TGet { row, columns: None }).collect();
    let arguments = GetMultipleArgs { table: table.bytes(), tgets };
    let rows = gateways.call(call, "getMultiple", &arguments, read_list::<TResult>).await?;
    Ok(rows.into_iter().map(row_cells).collect())
}

pub(crate) async fn scan(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    span: &ScanSpan,
) -> Result<Vec<RowCells>> {
    let limit = i32::try_from(span.limit).unwrap_or(i32::MAX);
    let tscan = TScan {
        start_row: Some(span.start.clone()),
        stop_row: Some(span.stop.clone()),
        caching: Some(limit),
        max_versions: Some(1),
        reversed: Some(span.reverse),
        limit: Some(limit),
    };
    let arguments = GetScannerResultsArgs { table: table.bytes(), tscan, num_rows: limit };
    let rows = gateways.call(call, "getScannerResults", &arguments, read_list::<TResult>).await?;
    Ok(rows.into_iter().filter_map(row_cells).collect())
}

/// Writes one row in one atomic unit.
pub(crate) async fn write(gateways: &Gateways, call: &Call, table: &TableName, write: RowWrite) -> Result<()> {
    let mut mutations = mutations(write);
    let table = table.bytes();
    match mutations.mutations.len() {
        1 => match mutations.mutations.pop() {
            Some(TMutation::Put(tput)) => gateways.call(call, "put", &PutArgs { table, tput }, read_nothing).await,
            Some(TMutation::DeleteSingle(tdelete)) => {
                gateways.call(call, "deleteSingle", &DeleteSingleArgs { table, tdelete }, read_nothing).await
            }
            None => Ok(()),
        },
        0 => Err(Error::invalid("a write of nothing; give a column")),
        _ => {
            let arguments = MutateRowArgs { table, trow_mutations: mutations };
            gateways.call(call, "mutateRow", &arguments, read_nothing).await
        }
    }
}

/// Puts into many rows. Gives the puts back, so that they can be sent again.
pub(crate) async fn put_multiple(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    tputs: Vec<TPut>,
) -> (Vec<TPut>, Result<()>) {
    let arguments = PutMultipleArgs { table: table.bytes(), tputs };
    let sent = gateways.call(call, "putMultiple", &arguments, read_nothing).await;
    (arguments.tputs, sent)
}

/// Deletes in many rows. Gives the deletes back, so that they can be sent again.
pub(crate) async fn delete_multiple(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    tdeletes: Vec<TDelete>,
) -> (Vec<TDelete>, Result<()>) {
    let arguments = DeleteMultipleArgs { table: table.bytes(), tdeletes };
    let sent = gateways.call(call, "deleteMultiple", &arguments, read_list::<TDelete>).await;
    (arguments.tdeletes, sent.map(|_| ()))
}

/// Writes one row if a cell has this value; an empty one stands for an absent cell too.
pub(crate) async fn check_and_mutate(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    (checked, value): (CellName, Vec<u8>),
    write: RowWrite,
) -> Result<bool> {
    let arguments = CheckAndMutateArgs {
        table: table.bytes(),
        row: write.row.clone(),
        family: checked.family,
        qualifier: checked.qualifier,
        compare_op: EQUAL,
        value: Some(value),
        row_mutations: mutations(write),
    };
    gateways.call(call, "checkAndMutate", &arguments, read_bool).await
}

pub(crate) async fn increment(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    row: Vec<u8>,
    deltas: Vec<(CellName, i64)>,
) -> Result<()> {
    let column =
        |(name, amount): (CellName, i64)| TColumnIncrement { family: name.family, qualifier: name.qualifier, amount };
    let columns = deltas.into_iter().map(column).collect();
    let tincrement = TIncrement { row, columns, return_results: Some(false) };
    let arguments = IncrementArgs { table: table.bytes(), tincrement };
    gateways.call(call, "increment", &arguments, read_optional::<TResult>).await.map(|_| ())
}

pub(crate) async fn regions(gateways: &Gateways, call: &Call, table: &TableName) -> Result<Vec<Region>> {
    let arguments = TableArgs { table: table.bytes() };
    let locations = gateways.call(call, "getAllRegionLocations", &arguments, read_list::<THRegionLocation>).await?;
    let region = |location: THRegionLocation| Region {
        start: location.region_info.start_key.unwrap_or_default(),
        end: location.region_info.end_key.unwrap_or_default(),
        host: location.server_name.host_name,
        id: location.region_info.region_id,
    };
    Ok(locations.into_iter().map(region).collect())
}

pub(crate) async fn create_table(gateways: &Gateways, call: &Call, table: &TableName, new: NewTable) -> Result<()> {
    let family = |name: Vec<u8>| TColumnFamilyDescriptor {
        name,
        compression_type: Some(compression(new.compression)),
        data_block_encoding: Some(encoding(new.encoding)),
        max_versions: Some(1),
    };
    let desc = TTableDescriptor {
        table_name: name(table),
        columns: Some(new.families.into_iter().map(family).collect()),
        attributes: Some(new.attributes.into_iter().collect()),
    };
    let split_keys = (!new.splits.is_empty()).then_some(new.splits);
    gateways.call(call, "createTable", &CreateTableArgs { desc, split_keys }, read_nothing).await
}

/// The families and the attributes of a table.
pub(crate) async fn describe(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
) -> Result<(Vec<Vec<u8>>, BTreeMap<Vec<u8>, Vec<u8>>)> {
    let arguments = TableNameArgs { table_name: name(table) };
    let live = gateways.call(call, "getTableDescriptor", &arguments, read_struct::<TTableDescriptor>).await?;
    let families = live.columns.unwrap_or_default().into_iter().map(|family| family.name).collect();
    Ok((families, live.attributes.unwrap_or_default()))
}

pub(crate) async fn disable(gateways: &Gateways, call: &Call, table: &TableName) -> Result<()> {
    gateways.call(call, "disableTable", &TableNameArgs { table_name: name(table) }, read_nothing).await
}

pub(crate) async fn delete_table(gateways: &Gateways, call: &Call, table: &TableName) -> Result<()> {
    gateways.call(call, "deleteTable", &TableNameArgs { table_name: name(table) }, read_nothing).await
}

/// Removes all rows of a disabled table and enables it.
pub(crate) async fn truncate(gateways: &Gateways, call: &Call, table: &TableName) -> Result<()> {
    let arguments = TruncateTableArgs { table_name: name(table), preserve_splits: true };
    gateways.call(call, "truncateTable", &arguments, read_nothing).await
}

pub(crate) async fn create_namespace(gateways: &Gateways, call: &Call, namespace: &str) -> Result<()> {
    let namespace_desc = TNamespaceDescriptor { name: namespace.to_owned() };
    gateways.call(call, "createNamespace", &CreateNamespaceArgs { namespace_desc }, read_nothing).await
}

pub(crate) async fn namespace(gateways: &Gateways, call: &Call, namespace: &str) -> Result<()> {
    let arguments = GetNamespaceDescriptorArgs { name: namespace.to_owned() };
    let found = gateways.call(call, "getNamespaceDescriptor", &arguments, read_struct::<TNamespaceDescriptor>).await;
    found.map(|_| ())
}

/// Looks whether the gateway answers.
pub(super) async fn greet(gateways: &Gateways, call: &Call) -> Result<()> {
    namespace(gateways, call, "default").await
}

fn name(table: &TableName) -> TTableName {
    TTableName { ns: Some(table.namespace.as_bytes().to_vec()), qualifier: table.name.as_bytes().to_vec() }
}

fn row_cells(result: TResult) -> Option<RowCells> {
    let cell = |cell: TColumnValue| StoredCell {
        name: CellName { family: cell.family, qualifier: cell.qualifier },
        value: cell.value,
        timestamp: cell.timestamp.unwrap_or_default(),
    };
    let cells: Vec<StoredCell> = result.column_values.into_iter().map(cell).collect();
    result.row.filter(|_| !cells.is_empty()).map(|row| RowCells { row, cells })
}

fn mutations(write: RowWrite) -> TRowMutations {
    let mutation = |step| match step {
        RowStep::Put { cells, timestamp, ttl } => TMutation::Put(put(write.row.clone(), cells, timestamp, ttl)),
        RowStep::DeleteCells { cells, timestamp } => {
            TMutation::DeleteSingle(delete(write.row.clone(), Some(cells), timestamp))
        }
        RowStep::DeleteRow { timestamp } => TMutation::DeleteSingle(delete(write.row.clone(), None, timestamp)),
    };
    let mutations = write.steps.into_iter().map(mutation).collect();
    TRowMutations { row: write.row, mutations }
}

/// A put of cells at this time.
pub(crate) fn put(row: Vec<u8>, cells: Vec<(CellName, Vec<u8>)>, timestamp: i64, ttl: Option<i64>) -> TPut {
    let cell = |(name, value): (CellName, Vec<u8>)| TColumnValue {
        family: name.family,
        qualifier: name.qualifier,
        value,
        timestamp: None,
    };
    let attributes = ttl.map(|ttl| BTreeMap::from([(TTL.to_vec(), ttl.to_be_bytes().to_vec())]));
    let column_values = cells.into_iter().map(cell).collect();
    TPut { row, column_values, timestamp: Some(timestamp), attributes }
}

/// A delete of cells, or of the whole row, up to this time. It never carries a time to live: what it hides would come back.
pub(crate) fn delete(row: Vec<u8>, cells: Option<Vec<CellName>>, timestamp: i64) -> TDelete {
    let column =
        |name: CellName| TColumn { family: name.family, qualifier: Some(name.qualifier), timestamp: Some(timestamp) };
    let columns = cells.map(|cells| cells.into_iter().map(column).collect());
    TDelete { row, columns, timestamp: Some(timestamp), delete_type: DELETE_COLUMNS }
}

/// By the numbers of `TCompressionAlgorithm`.
fn compression(compression: Compression) -> i32 {
    match compression {
        Compression::Gz => 1,
        Compression::Snappy => 3,
        Compression::Lz4 => 4,
        Compression::Zstd => 6,
        _ => 2,
    }
}

/// By the numbers of `TDataBlockEncoding`.
fn encoding(encoding: BlockEncoding) -> i32 {
    match encoding {
        BlockEncoding::Prefix => 2,
        BlockEncoding::Diff => 3,
        BlockEncoding::FastDiff => 4,
        BlockEncoding::RowIndexV1 => 7,
        _ => 0,
    }
}
