//! What is said to a gateway: the calls of each interface, and rows and cells as both of them know them.
//!
//! The messages of [`hbase2`] and [`hbase1`] are generated from the folder `idl` by the Thrift compiler 0.17:
//!
//! ```sh
//! thrift --gen rs -out backends/hbase/src/wire backends/hbase/idl/hbase2.thrift
//! thrift --gen rs -out backends/hbase/src/wire backends/hbase/idl/hbase1.thrift
//! ```

#[rustfmt::skip]
#[allow(dead_code, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated")]
#[allow(clippy::expect_used, clippy::panic, reason = "generated; each behind a check of its own")]
mod hbase1;
#[rustfmt::skip]
#[allow(dead_code, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated")]
#[allow(clippy::expect_used, clippy::panic, reason = "generated; each behind a check of its own")]
pub(crate) mod hbase2;

pub(crate) mod calls;
mod thrift1;
pub(crate) mod thrift2;

use std::sync::Arc;

use peristyle_core::model::{BlockEncoding, Compression};

/// The attribute of a put that limits its life: milliseconds from its timestamp, in 8 bytes.
const TTL: &[u8] = b"_ttl";

/// A cell as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredCell {
    pub(crate) name: CellName,
    pub(crate) value: Vec<u8>,
    pub(crate) timestamp: i64,
}

/// A row as it is stored: its cells by family and qualifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowCells {
    pub(crate) row: Vec<u8>,
    pub(crate) cells: Vec<StoredCell>,
}

/// A place in a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CellName {
    pub(crate) family: Vec<u8>,
    pub(crate) qualifier: Vec<u8>,
}

/// Something done to a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowStep {
    /// Puts cells at this time. `ttl` is in milliseconds from that time, and may be below 0.
    Put { cells: Vec<(CellName, Vec<u8>)>, timestamp: i64, ttl: Option<i64> },
    /// Deletes all that was put into these cells up to this time.
    DeleteCells { cells: Vec<CellName>, timestamp: i64 },
    /// Deletes all that was put into the row up to this time.
    DeleteRow { timestamp: i64 },
}

/// What is done to one row, in one atomic unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowWrite {
    pub(crate) row: Vec<u8>,
    pub(crate) steps: Vec<RowStep>,
}

/// Which rows a scan returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScanSpan {
    /// Where it starts, included; the upper end of a reverse scan. Empty is the end of the table.
    pub(crate) start: Vec<u8>,
    /// Where it stops, excluded; empty is the end of the table.
    pub(crate) stop: Vec<u8>,
    pub(crate) reverse: bool,
    /// The most rows.
    pub(crate) limit: usize,
}

/// A region: its keys from `start`, below `end`, where empty is open; and the host that serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Vec<u8>,
    pub(crate) host: String,
    pub(crate) id: i64,
}

/// How a new table is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewTable {
    pub(crate) families: Vec<Vec<u8>>,
    pub(crate) compression: Compression,
    pub(crate) encoding: BlockEncoding,
    pub(crate) attributes: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) splits: Vec<Vec<u8>>,
}

/// A table's full name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TableName {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl TableName {
    /// As calls take it: `namespace:name`, and the name alone in the default namespace.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match &*self.namespace {
            "default" => self.name.as_bytes().to_vec(),
            namespace => [namespace.as_bytes(), b":", self.name.as_bytes()].concat(),
        }
    }
}
