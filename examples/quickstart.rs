//! A table, a row, and back: `cargo run --example quickstart [URI]`.

use peristyle::Result;
use peristyle::model::{TableSpec, Type};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Title {
    id: i64,
    title: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let client = peristyle_examples::connect().await?;
    let spec = TableSpec::builder("quickstart").partition("id", Type::I64).column("title", Type::Text).build()?;
    client.create_table_if_absent(&spec).await?;
    let titles = client.table(spec).await?;

    let dune = Title { id: 1, title: "Dune".into() };
    titles.put(&dune).await?;
    let read: Option<Title> = titles.get(1).await?;
    assert_eq!(read, Some(dune));
    println!("{} holds {read:?}", client.backend_name());

    client.drop_table("quickstart").await?;
    client.close().await
}
