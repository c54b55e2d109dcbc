//! The calls of Thrift 2.

use std::collections::BTreeMap;

use peristyle_core::model::{BlockEncoding, Compression};
use peristyle_core::{Error, Result};

use super::hbase2::{
    CreateNamespaceArgs, CreateTableArgs, GetNamespaceDescriptorArgs, GetScannerResultsArgs, IncrementArgs,
    TColumnFamilyDescriptor, TColumnIncrement, THRegionLocation, TIncrement, TNamespaceDescriptor, TResult, TScan,
    TTableDescriptor, TTableName, TableArgs, TableNameArgs, TruncateTableArgs,
};
use super::rows2::{CheckAndMutate, Get, GetMultiple, Multiple, MutateRow, Single, read_row};
use super::{CellName, NewTable, Region, RowCells, RowWrite, ScanSpan, Server, StepOfRow, TableName};
use crate::connection::{
    Call, Gateways, Input, Kind, read_bool, read_list, read_nothing, read_optional, read_struct, read_with,
};

pub(crate) async fn get(gateways: &Gateways, call: &Call, table: &TableName, row: &[u8]) -> Result<Option<RowCells>> {
    let arguments = Get { table: &table.bytes(), row };
    gateways.call(call, "get", &arguments, |input| read_with(input, read_row)).await
}

/// The rows in the order asked for; those that aren't there are `None`.
pub(crate) async fn get_multiple(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    rows: &[&[u8]],
) -> Result<Vec<Option<RowCells>>> {
    let arguments = GetMultiple { table: &table.bytes(), rows };
    gateways.call(call, "getMultiple", &arguments, |input| read_with(input, |input| input.list(read_row))).await
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
    let read = |input: Option<&mut Input<'_>>| read_with(input, |input| input.list(read_row));
    let rows = gateways.call(call, "getScannerResults", &arguments, read).await?;
    Ok(rows.into_iter().flatten().collect())
}

/// Writes one row in one atomic unit.
pub(crate) async fn write(gateways: &Gateways, call: &Call, table: &TableName, write: &RowWrite<'_>) -> Result<()> {
    let (table, row) = (&*table.bytes(), write.row);
    match write.steps.as_slice() {
        [] => Err(Error::invalid("a write of nothing; give a column")),
        [step] => {
            let method = if step.is_put() { "put" } else { "deleteSingle" };
            gateways.call(call, method, &Single { table, row, step }, read_nothing).await
        }
        _ => gateways.call(call, "mutateRow", &MutateRow { table, write }, read_nothing).await,
    }
}

/// Puts into many rows, or deletes in many.
pub(crate) async fn write_multiple(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    steps: &[StepOfRow<'_>],
) -> Result<()> {
    let arguments = Multiple { table: &table.bytes(), steps };
    if steps.first().is_some_and(|first| first.step.is_put()) {
        return gateways.call(call, "putMultiple", &arguments, read_nothing).await;
    }
    let read = |input: Option<&mut Input<'_>>| read_with(input, |input| input.skip(Kind::List));
    gateways.call(call, "deleteMultiple", &arguments, read).await
}

/// Writes one row if a cell has this value; an empty one stands for an absent cell too.
pub(crate) async fn check_and_mutate(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    (checked, value): (&CellName, &[u8]),
    write: &RowWrite<'_>,
) -> Result<bool> {
    let arguments = CheckAndMutate { table: &table.bytes(), checked, value, write };
    gateways.call(call, "checkAndMutate", &arguments, read_bool).await
}

pub(crate) async fn increment(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    row: Vec<u8>,
    deltas: Vec<(CellName, i64)>,
) -> Result<()> {
    let column = |(name, amount): (CellName, i64)| TColumnIncrement {
        family: name.family.into(),
        qualifier: name.qualifier.into(),
        amount,
    };
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
        server: Server {
            host: location.server_name.host_name,
            port: location.server_name.port.and_then(|port| port.try_into().ok()).unwrap_or(0),
        },
        id: location.region_info.region_id,
    };
    Ok(locations.into_iter().map(region).collect())
}

pub(crate) async fn create_table(gateways: &Gateways, call: &Call, table: &TableName, new: NewTable) -> Result<()> {
    let family = |family: Family| TColumnFamilyDescriptor {
        name: family.name,
        compression_type: Some(family.compression),
        data_block_encoding: Some(family.encoding),
        max_versions: Some(family.versions),
    };
    let desc = TTableDescriptor {
        table_name: name(table),
        columns: Some(families(&new).into_iter().map(family).collect()),
        attributes: Some(new.attributes.into_iter().collect()),
    };
    let split_keys = (!new.splits.is_empty()).then_some(new.splits);
    gateways.call(call, "createTable", &CreateTableArgs { desc, split_keys }, read_nothing).await
}

/// A table as it is.
#[derive(Debug)]
pub(crate) struct LiveTable {
    pub(crate) families: Vec<Family>,
    pub(crate) attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A family by the numbers of the interface.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Family {
    pub(crate) name: Vec<u8>,
    compression: i32,
    encoding: i32,
    versions: i32,
}

/// The families of a new table, in the order of their names.
fn families(new: &NewTable) -> Vec<Family> {
    let family = |name: &Vec<u8>| Family {
        name: name.clone(),
        compression: compression(new.compression),
        encoding: encoding(new.encoding),
        versions: 1,
    };
    new.families.iter().map(family).collect()
}

/// The families and the attributes of a table.
pub(crate) async fn describe(gateways: &Gateways, call: &Call, table: &TableName) -> Result<LiveTable> {
    let arguments = TableNameArgs { table_name: name(table) };
    let live = gateways.call(call, "getTableDescriptor", &arguments, read_struct::<TTableDescriptor>).await?;
    let family = |family: TColumnFamilyDescriptor| Family {
        name: family.name,
        compression: family.compression_type.unwrap_or_default(),
        encoding: family.data_block_encoding.unwrap_or_default(),
        versions: family.max_versions.unwrap_or_default(),
    };
    let families = live.columns.unwrap_or_default().into_iter().map(family).collect();
    Ok(LiveTable { families, attributes: live.attributes.unwrap_or_default() })
}

/// What a new table has that wasn't asked for, in words.
pub(crate) async fn differences(
    gateways: &Gateways,
    call: &Call,
    table: &TableName,
    new: &NewTable,
) -> Result<Option<String>> {
    let mut live = describe(gateways, call, table).await?;
    live.families.sort_by(|a, b| a.name.cmp(&b.name));
    let asked = families(new);
    if live.families != asked {
        return Ok(Some(format!("families: {:?} instead of {asked:?}", live.families)));
    }
    let garbled = new.attributes.iter().find(|(name, value)| live.attributes.get(name) != Some(value));
    Ok(garbled.map(|(name, _)| format!("attributes: {}", String::from_utf8_lossy(name))))
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
