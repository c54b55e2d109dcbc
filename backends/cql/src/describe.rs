//! What a live table looks like.

use std::pin::pin;
use std::sync::Arc;

use peristyle_core::model::{Order, TableSpec, Type};
use peristyle_core::{Error, ErrorKind, Result};
use scylla::serialize::row::SerializeRow;
use scylla::statement::unprepared::Statement;
use std::time::Duration;

use crate::error::corrupt;
use crate::request::{Call, Shared};

/// A row of `system_schema.columns`: name, kind, position, clustering order, type.
type ColumnRow = (String, String, i32, String, String);

/// Asks the server, not the driver's memory of it: another client may just have made the table.
pub(crate) async fn describe(
    shared: &Shared,
    keyspace: &str,
    name: &Arc<str>,
    call: &Call,
) -> Result<Option<Box<TableSpec>>> {
    let of = (keyspace, &**name);
    let options: Vec<(Option<i32>,)> = shared
        .system(
            "SELECT default_time_to_live FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?",
            of,
            call,
        )
        .await?;
    let Some((default_ttl,)) = options.first() else {
        return shared.require_keyspace(keyspace, call).await.map(|()| None);
    };
    let columns: Vec<ColumnRow> = shared
        .system(
            "SELECT column_name, kind, position, clustering_order, type FROM system_schema.columns \
             WHERE keyspace_name = ? AND table_name = ?",
            of,
            call,
        )
        .await?;
    let ttl = default_ttl.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    spec(name, columns, ttl).map(|spec| Some(Box::new(spec)))
}

impl Shared {
    async fn require_keyspace(&self, keyspace: &str, call: &Call) -> Result<()> {
        let found: Vec<(String,)> = self
            .system("SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?", (keyspace,), call)
            .await?;
        if !found.is_empty() {
            return Ok(());
        }
        let message =
            format!("keyspace {keyspace} does not exist: create it (create_namespace, or --create), or check its name");
        Err(Error::new(ErrorKind::NotFound, message))
    }

    async fn system<R>(&self, text: &str, values: impl SerializeRow, call: &Call) -> Result<Vec<R>>
    where
        R: for<'frame, 'metadata> scylla::deserialize::row::DeserializeRow<'frame, 'metadata>,
    {
        let request = pin!(self.session.query_unpaged(Statement::new(text), values));
        let answer = self.attempt(None, call, request).await?;
        let answer = answer.into_rows_result().map_err(|error| corrupt(&error))?;
        let rows = answer.rows::<R>().map_err(|error| corrupt(&error))?;
        rows.collect::<Result<_, _>>().map_err(|error| corrupt(&error))
    }
}

fn spec(name: &Arc<str>, mut columns: Vec<ColumnRow>, default_ttl: Option<u64>) -> Result<TableSpec> {
    columns.sort_by_key(|(_, kind, position, ..)| (kind != "partition_key", kind != "clustering", *position));
    let mut builder = TableSpec::builder(Arc::clone(name));
    for (column, kind, _, order, ty) in columns {
        let ty = known_type(&column, &ty)?;
        builder = match kind.as_str() {
            "partition_key" => builder.partition(column, ty),
            "clustering" if order == "desc" => builder.clustering(column, ty, Order::Descending),
            "clustering" => builder.clustering(column, ty, Order::Ascending),
            "regular" => builder.column(column, ty),
            other => return Err(mismatch(format!("column {column} is {other}, which a declared table has not"))),
        };
    }
    if let Some(seconds) = default_ttl {
        builder = builder.default_ttl(Duration::from_secs(seconds));
    }
    builder.build().map_err(|error| mismatch(format!("the live table can't be declared: {}", error.message())))
}

fn known_type(column: &str, cql: &str) -> Result<Type> {
    cql.parse().map_err(|_| mismatch(format!("column {column} is {cql}, a type that a declared table has not")))
}

fn mismatch(message: String) -> Error {
    Error::new(ErrorKind::SchemaMismatch, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, kind: &str, position: i32, order: &str, ty: &str) -> ColumnRow {
        (name.into(), kind.into(), position, order.into(), ty.into())
    }

    #[test]
    fn a_live_table_is_declared_in_the_order_of_its_key() {
        let rows = vec![
            row("b", "clustering", 1, "asc", "int"),
            row("a", "clustering", 0, "desc", "timestamp"),
            row("v", "regular", -1, "none", "ascii"),
            row("q", "partition_key", 1, "none", "bigint"),
            row("p", "partition_key", 0, "none", "text"),
        ];
        let expected = TableSpec::builder("t")
            .partition("p", Type::Text)
            .partition("q", Type::I64)
            .clustering("a", Type::Timestamp, Order::Descending)
            .clustering("b", Type::I32, Order::Ascending)
            .column("v", Type::Text)
            .default_ttl(Duration::from_secs(7))
            .build()
            .unwrap();
        assert_eq!(spec(&"t".into(), rows, Some(7)).unwrap(), expected);
    }

    #[test]
    fn what_cannot_be_declared_is_named() {
        for (kind, ty, expected) in [
            ("regular", "map<text, text>", "column v is map<text, text>"),
            ("regular", "duration", "column v is duration"),
            ("static", "int", "column v is static"),
        ] {
            let rows = vec![row("id", "partition_key", 0, "none", "int"), row("v", kind, -1, "none", ty)];
            let error = spec(&"t".into(), rows, None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
            assert!(error.message().contains(expected), "{error}");
        }
    }
}
