use super::*;
use crate::memory::MemoryBackend;
use crate::model::{Order, Row, Type};

fn client() -> Client {
    Client::builder(MemoryBackend::new()).build()
}

fn spec() -> TableSpec {
    let builder = TableSpec::builder("t").partition("id", Type::I64).clustering("c", Type::Text, Order::Descending);
    builder.column("v", Type::Text).build().unwrap()
}

#[tokio::test]
async fn a_handle_asks_for_the_capabilities_it_needs() {
    let client = client();
    assert!(client.require(&[Capability::Counters, Capability::OrderedScan]).is_ok());
    let error = client.require(&[Capability::Counters, Capability::ConsistencyLevel]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported(Capability::ConsistencyLevel));
    assert!(client.native::<MemoryBackend>().is_some());
    assert!(client.native::<String>().is_none());
}

#[test]
fn differences_of_tables_are_listed_at_once() {
    let live = TableSpec::builder("t")
        .partition("id", Type::Text)
        .clustering("c", Type::Text, Order::Ascending)
        .clustering("d", Type::Text, Order::Ascending)
        .build()
        .unwrap();
    let message = compare(&spec(), &live).unwrap_err().to_string();
    for part in
        ["column id is text, not i64", "clustering column, ascending", "column v is missing", "(id, c, d), not (id, c)"]
    {
        assert!(message.contains(part), "{message}");
    }
    assert!(compare(&spec(), &spec()).is_ok());
}

#[tokio::test]
async fn an_error_names_operation_and_table() {
    let client = client();
    client.create_table(&spec()).await.unwrap();
    let table = client.table(spec()).await.unwrap();
    let error = table.put(&Row::new().with("id", 1_i64)).await.unwrap_err();
    assert_eq!(error.to_string(), "put on t: key column c is missing; every key column needs a value");
}
