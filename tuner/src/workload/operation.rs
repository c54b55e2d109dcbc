//! The operations of a mix, and how each chooses its rows.

use std::num::NonZeroU64;

use serde::Deserialize;

/// One operation of the mix.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operation {
    /// What is done.
    pub(crate) kind: Kind,
    /// Its share of the requests, relative to the other weights.
    pub(crate) weight: u32,
    /// Which rows.
    pub(crate) keys: Keys,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Writes rows, as many in a request as the point says.
    Put,
    /// Reads rows by full key, as many in a request as the point says.
    Get,
    /// Reads a range of one partition.
    Query {
        /// Where it starts.
        start: QueryStart,
        /// Where it ends, behind the start, in units of the clustering column; excluded.
        span: Option<NonZeroU64>,
        /// The most rows.
        limit: usize,
        /// Whether the last row comes first.
        reverse: bool,
    },
}

impl Kind {
    /// Its name in results.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Query { .. } => "query",
        }
    }
}

/// The name of an operation as results have it; `None` where there is no such operation.
pub(crate) fn operation_name(name: &str) -> Option<&'static str> {
    ["put", "get", "query"].into_iter().find(|known| *known == name)
}

/// Where a range starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum QueryStart {
    /// At the beginning of the partition.
    #[default]
    Partition,
    /// At the chosen row.
    Row,
}

/// How the rows of an operation are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Any row that was loaded, with equal chance.
    Uniform,
    /// New rows, one after the other, over all threads.
    Sequential,
    /// Loaded rows, a few of them much more often than the rest; which ones has nothing to do with their order.
    Zipfian,
    /// Loaded rows, the last ones much more often than the first.
    Latest,
    /// Loaded rows: a fifth of them gets four fifths of the requests.
    Hotspot,
    /// One row after the other in a range of the thread's own, from the start again at its end.
    PerThread(NonZeroU64),
}
