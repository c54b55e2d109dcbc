//! What kind of statement it is: everything but the values.

use super::columns::ColumnSet;

/// One statement of a table, without its values. Two requests of the same shape share a prepared statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// `UPDATE … SET`: leaves no row marker. Binds timestamp, TTL, columns, key.
    Put { columns: ColumnSet, ttl: bool },
    /// `INSERT` of a key alone: leaves a row marker. Binds key, timestamp, TTL.
    Marker { ttl: bool },
    /// `DELETE` of columns. Binds timestamp, key.
    DeleteColumns { columns: ColumnSet },
    /// `DELETE` of a row. Binds timestamp, key.
    DeleteRow,
    /// `DELETE` of a partition. Binds timestamp, partition key.
    DeletePartition,
    /// `UPDATE … SET c = c + ?`. Binds deltas, key.
    Increment { columns: ColumnSet },
    /// `INSERT … IF NOT EXISTS`. Binds key, columns, TTL.
    PutIfAbsent { columns: ColumnSet, ttl: bool },
    /// `UPDATE … IF column = ?`. Binds TTL, columns, key, the expected value.
    PutIfEqual { columns: ColumnSet, ttl: bool, column: usize },
    /// `UPDATE … IF column = null`. Binds TTL, columns, key.
    PutIfColumnAbsent { columns: ColumnSet, ttl: bool, column: usize },
    /// One row. Binds key.
    Get(Selection),
    /// Rows of a table whose key is one column. Binds the list of keys.
    GetMany(Selection),
    /// Rows of one partition. Binds partition key, equal clustering values, bounds, limit.
    Query(Selection, Slice),
    /// Rows of partitions in token order. Binds the start, the end, the limit.
    Scan { selection: Selection, start: ScanStart, end: bool },
    /// Partition keys that share a token. Binds the partition key that they share it with.
    SameToken,
}

/// What a read returns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Selection {
    /// With the primary key, which comes first.
    pub(crate) key: bool,
    pub(crate) columns: ColumnSet,
    pub(crate) write_time: bool,
    pub(crate) ttl: bool,
}

/// A contiguous part of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Slice {
    /// How many clustering columns equal a value.
    pub(crate) equal: usize,
    /// The bounds of the next one.
    pub(crate) lower: Edge,
    pub(crate) upper: Edge,
    pub(crate) reverse: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Edge {
    Open,
    Included,
    Excluded,
}

/// Where a scan starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ScanStart {
    /// At the first token.
    First,
    /// Behind a token.
    AfterToken,
    /// Behind the token of a partition key.
    AfterKey,
}
