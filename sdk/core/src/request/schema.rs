//! What is done to the schema.

use std::sync::Arc;

use crate::model::TableSpec;

/// A change or description of the schema.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Schema {
    /// Makes the keyspace or namespace that the client works in. Nothing to do where the backend has none.
    CreateNamespace {
        /// How many copies of the data there are, and where.
        replication: Replication,
        /// Whether it is no error if it exists.
        if_absent: bool,
    },
    /// Makes a table.
    Create {
        /// The table.
        table: Arc<TableSpec>,
        /// Whether it is no error if a table of that name exists; its columns are not compared.
        if_absent: bool,
    },
    /// Removes a table and its rows.
    Drop {
        /// The table's name.
        name: Arc<str>,
        /// Whether it is no error if there is none.
        if_present: bool,
    },
    /// Removes every row of a table.
    Truncate {
        /// The table's name.
        name: Arc<str>,
    },
    /// Tells a table's columns. Answered by [`Response::Table`](crate::Response::Table), `None` where there is no such table.
    Describe {
        /// The table's name.
        name: Arc<str>,
    },
}

impl Schema {
    /// Its name.
    pub fn operation(&self) -> &'static str {
        match self {
            Self::CreateNamespace { .. } => "create_namespace",
            Self::Create { .. } => "create_table",
            Self::Drop { .. } => "drop_table",
            Self::Truncate { .. } => "truncate",
            Self::Describe { .. } => "describe",
        }
    }

    /// The table's name, where there is one.
    pub fn table(&self) -> Option<Arc<str>> {
        match self {
            Self::CreateNamespace { .. } => None,
            Self::Create { table, .. } => Some(Arc::clone(table.name())),
            Self::Drop { name, .. } | Self::Truncate { name } | Self::Describe { name } => Some(Arc::clone(name)),
        }
    }

    /// Whether it may be sent again when its outcome is unknown.
    pub fn is_idempotent(&self) -> bool {
        match self {
            Self::CreateNamespace { if_absent, .. } | Self::Create { if_absent, .. } => *if_absent,
            Self::Drop { if_present, .. } => *if_present,
            Self::Truncate { .. } => false,
            Self::Describe { .. } => true,
        }
    }
}

/// How many copies of the data there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replication {
    /// So many, without regard to datacenters.
    Simple(u32),
    /// So many in each named datacenter.
    PerDatacenter(Vec<(String, u32)>),
}

impl Default for Replication {
    /// One copy: for a single node.
    fn default() -> Self {
        Self::Simple(1)
    }
}
