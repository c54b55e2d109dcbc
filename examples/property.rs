//! Dated properties of things, read by range: `cargo run --example property [URI]`.
//!
//! The same code runs on every backend. On CQL it goes on through the escape hatch, with an aggregate that the server computes.

use futures::TryStreamExt;
use peristyle::model::{Order, TableSpec, Type};
use peristyle::{Result, Table};
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
async fn main() -> Result<()> {
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

    client.drop_table("property").await?;
    client.close().await
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
