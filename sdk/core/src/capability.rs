//! What a backend can do, as data that a program can read before it relies on it.

use std::fmt;
use std::time::Duration;

/// Something that not every backend can do. A request that needs one which is missing is refused with
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) before any I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum Capability {
    /// Scans of the whole table in key order.
    OrderedScan,
    /// Deletes of a whole partition in one operation.
    PartitionDelete,
    /// Reads that return each column's write time.
    ReadWriteTime,
    /// Reads that return each column's remaining time to live.
    ReadTtl,
    /// A time to live per write.
    PerWriteTtl,
    /// Counter tables.
    Counters,
    /// Conditional writes.
    CompareAndPut,
    /// Replacing a row in one atomic unit.
    AtomicReplace,
    /// A row that exists with no columns, as CQL's `INSERT` of a key alone leaves it.
    RowMarker,
    /// A consistency level per request.
    ConsistencyLevel,
    /// A live schema that tells the table's columns.
    Introspection,
    /// Removing every row of a table at once.
    Truncate,
    /// A scan page that sees one instant of the table.
    SnapshotPage,
    /// CRC32-salted row keys.
    Salt,
}

impl Capability {
    /// Every capability.
    pub const ALL: [Self; 14] = [
        Self::OrderedScan,
        Self::PartitionDelete,
        Self::ReadWriteTime,
        Self::ReadTtl,
        Self::PerWriteTtl,
        Self::Counters,
        Self::CompareAndPut,
        Self::AtomicReplace,
        Self::RowMarker,
        Self::ConsistencyLevel,
        Self::Introspection,
        Self::Truncate,
        Self::SnapshotPage,
        Self::Salt,
    ];

    /// What to do instead, in a few words.
    pub fn hint(self) -> &'static str {
        match self {
            Self::OrderedScan => "scan in any order, or query one partition",
            Self::PartitionDelete => "delete the rows one by one",
            Self::ReadWriteTime | Self::ReadTtl => "read the values alone",
            Self::PerWriteTtl => "set the table's default time to live",
            Self::Counters => "use another backend for counters",
            Self::CompareAndPut => "use another backend for conditional writes",
            Self::AtomicReplace => "delete and put in two operations",
            Self::RowMarker => "give at least one value column",
            Self::ConsistencyLevel => "leave the consistency level out",
            Self::Introspection => "declare the table with a TableSpec",
            Self::Truncate => "drop and create the table",
            Self::SnapshotPage => "read without a snapshot",
            Self::Salt => "declare the table without a salt",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OrderedScan => "key-ordered scans",
            Self::PartitionDelete => "partition deletes",
            Self::ReadWriteTime => "write times on reads",
            Self::ReadTtl => "times to live on reads",
            Self::PerWriteTtl => "time to live per write",
            Self::Counters => "counters",
            Self::CompareAndPut => "compare-and-put",
            Self::AtomicReplace => "atomic replace",
            Self::RowMarker => "rows without columns",
            Self::ConsistencyLevel => "consistency levels",
            Self::Introspection => "table introspection",
            Self::Truncate => "truncate",
            Self::SnapshotPage => "snapshot pages",
            Self::Salt => "salted keys",
        })
    }
}

/// Sizes that a backend refuses to go over. They are checked before any I/O.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest encoded partition key, in bytes.
    pub partition_key_bytes: usize,
    /// The longest encoded clustering key, in bytes.
    pub clustering_key_bytes: usize,
    /// The largest value of one column, in bytes.
    pub value_bytes: usize,
    /// The most rows in one request.
    pub batch_rows: usize,
    /// The most bytes of rows, by [`Mutation::size`](crate::request::Mutation::size), that are put together into one request:
    /// what the server takes without a warning, or the backend divides by itself. A larger row travels alone.
    pub batch_bytes: usize,
    /// The longest time to live.
    pub ttl: Duration,
}

impl Default for Limits {
    /// The strictest of the known backends, so that what passes here passes everywhere: 32 767 bytes of key, 10 MiB less
    /// 64 KiB of value, 65 535 rows and 1 MiB in a request, 20 years to live.
    fn default() -> Self {
        Self {
            partition_key_bytes: 32_767,
            clustering_key_bytes: 32_767,
            value_bytes: (10 << 20) - (64 << 10),
            batch_rows: 65_535,
            batch_bytes: 1 << 20,
            ttl: Duration::from_secs(630_720_000),
        }
    }
}

/// What one backend can do: a set of [capabilities](Capability) and its [limits](Limits).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    set: u64,
    limits: Limits,
}

impl Capabilities {
    /// Exactly these capabilities, within these limits.
    pub fn new(capabilities: impl IntoIterator<Item = Capability>, limits: Limits) -> Self {
        let set = capabilities.into_iter().fold(0, |set, capability| set | bit(capability));
        Self { set, limits }
    }

    /// With one more.
    #[must_use]
    pub fn with(mut self, capability: Capability) -> Self {
        self.set |= bit(capability);
        self
    }

    /// Whether the backend can do this.
    pub fn has(&self, capability: Capability) -> bool {
        self.set & bit(capability) != 0
    }

    /// The sizes that it refuses to go over.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What it can do, in declaration order.
    pub fn iter(&self) -> impl Iterator<Item = Capability> + '_ {
        Capability::ALL.into_iter().filter(|capability| self.has(*capability))
    }
}

fn bit(capability: Capability) -> u64 {
    1 << capability as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_it_was_given_and_nothing_else() {
        let given = [Capability::Counters, Capability::Salt];
        let capabilities = Capabilities::new(given, Limits::default());
        assert_eq!(capabilities.iter().collect::<Vec<_>>(), given);
    }
}
