//! What is asked of a backend: one [`Request`], so that a layer is written once.

mod mutation;
mod options;
mod read;
mod schema;
mod write;

use std::sync::Arc;

pub use self::mutation::{Cell, CellWrite, Mutation, Wipe};
pub use self::options::{Consistency, RequestOptions, SerialConsistency};
pub use self::read::{Projection, Query, Read, Scan, ScanOrder, ScanRange};
pub use self::schema::{Replication, Schema};
pub use self::write::{Condition, Write};
use crate::model::TableSpec;

/// One request: what to do and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What to do.
    pub action: Action,
    /// How to do it.
    pub options: RequestOptions,
}

/// What a request does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Reads rows of a table.
    Read {
        /// The table.
        table: Arc<TableSpec>,
        /// What to read.
        read: Read,
    },
    /// Writes rows of a table.
    Write {
        /// The table.
        table: Arc<TableSpec>,
        /// What to write.
        write: Write,
    },
    /// Changes or describes the schema.
    Schema(Schema),
}

impl Request {
    /// A read with default options.
    pub fn read(table: Arc<TableSpec>, read: Read) -> Self {
        Self { action: Action::Read { table, read }, options: RequestOptions::default() }
    }

    /// A write with default options.
    pub fn write(table: Arc<TableSpec>, write: Write) -> Self {
        Self { action: Action::Write { table, write }, options: RequestOptions::default() }
    }

    /// A schema request with default options.
    pub fn schema(schema: Schema) -> Self {
        Self { action: Action::Schema(schema), options: RequestOptions::default() }
    }

    /// With these options.
    #[must_use]
    pub fn with_options(mut self, options: RequestOptions) -> Self {
        self.options = options;
        self
    }

    /// The name of the operation, for errors, metrics and spans.
    pub fn operation(&self) -> &'static str {
        match &self.action {
            Action::Read { read, .. } => read.operation(),
            Action::Write { write, .. } => write.operation(),
            Action::Schema(schema) => schema.operation(),
        }
    }

    /// The name of the table, where there is one.
    pub fn table(&self) -> Option<Arc<str>> {
        match &self.action {
            Action::Read { table, .. } | Action::Write { table, .. } => Some(Arc::clone(table.name())),
            Action::Schema(schema) => schema.table(),
        }
    }

    /// How many rows it concerns: the weight for rate limits. A page counts as one.
    pub fn rows(&self) -> usize {
        match &self.action {
            Action::Read { read: Read::GetAll { keys, .. }, .. } => keys.len(),
            Action::Write { write: Write::ApplyAll(mutations), .. } => mutations.len(),
            _ => 1,
        }
    }

    /// Whether sending it twice has the effect of sending it once. Puts and deletes carry their write time, so they are;
    /// increments and conditional writes are not.
    pub fn is_idempotent(&self) -> bool {
        match &self.action {
            Action::Read { .. } => true,
            Action::Write { write, .. } => matches!(write, Write::Apply(_) | Write::ApplyAll(_)),
            Action::Schema(schema) => schema.is_idempotent(),
        }
    }
}
