//! Conditional puts, counters, and times to live: `cargo run --example inventory [URI]`.

use std::time::Duration;

use peristyle::model::{Row, TableSpec, Type, Value};
use peristyle::{Client, Result, Table};

#[tokio::main]
async fn main() -> Result<()> {
    let client = peristyle_examples::connect().await?;
    let stock =
        open(TableSpec::builder("stock").partition("item", Type::Text).column("left", Type::I64), &client).await?;
    let visits =
        open(TableSpec::builder("visits").partition("item", Type::Text).column("n", Type::Counter), &client).await?;

    let full = Row::new().with("item", "lamp").with("left", 3_i64);
    assert!(stock.compare_and_put(&full).if_absent().await?.applied);
    while take_one(&stock).await? {
        visits.increment("lamp").by("n", 1).await?;
    }
    let sold: Option<Row> = visits.get("lamp").await?;
    assert_eq!(sold.as_ref().and_then(|row| row.get("n")), Some(&Value::Counter(3)));
    println!("{} sold 3 lamps", client.backend_name());

    stock.put(&Row::new().with("item", "offer").with("left", 1_i64)).ttl(Duration::from_secs(3600)).await?;

    client.drop_table("stock").await?;
    client.drop_table("visits").await?;
    client.close().await
}

async fn open(builder: peristyle::model::TableBuilder, client: &Client) -> Result<Table> {
    let spec = builder.build()?;
    client.create_table_if_absent(&spec).await?;
    client.table(spec).await
}

/// Takes one lamp, unless none is left; however many do so at a time, no lamp is sold twice.
async fn take_one(stock: &Table) -> Result<bool> {
    loop {
        let row: Option<(String, i64)> = stock.get("lamp").await?;
        let Some((_, left)) = row.filter(|(_, left)| *left > 0) else { return Ok(false) };
        let less = Row::new().with("item", "lamp").with("left", left - 1);
        if stock.compare_and_put(&less).if_equals("left", &left).await?.applied {
            return Ok(true);
        }
    }
}
