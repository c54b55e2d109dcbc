//! Dated properties of things, read by range: `cargo run --example property [URI]`.
//!
//! The same code runs on every backend. On CQL it goes on through the escape hatch, with an aggregate that the server computes.

use std::error::Error;

use futures::TryStreamExt;
use peristyle::cql::CqlBackend;
use peristyle::model::{Order, TableSpec, Type};
use peristyle::{Result, Table};
use scylla::value::CqlTimestamp;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Property {
    group: String,
    name: String,
    date: i64,
    value_string: String,
}

const DAY: i64 = 86_400_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = peristyle_examples::connect().await?;
    let spec = TableSpec::builder("property")
        .partition("group", Type::Text)
        .partition("name", Type::Text)
        .clustering("date", Type::Timestamp, Order::Descending)
        .column("value_string", Type::Text)
        .build()?;
    client.create_table_if_absent(&spec).await?;
    let properties = client.table(spec).await?;

    let values = (0..10).flat_map(|name| (0..40).map(move |day| property(name, day)));
    properties.put_all(values).await?.into_result()?;
    read_range(&properties).await?;
    println!("{} answers ranges, newest first", client.backend_name());
    if let Some(cql) = client.native::<CqlBackend>() {
        most_common(cql, &peristyle_examples::keyspace()).await?;
    }

    client.drop_table("property").await?;
    client.close().await?;
    Ok(())
}

fn property(name: i64, day: i64) -> Property {
    let value_string = if day % 3 == 0 { "off" } else { "on" };
    Property { group: "g".into(), name: format!("a_{name}"), date: day * DAY, value_string: value_string.into() }
}

async fn read_range(properties: &Table) -> Result<()> {
    let range = (10 * DAY)..(20 * DAY);
    let newest: Vec<Property> = properties.query(("g", "a_3")).range(range).limit(5).rows().try_collect().await?;
    assert_eq!(newest, (15..20).rev().map(|day| property(3, day)).collect::<Vec<_>>());

    let first = properties.query(("g", "a_3")).page_size(25).page::<Property>(None).await?;
    let rest = properties.query(("g", "a_3")).page_size(25).page::<Property>(first.next.as_ref()).await?;
    assert_eq!((first.rows.len(), rest.rows.len(), rest.next), (25, 15, None));
    Ok(())
}

/// The most common text of a column, as an aggregate of the user's that the server computes. The server must allow
/// user-defined functions: `user_defined_functions_enabled: true` in its `cassandra.yaml`.
async fn most_common(cql: &CqlBackend, keyspace: &str) -> Result<(), Box<dyn Error>> {
    let session = cql.session()?;
    let count = format!(
        "CREATE OR REPLACE FUNCTION {keyspace}.count_text(counts map<text, int>, value text)
         RETURNS NULL ON NULL INPUT RETURNS map<text, int> LANGUAGE java
         AS 'Integer seen = (Integer) counts.get(value); counts.put(value, seen == null ? 1 : seen + 1); return counts;'"
    );
    let pick = format!(
        "CREATE OR REPLACE FUNCTION {keyspace}.most_common(counts map<text, int>)
         RETURNS NULL ON NULL INPUT RETURNS text LANGUAGE java
         AS 'String most = null; for (String text : (java.util.Set<String>) counts.keySet()) {{
             if (most == null || (Integer) counts.get(text) > (Integer) counts.get(most)) most = text; }} return most;'"
    );
    let aggregate = format!(
        "CREATE OR REPLACE AGGREGATE {keyspace}.most_common_text(text)
         SFUNC count_text STYPE map<text, int> FINALFUNC most_common INITCOND {{}}"
    );
    for statement in [count, pick, aggregate] {
        session.query_unpaged(statement, ()).await?;
    }
    let query = format!(
        "SELECT {keyspace}.most_common_text(value_string) FROM {keyspace}.property
         WHERE date >= ? AND date < ? ALLOW FILTERING"
    );
    let rows = session.query_unpaged(query, (CqlTimestamp(0), CqlTimestamp(40 * DAY))).await?.into_rows_result()?;
    let (text,) = rows.single_row::<(String,)>()?;
    assert_eq!(text, "on");
    println!("the most common value is {text:?}, by an aggregate in the server");
    Ok(())
}
