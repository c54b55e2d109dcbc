//! Many rows at a time, and a scan of them all: `cargo run --example bulk [URI]`.

use std::num::NonZeroUsize;

use futures::TryStreamExt;
use peristyle::Result;
use peristyle::model::{TableSpec, Type};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Title {
    id: i64,
    title: String,
}

const ROWS: i64 = 10_000;

#[tokio::main]
async fn main() -> Result<()> {
    let client = peristyle_examples::connect().await?;
    let spec = TableSpec::builder("bulk").partition("id", Type::I64).column("title", Type::Text).build()?;
    client.create_table_if_absent(&spec).await?;
    let titles = client.table(spec).await?;

    let rows = (0..ROWS).map(|id| Title { id, title: format!("title {id}") });
    let report = titles.put_all(rows).await?;
    for (place, error) in report.failures() {
        println!("row {place}: {:?}, {error}", error.outcome());
    }
    report.into_result()?;

    let some: Vec<Option<Title>> = titles.get_all([5, -1, 9_999]).await?;
    assert_eq!(some.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);

    let ranges = NonZeroUsize::new(4).unwrap_or(NonZeroUsize::MIN);
    let all: Vec<Title> = titles.scan().parallel(ranges).rows().try_collect().await?;
    assert_eq!(i64::try_from(all.len()), Ok(ROWS));
    println!("{} took and gave back {ROWS} rows", client.backend_name());

    client.drop_table("bulk").await?;
    client.close().await
}
