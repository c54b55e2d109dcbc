//! Requests whose table was declared with fewer value columns than it has, or in another order: what a backend that keeps
//! columns by number needs to find them.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Column, StoredRow, TableSpec};
use crate::request::{Condition, Mutation, Read, Write};
use crate::response::{Comparison, Page, Response};

/// The index in the table of each column of a declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredColumns(Arc<[usize]>);

impl DeclaredColumns {
    /// How a declaration maps to the table; `None` where both are the same.
    ///
    /// # Errors
    /// [`SchemaMismatch`](ErrorKind::SchemaMismatch) where the keys or salts differ, or a declared column isn't there.
    pub fn new(declared: &TableSpec, table: &TableSpec) -> Result<Option<Self>> {
        if declared.columns() == table.columns() && declared.salt() == table.salt() {
            return Ok(None);
        }
        if declared.primary_key() != table.primary_key() || declared.salt() != table.salt() {
            return Err(mismatch(declared, table));
        }
        let place = |column: &Column| table.columns().iter().position(|stored| stored == column);
        let places: Option<Arc<[usize]>> = declared.columns().iter().map(place).collect();
        places.map(|places| Some(Self(places))).ok_or_else(|| mismatch(declared, table))
    }

    /// The mapping of a declaration to a table that has so many columns before the declared ones.
    pub(crate) fn behind(leading: usize, declared: &TableSpec) -> Self {
        Self((leading..leading + declared.columns().len()).collect())
    }

    fn place(&self, column: usize) -> usize {
        // Beyond every table's columns, so that what checks columns refuses it.
        self.0.get(column).copied().unwrap_or(usize::MAX)
    }

    /// A write, by the table's columns.
    pub fn write(&self, write: &mut Write) {
        match write {
            Write::Apply(mutation) => self.mutation(mutation),
            Write::ApplyAll(mutations) => mutations.iter_mut().for_each(|mutation| self.mutation(mutation)),
            Write::Increment { deltas, .. } => deltas.iter_mut().for_each(|(column, _)| *column = self.place(*column)),
            Write::CompareAndPut { mutation, condition } => {
                self.mutation(mutation);
                match condition {
                    Condition::RowAbsent => {}
                    Condition::ColumnAbsent(column) | Condition::ColumnEquals(column, _) => {
                        *column = self.place(*column);
                    }
                }
            }
        }
    }

    fn mutation(&self, mutation: &mut Mutation) {
        mutation.cells_mut().iter_mut().for_each(|cell| cell.column = self.place(cell.column));
    }

    /// A read, by the table's columns.
    pub fn read(&self, read: &mut Read) {
        let projection = match read {
            Read::Get { columns, .. } | Read::GetAll { columns, .. } => columns,
            Read::Query(query) => &mut query.columns,
            Read::Scan(scan) => &mut scan.columns,
        };
        projection.columns = Some(match &projection.columns {
            Some(columns) => columns.iter().map(|column| self.place(*column)).collect(),
            None => Arc::clone(&self.0),
        });
    }

    /// An answer, by the declared columns; as it is where the declaration is the table's own.
    #[must_use]
    pub fn answer(columns: Option<&Self>, answer: Response) -> Response {
        let Some(columns) = columns else { return answer };
        let row = |row: Option<StoredRow>| row.map(|row| columns.row(row));
        match answer {
            Response::Row(found) => Response::Row(row(found)),
            Response::Rows(found) => Response::Rows(found.into_iter().map(row).collect()),
            Response::Page(page) => {
                Response::Page(Page { rows: page.rows.into_iter().map(|row| columns.row(row)).collect(), ..page })
            }
            Response::Compared(compared) => {
                Response::Compared(Comparison { current: row(compared.current), ..compared })
            }
            other => other,
        }
    }

    fn row(&self, mut row: StoredRow) -> StoredRow {
        StoredRow {
            values: self.0.iter().map(|place| row.values.get_mut(*place).and_then(Option::take)).collect(),
            meta: self.0.iter().filter_map(|place| row.meta.get(*place).copied()).collect(),
        }
    }
}

fn mismatch(declared: &TableSpec, table: &TableSpec) -> Error {
    let columns = |spec: &TableSpec| {
        let columns = spec.columns().iter().map(|column| format!("{} {}", column.name, column.ty));
        columns.collect::<Vec<_>>().join(", ")
    };
    let message = format!(
        "the table has the columns ({}), but was declared with ({}); describe the table and compare keys, orders and types",
        columns(table),
        columns(declared)
    );
    Error::new(ErrorKind::SchemaMismatch, message)
}
