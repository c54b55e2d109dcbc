//! What is read.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::model::{Key, Value};

/// A read of one table.
#[derive(Debug, Clone, PartialEq)]
pub enum Read {
    /// One row by its full primary key. Answered by [`Response::Row`](crate::Response::Row).
    Get {
        /// The full primary key.
        key: Key,
        /// Which columns.
        columns: Projection,
    },
    /// Many rows by their full primary keys, which may repeat. Answered by [`Response::Rows`](crate::Response::Rows), in the
    /// order of the keys.
    GetAll {
        /// The full primary keys.
        keys: Vec<Key>,
        /// Which columns.
        columns: Projection,
    },
    /// A page of one partition. Answered by [`Response::Page`](crate::Response::Page).
    Query(Box<Query>),
    /// A page of the table. Answered by [`Response::Page`](crate::Response::Page).
    Scan(Box<Scan>),
}

impl Read {
    /// Its name: `get`, `get_all`, `query` or `scan`.
    pub fn operation(&self) -> &'static str {
        match self {
            Self::Get { .. } => "get",
            Self::GetAll { .. } => "get_all",
            Self::Query(_) => "query",
            Self::Scan(_) => "scan",
        }
    }

    /// Which columns it reads.
    pub fn columns(&self) -> &Projection {
        match self {
            Self::Get { columns, .. } | Self::GetAll { columns, .. } => columns,
            Self::Query(query) => &query.columns,
            Self::Scan(scan) => &scan.columns,
        }
    }
}

/// Which columns a read returns. Key columns are always returned.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Projection {
    /// The indexes of the value columns, ascending; `None` is all of them. A row whose chosen columns are all absent is
    /// returned without them, as long as the row exists.
    pub columns: Option<Arc<[usize]>>,
    /// Whether each column's write time is returned.
    pub write_time: bool,
    /// Whether each column's time to live is returned.
    pub ttl: bool,
}

impl Projection {
    /// Whether a value column is returned.
    pub fn includes(&self, column: usize) -> bool {
        self.columns.as_ref().is_none_or(|columns| columns.contains(&column))
    }
}

/// Rows of one partition in clustering order: those that equal `prefix` in the first clustering columns and lie within
/// `lower` and `upper` in the next one.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The partition key.
    pub partition: Key,
    /// Values that the first clustering columns equal.
    pub prefix: Vec<Value>,
    /// The lower bound of the next clustering column, by value, whatever its order.
    pub lower: Bound<Value>,
    /// The upper bound of the next clustering column, by value, whatever its order.
    pub upper: Bound<Value>,
    /// Whether the last row comes first.
    pub reverse: bool,
    /// The full primary key of the last row already seen; the page starts behind it, in the direction of the query.
    pub after: Option<Key>,
    /// The most rows in this page; above 0.
    pub limit: usize,
    /// Which columns.
    pub columns: Projection,
}

/// A page of a whole table or of one of its ranges.
#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    /// Which part of the table.
    pub range: ScanRange,
    /// In which order the rows come.
    pub order: ScanOrder,
    /// The full primary key of the last row already seen; the page starts behind it.
    pub after: Option<Key>,
    /// The most rows in this page; above 0.
    pub limit: usize,
    /// Which columns.
    pub columns: Projection,
}

/// A part of a table that can be scanned on its own; [`Topology::split`](crate::Topology::split) gives them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ScanRange {
    /// The whole table.
    All,
    /// Partitions by token: above `after`, up to and including `to`. `after` = `i64::MIN` starts at the first token.
    Tokens {
        /// Excluded.
        after: i64,
        /// Included.
        to: i64,
    },
    /// Rows by encoded key: from `from`, below `to`.
    Keys {
        /// Included.
        from: Bytes,
        /// Excluded; `None` is the end of the table.
        to: Option<Bytes>,
    },
}

/// In which order a scan returns rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ScanOrder {
    /// As it is cheapest; the rows of a partition still come together, in clustering order.
    #[default]
    Any,
    /// By the typed primary key; needs [`Capability::OrderedScan`](crate::Capability::OrderedScan).
    Key,
}
