//! Tables made, described, altered and dropped.

use std::sync::Arc;
use std::time::Duration;

use peristyle_core::model::{Order, Salt, TableSpec, Type, Value};
use peristyle_core::request::{Replication, Schema};
use peristyle_core::{Backend, Capability, ErrorKind, Outcome, Request, Response, Result};
use peristyle_cql::{CqlBackend, CqlConfig};

use crate::support::{address, apply, apply_all, connect, cql, create, get, key, keyspace, put};

async fn change(backend: &CqlBackend, schema: Schema) -> Result<Response> {
    backend.call(Request::schema(schema)).await
}

async fn describe(backend: &CqlBackend, name: &str) -> Result<Option<Box<TableSpec>>> {
    change(backend, Schema::Describe { name: name.into() }).await?.into_table()
}

#[tokio::test]
async fn a_table_is_described_as_it_was_made() {
    let backend = connect().await;
    let mut builder = TableSpec::builder("Described")
        .partition("Group", Type::Text)
        .partition("b", Type::I64)
        .clustering("z", Type::Timestamp, Order::Descending)
        .clustering("a", Type::Decimal, Order::Ascending)
        .default_ttl(Duration::from_secs(77));
    for ty in Type::ALL.into_iter().filter(|ty| *ty != Type::Counter) {
        builder = builder.column(format!("v_{ty}"), ty);
    }
    let made = create(&backend, builder.build().unwrap()).await;
    let live = describe(&backend, "Described").await.unwrap().unwrap();
    assert_eq!(live.primary_key(), made.primary_key());
    assert_eq!(live.default_ttl(), made.default_ttl());
    let mut columns = made.value_columns().to_vec();
    columns.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(live.value_columns(), columns);

    let counters = TableSpec::builder("described_counters").partition("id", Type::I64).column("n", Type::Counter);
    let counters = create(&backend, counters.build().unwrap()).await;
    assert_eq!(*describe(&backend, "described_counters").await.unwrap().unwrap(), *counters);
    assert!(describe(&backend, "absent").await.unwrap().is_none());
}

#[tokio::test]
async fn a_table_that_cannot_be_declared_is_a_mismatch_that_names_the_column() {
    let backend = connect().await;
    cql(&backend, &format!("CREATE TABLE \"{}\".odd (id int PRIMARY KEY, tags set<text>)", keyspace())).await;
    let error = describe(&backend, "odd").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(error.message().contains("tags is set<text>"), "{error}");
}

#[tokio::test]
async fn making_and_dropping_say_what_is_there_and_what_is_not() {
    let backend = connect().await;
    let spec = Arc::new(TableSpec::builder("made").partition("id", Type::I64).column("v", Type::Text).build().unwrap());
    let make = |if_absent| Schema::Create { table: Arc::clone(&spec), if_absent };
    let drop = |if_present| Schema::Drop { name: "made".into(), if_present };
    change(&backend, make(false)).await.unwrap();
    assert_eq!(change(&backend, make(false)).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    change(&backend, make(true)).await.unwrap();
    let row = key([Value::from(1_i64)]);
    apply(&backend, &spec, put(&row, &[(1, Value::from("x"))])).await.unwrap();
    change(&backend, Schema::Truncate { name: "made".into() }).await.unwrap();
    assert!(get(&backend, &spec, &row).await.unwrap().is_none());
    change(&backend, drop(false)).await.unwrap();
    assert_eq!(change(&backend, drop(false)).await.unwrap_err().kind(), ErrorKind::NotFound);
    change(&backend, drop(true)).await.unwrap();
    let gone = get(&backend, &spec, &row).await.unwrap_err();
    assert_eq!((gone.kind(), gone.outcome()), (ErrorKind::NotFound, Outcome::NotApplied), "{gone}");
    let truncated = change(&backend, Schema::Truncate { name: "made".into() }).await.unwrap_err();
    assert_eq!(truncated.kind(), ErrorKind::NotFound, "{truncated}");
}

#[tokio::test]
async fn a_keyspace_can_be_made_by_a_client_that_works_in_it() {
    let name = format!("{}_new", keyspace());
    let backend = CqlBackend::connect(CqlConfig::new([address()]).keyspace(&name)).await.unwrap();
    let spec = Arc::new(TableSpec::builder("t").partition("id", Type::I64).column("v", Type::Text).build().unwrap());
    let row = key([Value::from(1_i64)]);
    let put = || put(&row, &[(1, Value::from("x"))]);
    let create = || Schema::Create { table: Arc::clone(&spec), if_absent: true };
    for error in [
        apply(&backend, &spec, put()).await.unwrap_err(),
        change(&backend, create()).await.unwrap_err(),
        describe(&backend, "t").await.unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::NotFound, Outcome::NotApplied), "{error}");
        assert!(error.message().contains(&name) && error.message().contains("--create"), "{error}");
    }
    let make = |if_absent| Schema::CreateNamespace { replication: Replication::default(), if_absent };
    change(&backend, make(false)).await.unwrap();
    assert_eq!(change(&backend, make(false)).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    change(&backend, make(true)).await.unwrap();
    change(&backend, create()).await.unwrap();
    apply(&backend, &spec, put()).await.unwrap();
    assert!(get(&backend, &spec, &row).await.unwrap().is_some());
    cql(&backend, &format!("DROP KEYSPACE \"{name}\"")).await;
}

