//! Changes and descriptions of the schema.

use std::fmt::Write as _;
use std::pin::pin;
use std::sync::Arc;

use peristyle_core::clock::Clock;
use peristyle_core::model::{ColumnKind, Order, TableSpec, Type};
use peristyle_core::request::{Replication, Schema};
use peristyle_core::{Error, ErrorKind, Response, Result};

use crate::part::check_seconds;
use crate::request::{Call, Shared};

pub(crate) async fn change(shared: Arc<Shared>, schema: Schema, call: Call) -> Result<Response> {
    let keyspace = shared.keyspace()?;
    match &schema {
        Schema::CreateNamespace { replication, if_absent } => {
            shared.run(&create_keyspace(keyspace, replication, *if_absent)?, None, &call).await?;
        }
        Schema::Create { table, if_absent } => {
            Shared::check(table)?;
            if let Some(ttl) = table.default_ttl() {
                check_seconds(ttl, shared.config.max_expiry, Clock::system().seconds())?;
            }
            shared.run(&create_table(keyspace, table, *if_absent), Some(table.name()), &call).await?;
        }
        Schema::Drop { name, if_present } => {
            let present = if *if_present { "IF EXISTS " } else { "" };
            let outcome =
                shared.run(&format!("DROP TABLE {present}\"{keyspace}\".\"{name}\""), Some(name), &call).await;
            absent_is_fine(outcome, *if_present)?;
        }
        Schema::Truncate { name } => {
            shared.run(&format!("TRUNCATE \"{keyspace}\".\"{name}\""), Some(name), &call).await?;
        }
        Schema::Describe { name } => {
            return crate::describe::describe(&shared, keyspace, name, &call).await.map(Response::Table);
        }
        other => return Err(Error::invalid(format!("the cql backend doesn't know how to {}", other.operation()))),
    }
    Ok(Response::Done)
}

/// `IF EXISTS` forgives an absent table and not an absent keyspace, in which there is no table either.
fn absent_is_fine(outcome: Result<()>, if_present: bool) -> Result<()> {
    match outcome {
        Err(error) if if_present && error.kind() == ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

impl Shared {
    /// Runs one statement of the schema, and waits until all nodes agree on it and the driver knows it.
    async fn run(&self, statement: &str, table: Option<&str>, call: &Call) -> Result<()> {
        let request = pin!(self.session.query_unpaged(statement, ()));
        let outcome = self.attempt(None, call, request).await.map(drop);
        if let Some(table) = table {
            self.statements.forget(table);
        }
        outcome
    }
}

fn create_keyspace(keyspace: &str, replication: &Replication, if_absent: bool) -> Result<String> {
    let absent = if if_absent { "IF NOT EXISTS " } else { "" };
    let strategy = match replication {
        Replication::Simple(copies) => format!("'class': 'SimpleStrategy', 'replication_factor': {copies}"),
        Replication::PerDatacenter(copies) => {
            let mut strategy = "'class': 'NetworkTopologyStrategy'".to_owned();
            for (datacenter, copies) in copies {
                if datacenter.is_empty() || datacenter.contains(['\'', '\0']) {
                    return Err(Error::invalid(format!("datacenter {datacenter:?}: give its name")));
                }
                let _ = write!(strategy, ", '{datacenter}': {copies}");
            }
            strategy
        }
    };
    Ok(format!("CREATE KEYSPACE {absent}\"{keyspace}\" WITH replication = {{{strategy}}}"))
}

fn create_table(keyspace: &str, table: &TableSpec, if_absent: bool) -> String {
    let absent = if if_absent { "IF NOT EXISTS " } else { "" };
    let mut cql = format!("CREATE TABLE {absent}\"{keyspace}\".\"{}\" (", table.name());
    for column in table.columns() {
        let _ = write!(cql, "\"{}\" {}, ", column.name, type_name(column.ty));
    }
    let quoted = |columns: &[peristyle_core::model::Column]| {
        let names: Vec<_> = columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
        names.join(", ")
    };
    let _ = write!(cql, "PRIMARY KEY (({})", quoted(table.partition_key()));
    if !table.clustering_key().is_empty() {
        let _ = write!(cql, ", {}", quoted(table.clustering_key()));
    }
    cql.push_str("))");
    let mut options = Vec::new();
    if !table.clustering_key().is_empty() {
        let order = |column: &peristyle_core::model::Column| {
            let descending = column.kind == ColumnKind::Clustering(Order::Descending);
            format!("\"{}\" {}", column.name, if descending { "DESC" } else { "ASC" })
        };
        let orders: Vec<_> = table.clustering_key().iter().map(order).collect();
        options.push(format!("CLUSTERING ORDER BY ({})", orders.join(", ")));
    }
    if let Some(ttl) = table.default_ttl() {
        options.push(format!("default_time_to_live = {ttl}"));
    }
    if !options.is_empty() {
        let _ = write!(cql, " WITH {}", options.join(" AND "));
    }
    cql
}

/// The type's name in CQL.
pub(crate) fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::Bool => "boolean",
        Type::I8 => "tinyint",
        Type::I16 => "smallint",
        Type::I32 => "int",
        Type::I64 => "bigint",
        Type::F32 => "float",
        Type::F64 => "double",
        Type::Text => "text",
        Type::Blob => "blob",
        Type::Timestamp => "timestamp",
        Type::Date => "date",
        Type::Time => "time",
        Type::Uuid => "uuid",
        Type::TimeUuid => "timeuuid",
        Type::Inet => "inet",
        Type::Decimal => "decimal",
        Type::Varint => "varint",
        Type::Counter => "counter",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_made_as_it_is_declared() {
        let table = TableSpec::builder("Property")
            .partition("group", Type::Text)
            .partition("name", Type::Text)
            .clustering("date", Type::Timestamp, Order::Descending)
            .clustering("part", Type::I32, Order::Ascending)
            .column("value", Type::Blob)
            .default_ttl(std::time::Duration::from_secs(60))
            .build()
            .unwrap();
        assert_eq!(
            create_table("Ks", &table, true),
            "CREATE TABLE IF NOT EXISTS \"Ks\".\"Property\" (\"group\" text, \"name\" text, \"date\" timestamp, \
             \"part\" int, \"value\" blob, PRIMARY KEY ((\"group\", \"name\"), \"date\", \"part\")) \
             WITH CLUSTERING ORDER BY (\"date\" DESC, \"part\" ASC) AND default_time_to_live = 60"
        );
        let table = TableSpec::builder("n").partition("id", Type::I64).column("hits", Type::Counter).build().unwrap();
        assert_eq!(
            create_table("ks", &table, false),
            "CREATE TABLE \"ks\".\"n\" (\"id\" bigint, \"hits\" counter, PRIMARY KEY ((\"id\")))"
        );
    }

    #[test]
    fn a_keyspace_is_replicated_as_asked() {
        let per = Replication::PerDatacenter(vec![("dc1".into(), 3), ("dc 2".into(), 1)]);
        assert_eq!(
            create_keyspace("ks", &per, false).unwrap(),
            "CREATE KEYSPACE \"ks\" WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 3, 'dc 2': 1}"
        );
        assert_eq!(
            create_keyspace("ks", &Replication::Simple(2), true).unwrap(),
            "CREATE KEYSPACE IF NOT EXISTS \"ks\" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}"
        );
        let injected = Replication::PerDatacenter(vec![("x': 1}; --".into(), 3)]);
        assert!(create_keyspace("ks", &injected, false).is_err());
    }
}
