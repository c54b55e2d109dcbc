// What Peristyle says to an HBase Thrift 2 gateway.
//
// Only the messages and fields in use. Names and field numbers are the wire's, so they can't be changed. A call's arguments
// are a struct of their own here (`…Args`): the calls are made by the connection, so that no blocking client is generated.
//
// The Rust in src/wire/hbase2.rs is generated; src/wire/mod.rs says how.

namespace rs hbase2

struct TColumn {
  1: required binary family,
  2: optional binary qualifier,
  3: optional i64 timestamp
}

struct TColumnValue {
  1: required binary family,
  2: required binary qualifier,
  3: required binary value,
  4: optional i64 timestamp
}

struct TColumnIncrement {
  1: required binary family,
  2: required binary qualifier,
  3: required i64 amount
}

// Without a row, there is none.
struct TResult {
  1: optional binary row,
  2: required list<TColumnValue> columnValues,
}

struct TGet {
  1: required binary row,
  2: optional list<TColumn> columns
}

struct TPut {
  1: required binary row,
  2: required list<TColumnValue> columnValues,
  3: optional i64 timestamp,
  5: optional map<binary, binary> attributes
}

// Every version up to the timestamp.
const i32 DELETE_COLUMNS = 1

struct TDelete {
  1: required binary row,
  2: optional list<TColumn> columns,
  3: optional i64 timestamp,
  4: required i32 deleteType
}

struct TIncrement {
  1: required binary row,
  2: required list<TColumnIncrement> columns,
  7: optional bool returnResults
}

struct TScan {
  1: optional binary startRow,
  2: optional binary stopRow,
  4: optional i32 caching,
  5: optional i32 maxVersions,
  11: optional bool reversed,
  15: optional i32 limit
}

union TMutation {
  1: TPut put,
  2: TDelete deleteSingle
}

struct TRowMutations {
  1: required binary row,
  2: required list<TMutation> mutations
}

struct THRegionInfo {
  1: required i64 regionId,
  2: required binary tableName,
  3: optional binary startKey,
  4: optional binary endKey
}

struct TServerName {
  1: required string hostName,
  2: optional i32 port
}

struct THRegionLocation {
  1: required TServerName serverName,
  2: required THRegionInfo regionInfo
}

const i32 EQUAL = 2

struct TTableName {
  1: optional binary ns,
  2: required binary qualifier
}

struct TColumnFamilyDescriptor {
  1: required binary name,
  6: optional i32 compressionType,
  8: optional i32 dataBlockEncoding,
  10: optional i32 maxVersions
}

struct TTableDescriptor {
  1: required TTableName tableName,
  2: optional list<TColumnFamilyDescriptor> columns,
  3: optional map<binary, binary> attributes
}

struct TNamespaceDescriptor {
  1: required string name
}

// The arguments of the calls.

struct GetArgs {
  1: required binary table,
  2: required TGet tget
}

struct GetMultipleArgs {
  1: required binary table,
  2: required list<TGet> tgets
}

struct PutArgs {
  1: required binary table,
  2: required TPut tput
}

struct PutMultipleArgs {
  1: required binary table,
  2: required list<TPut> tputs
}

struct DeleteSingleArgs {
  1: required binary table,
  2: required TDelete tdelete
}

struct DeleteMultipleArgs {
  1: required binary table,
  2: required list<TDelete> tdeletes
}

struct IncrementArgs {
  1: required binary table,
  2: required TIncrement tincrement
}

struct MutateRowArgs {
  1: required binary table,
  2: required TRowMutations trowMutations
}

struct CheckAndMutateArgs {
  1: required binary table,
  2: required binary row,
  3: required binary family,
  4: required binary qualifier,
  5: required i32 compareOp,
  6: optional binary value,
  7: required TRowMutations rowMutations
}

struct GetScannerResultsArgs {
  1: required binary table,
  2: required TScan tscan,
  3: required i32 numRows
}

// getAllRegionLocations, by the table's name.
struct TableArgs {
  1: required binary table
}

// getTableDescriptor, deleteTable, disableTable.
struct TableNameArgs {
  1: required TTableName tableName
}

struct CreateTableArgs {
  1: required TTableDescriptor desc,
  2: optional list<binary> splitKeys
}

struct TruncateTableArgs {
  1: required TTableName tableName,
  2: required bool preserveSplits
}

struct CreateNamespaceArgs {
  1: required TNamespaceDescriptor namespaceDesc
}

struct GetNamespaceDescriptorArgs {
  1: required string name
}