#[tokio::test]
async fn a_client_without_keyspace_says_so() {
    let backend = CqlBackend::connect(CqlConfig::new([address()])).await.unwrap();
    let error = describe(&backend, "t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("no keyspace"), "{error}");
}

#[tokio::test]
async fn statements_live_through_added_and_dropped_columns() {
    let backend = connect().await;
    let other = connect().await;
    let name = format!("\"{}\".\"altered\"", keyspace());
    let spec = TableSpec::builder("altered").partition("id", Type::I64);
    let table = create(&backend, spec.column("a", Type::Text).column("b", Type::Text).build().unwrap()).await;
    let row = key([Value::from(1_i64)]);
    let both = [(1, Value::from("x")), (2, Value::from("y"))];
    apply(&backend, &table, put(&row, &both)).await.unwrap();
    apply(&other, &table, put(&row, &both)).await.unwrap();
    let before = get(&backend, &table, &row).await.unwrap().unwrap();

    cql(&other, &format!("ALTER TABLE {name} ADD \"aa\" int")).await;
    // The other client prepares first, so this one never hears of the change.
    assert_eq!(get(&other, &table, &row).await.unwrap().unwrap(), before);
    assert_eq!(get(&backend, &table, &row).await.unwrap().unwrap(), before);
    apply(&backend, &table, put(&row, &both)).await.unwrap();

    cql(&other, &format!("ALTER TABLE {name} DROP \"b\"")).await;
    let error = get(&backend, &table, &row).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{error}");
    let error = apply(&backend, &table, put(&row, &both)).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::SchemaMismatch, Outcome::NotApplied), "{error}");
    let outcomes = apply_all(&backend, &table, vec![put(&row, &both), put(&row, &both[..1])]).await;
    assert_eq!(outcomes[0].as_ref().unwrap_err().kind(), ErrorKind::SchemaMismatch, "{outcomes:?}");
    assert!(outcomes[1].is_ok(), "{outcomes:?}");

    cql(&other, &format!("ALTER TABLE {name} ADD \"b\" text")).await;
    apply(&backend, &table, put(&row, &both)).await.unwrap();
    assert_eq!(get(&backend, &table, &row).await.unwrap().unwrap().values[2], Some(Value::from("y")));
}

#[tokio::test]
async fn a_table_made_anew_with_other_types_is_a_mismatch_and_never_a_wrong_value() {
    let backend = connect().await;
    let other = connect().await;
    let name = format!("\"{}\".\"remade\"", keyspace());
    let spec = TableSpec::builder("remade").partition("id", Type::I64).column("v", Type::I64).build().unwrap();
    let table = create(&backend, spec).await;
    let row = key([Value::from(1_i64)]);
    apply(&backend, &table, put(&row, &[(1, Value::from(7_i64))])).await.unwrap();
    assert!(get(&backend, &table, &row).await.unwrap().is_some());
    cql(&other, &format!("DROP TABLE {name}")).await;
    cql(&other, &format!("CREATE TABLE {name} (id bigint PRIMARY KEY, v timestamp)")).await;
    cql(&other, &format!("INSERT INTO {name} (id, v) VALUES (1, 5)")).await;
    let error = get(&backend, &table, &row).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{error}");
    let error = get(&backend, &table, &row).await.unwrap_err();
    assert!(error.message().contains("column v is timestamp"), "{error}");
}

#[tokio::test]
async fn a_salted_table_is_refused_before_anything_is_sent() {
    let backend = connect().await;
    let salted = TableSpec::builder("salted").partition("id", Type::I64).column("v", Type::Text).salt(Salt::Buckets(4));
    let table = Arc::new(salted.build().unwrap());
    let row = key([Value::from(1_i64)]);
    let create = change(&backend, Schema::Create { table: Arc::clone(&table), if_absent: false }).await.unwrap_err();
    let put = apply(&backend, &table, put(&row, &[(1, Value::from("x"))])).await.unwrap_err();
    let get = get(&backend, &table, &row).await.unwrap_err();
    for error in [create, put, get] {
        assert_eq!(error.kind(), ErrorKind::Unsupported(Capability::Salt));
    }
}

#[tokio::test]
async fn a_default_time_to_live_that_no_put_could_have_is_refused() {
    let backend = connect().await;
    let spec = TableSpec::builder("too_long").partition("id", Type::I64).column("v", Type::Text);
    let spec = spec.default_ttl(Duration::from_secs(630_720_000)).build().unwrap();
    let create = Schema::Create { table: Arc::new(spec), if_absent: false };
    let error = change(&backend, create).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

#[tokio::test]
async fn the_native_session_runs_a_user_defined_aggregate() {
    let backend = connect().await;
    let spec = TableSpec::builder("aggregated").partition("id", Type::I64).column("v", Type::Text).build().unwrap();
    let table = create(&backend, spec).await;
    for (id, value) in [(1_i64, "a"), (2, "long"), (3, "bb")] {
        apply(&backend, &table, put(&key([Value::from(id)]), &[(1, Value::from(value))])).await.unwrap();
    }
    let name = keyspace();
    let function = "(a text, b text) CALLED ON NULL INPUT RETURNS text LANGUAGE java AS \
                    'return a == null || (b != null && b.length() > a.length()) ? b : a;'";
    cql(&backend, &format!("CREATE FUNCTION \"{name}\".longer{function}")).await;
    cql(&backend, &format!("CREATE AGGREGATE \"{name}\".longest(text) SFUNC longer STYPE text")).await;
    let native = backend.native().downcast_ref::<CqlBackend>().unwrap();
    let select = format!("SELECT \"{name}\".longest(v) FROM \"{name}\".\"aggregated\"");
    let answer = native.session().unwrap().query_unpaged(select, ()).await.unwrap();
    let (longest,) = answer.into_rows_result().unwrap().single_row::<(Option<String>,)>().unwrap();
    assert_eq!(longest.as_deref(), Some("long"));
}
