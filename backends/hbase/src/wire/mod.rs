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
mod few;
mod rows1;
mod rows2;
#[cfg(test)]
mod tests;
mod thrift1;
pub(crate) mod thrift2;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use peristyle_core::model::{BlockEncoding, Compression, Value};

pub(crate) use self::few::Few;
use crate::connection::{Fields, Part};

/// The attribute of a put that limits its life: milliseconds from its timestamp, in 8 bytes.
const TTL: &[u8] = b"_ttl";

/// A row as it is stored. It shares the buffer of the reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowCells {
    reply: Bytes,
    row: Part,
    cells: Few<CellParts>,
}

/// A cell of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CellParts {
    family: Part,
    qualifier: Part,
    value: Part,
    timestamp: i64,
}

/// A cell as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredCell<'a> {
    pub(crate) name: NameRef<'a>,
    pub(crate) value: &'a [u8],
    pub(crate) timestamp: i64,
}

/// The name of a cell that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NameRef<'a> {
    pub(crate) family: &'a [u8],
    pub(crate) qualifier: &'a [u8],
}

impl RowCells {
    /// The row's key.
    pub(crate) fn row(&self) -> &[u8] {
        self.row.of(&self.reply)
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = StoredCell<'_>> {
        self.cells.iter().map(|cell| StoredCell {
            name: NameRef { family: cell.family.of(&self.reply), qualifier: cell.qualifier.of(&self.reply) },
            value: cell.value.of(&self.reply),
            timestamp: cell.timestamp,
        })
    }

    /// The value of the cell in this place.
    pub(crate) fn value_of(&self, name: &CellName) -> Option<&[u8]> {
        self.cells().find(|cell| name.is(cell.name)).map(|cell| cell.value)
    }
}

/// A place in a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct CellName {
    pub(crate) family: Bytes,
    pub(crate) qualifier: Bytes,
}

impl CellName {
    fn of(&self) -> NameRef<'_> {
        NameRef { family: &self.family, qualifier: &self.qualifier }
    }

    pub(crate) fn is(&self, other: NameRef<'_>) -> bool {
        // Names differ in their qualifiers, mostly in the length already.
        *self.qualifier == *other.qualifier && *self.family == *other.family
    }

    /// By family, and then by qualifier.
    pub(crate) fn order(&self, other: NameRef<'_>) -> Ordering {
        self.of().cmp(&other)
    }
}

/// Something done to a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RowStep<'a> {
    /// Puts cells at this time. `ttl` is in milliseconds from that time, and may be below 0.
    Put { cells: PutCells<'a>, timestamp: i64, ttl: Option<i64> },
    /// Deletes all that was put into these cells up to this time.
    DeleteCells { cells: Vec<&'a CellName>, timestamp: i64 },
    /// Deletes all that was put into the row up to this time.
    DeleteRow { timestamp: i64 },
}

/// Cells and their values.
pub(crate) type PutCells<'a> = Few<(&'a CellName, CellValue<'a>)>;

/// What is put into a cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CellValue<'a> {
    /// The serialised bytes of a value.
    Of(&'a Value),
    /// These bytes.
    Bytes(Cow<'a, [u8]>),
}

impl CellValue<'_> {
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Of(value) => value.size(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    fn write(&self, fields: &mut Fields<'_, '_>, id: i16) {
        match self {
            Self::Of(value) => fields.value(id, value),
            Self::Bytes(bytes) => fields.bytes(id, bytes),
        }
    }
}

impl RowStep<'_> {
    pub(crate) fn is_put(&self) -> bool {
        matches!(self, Self::Put { .. })
    }

    /// When it happens.
    pub(crate) fn timestamp(&self) -> i64 {
        match self {
            Self::Put { timestamp, .. } | Self::DeleteCells { timestamp, .. } | Self::DeleteRow { timestamp } => {
                *timestamp
            }
        }
    }

    /// How long what it puts lives, see [`Put`](Self::Put).
    pub(crate) fn ttl(&self) -> Option<i64> {
        match self {
            Self::Put { ttl, .. } => *ttl,
            Self::DeleteCells { .. } | Self::DeleteRow { .. } => None,
        }
    }

    /// Its bytes on the wire, roughly and at most.
    pub(crate) fn size(&self) -> usize {
        let name = |name: &CellName| name.family.len() + name.qualifier.len() + 40;
        80 + match self {
            Self::Put { cells, .. } => cells.iter().map(|(cell, value)| name(cell) + value.size()).sum(),
            Self::DeleteCells { cells, .. } => cells.iter().map(|cell| name(cell)).sum(),
            Self::DeleteRow { .. } => 0,
        }
    }
}

/// What is done to one row, in one atomic unit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowWrite<'a> {
    pub(crate) row: &'a [u8],
    pub(crate) steps: Vec<RowStep<'a>>,
}

/// One thing done to one row, in a batch of many.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepOfRow<'a> {
    pub(crate) row: &'a [u8],
    pub(crate) step: RowStep<'a>,
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

/// A region: its keys from `start`, below `end`, where empty is open; and the server that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Vec<u8>,
    pub(crate) server: Server,
    pub(crate) id: i64,
}

/// A region server; its port is 0 where that isn't told.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// How a new table is made. Its families are in the order of their names.
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
