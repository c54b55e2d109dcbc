//! What is done to the target: a table, how its rows are made, and a mix of operations.

mod builtin;
mod file;
mod operation;
mod random;
mod rows;
mod zipf;

use std::path::Path;
use std::sync::Arc;

use peristyle::model::TableSpec;

pub(crate) use self::builtin::BUILTIN;
pub(crate) use self::operation::{Keys, Kind, Operation, QueryStart, operation_name};
pub(crate) use self::random::{below, mix};
pub(crate) use self::rows::{Rows, Source};
pub(crate) use self::zipf::Zipf;
use crate::failure::{Failure, Result};

/// A workload, checked.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    /// Its name, as in the results.
    pub(crate) name: String,
    /// What it is, in a line.
    pub(crate) about: String,
    /// The table.
    pub(crate) table: Arc<TableSpec>,
    /// How its rows are made.
    pub(crate) rows: Rows,
    /// What is done; at least one.
    pub(crate) operations: Vec<Operation>,
}

impl Workload {
    /// A built-in workload by name, or one from a file.
    pub(crate) fn find(name_or_file: &str, seed: u64) -> Result<Self> {
        if let Some(builtin) = BUILTIN.iter().find(|builtin| builtin.is_called(name_or_file)) {
            return file::parse(&format!("built-in workload {name_or_file}"), builtin.text, seed);
        }
        let path = Path::new(name_or_file);
        let looks_like_file = path.extension().is_some() || path.components().count() > 1;
        if !looks_like_file && !path.is_file() {
            return Err(Failure::input(builtin::unknown(name_or_file)));
        }
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::input(format!("can't read the workload file {name_or_file}: {error}")))?;
        file::parse(name_or_file, &text, seed)
    }

    /// Whether it needs rows that were loaded before.
    pub(crate) fn reads(&self) -> bool {
        self.operations.iter().any(|operation| operation.kind != Kind::Put)
    }

    /// Whether rows per request mean anything to it.
    pub(crate) fn has_batches(&self) -> bool {
        self.operations.iter().any(|operation| !matches!(operation.kind, Kind::Query { .. }))
    }
}
