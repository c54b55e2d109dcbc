// What Peristyle says to an HBase Thrift 1 gateway.
//
// Only the messages and fields in use. Names and field numbers are the wire's, so they can't be changed. A call's arguments
// are a struct of their own here (`…Args`): the calls are made by the connection, so that no blocking client is generated.
//
// The Rust in src/wire/hbase1.rs is generated; src/wire/mod.rs says how.

namespace rs hbase1

struct TCell {
  1: required binary value,
  2: required i64 timestamp
}

struct ColumnDescriptor {
  1: required binary name,
  2: required i32 maxVersions,
  3: required string compression,
  5: required string bloomFilterType,
  8: required bool blockCacheEnabled
}

struct TRegionInfo {
  1: optional binary startKey,
  2: optional binary endKey,
  3: optional i64 id,
  6: optional binary serverName,
  7: optional i32 port
}

// The column is `family:qualifier`.
struct Mutation {
  1: required bool isDelete,
  2: required binary column,
  3: optional binary value,
  4: required bool writeToWAL
}

struct TRowResult {
  1: required binary row,
  2: optional map<binary, TCell> columns
}

struct TScan {
  1: optional binary startRow,
  2: optional binary stopRow,
  5: optional i32 caching,
  9: optional bool reversed
}

// The arguments of the calls.

struct GetRowArgs {
  1: required binary tableName,
  2: required binary row,
  3: required map<binary, binary> attributes
}

struct GetRowsArgs {
  1: required binary tableName,
  2: required list<binary> rows,
  3: required map<binary, binary> attributes
}

struct MutateRowTsArgs {
  1: required binary tableName,
  2: required binary row,
  3: required list<Mutation> mutations,
  4: required i64 timestamp,
  5: required map<binary, binary> attributes
}

struct BatchMutation {
  1: required binary row,
  2: required list<Mutation> mutations
}

struct MutateRowsTsArgs {
  1: required binary tableName,
  2: required list<BatchMutation> rowBatches,
  3: required i64 timestamp,
  4: required map<binary, binary> attributes
}

struct DeleteAllRowTsArgs {
  1: required binary tableName,
  2: required binary row,
  3: required i64 timestamp,
  4: required map<binary, binary> attributes
}

struct AtomicIncrementArgs {
  1: required binary tableName,
  2: required binary row,
  3: required binary column,
  4: required i64 value
}

struct ScannerOpenWithScanArgs {
  1: required binary tableName,
  2: required TScan scan,
  3: required map<binary, binary> attributes
}

struct ScannerGetListArgs {
  1: required i32 id,
  2: required i32 nbRows
}

struct ScannerCloseArgs {
  1: required i32 id
}

// disableTable, deleteTable, getTableRegions, getColumnDescriptors.
struct TableNameArgs {
  1: required binary tableName
}

struct CreateTableArgs {
  1: required binary tableName,
  2: required list<ColumnDescriptor> columnFamilies
}

// getTableNames.
struct NoArgs {
}
