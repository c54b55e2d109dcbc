//! Servers that are not there, or go away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use peristyle_core::model::{TableSpec, Type, Value};
use peristyle_core::request::{Read, Replication, RequestOptions, Schema, Write};
use peristyle_core::{Backend, Error, ErrorKind, Outcome, Request, TimeoutPhase};
use peristyle_cql::{CqlBackend, CqlConfig};
use peristyle_servers::Cassandra;
use tokio::net::TcpListener;

use crate::support::{apply, apply_all, config, connect, create, get, key, put};

/// Longer than any limit set here, for slow machines; shorter than for ever.
const BOUND: Duration = Duration::from_secs(20);

async fn refused(config: CqlConfig) -> Error {
    let begun = Instant::now();
    let error = CqlBackend::connect(config).await.unwrap_err();
    assert!(begun.elapsed() < BOUND, "{:?}", begun.elapsed());
    error
}

#[tokio::test]
async fn nobody_listening_is_unavailable_and_names_the_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = listener.local_addr().unwrap().to_string();
    drop(listener);
    let error = refused(CqlConfig::new([closed.as_str()])).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains(&closed) && error.message().contains("9042"), "{error}");
}

#[tokio::test]
async fn a_listener_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = listener.local_addr().unwrap().to_string();
    let error = refused(CqlConfig::new([silent.as_str()]).connect_timeout(Duration::from_millis(700))).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains(&silent), "{error}");
}

#[tokio::test]
async fn a_silent_host_does_not_hide_a_good_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = listener.local_addr().unwrap().to_string();
    let mut both = config().connect_timeout(Duration::from_secs(6));
    both.hosts.push(silent);
    CqlBackend::connect(both).await.unwrap();
}

#[tokio::test]
async fn an_unknown_datacenter_is_refused_with_those_there_are() {
    let error = refused(config().datacenter("nowhere")).await;
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.message().contains("datacenter1"), "{error}");
    CqlBackend::connect(config().datacenter("datacenter1")).await.unwrap();
}

#[tokio::test]
async fn a_name_without_address_is_unavailable() {
    let error = refused(CqlConfig::new(["no-such-host.invalid"])).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("no-such-host.invalid"), "{error}");
}

#[tokio::test]
async fn a_deadline_that_has_passed_sends_nothing() {
    let backend = connect().await;
    let spec = TableSpec::builder("late").partition("id", Type::I64).column("v", Type::Text).build().unwrap();
    let table = create(&backend, spec).await;
    let row = key([Value::from(1_i64)]);
    apply(&backend, &table, put(&row, &[(1, Value::from("x"))])).await.unwrap();
    let mut options = RequestOptions::default();
    options.deadline = Some(Instant::now());
    let write = Write::Apply(put(&row, &[(1, Value::from("late"))]));
    let error = backend.call(Request::write(table.clone(), write).with_options(options)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout(TimeoutPhase::Deadline));
    assert_eq!(error.outcome(), Outcome::NotApplied);
    let kept = get(&backend, &table, &row).await.unwrap().unwrap();
    assert_eq!(kept.values[1], Some(Value::from("x")));
}

#[tokio::test]
async fn a_dropped_request_is_sent_whole_or_not_at_all_and_the_next_works() {
    let backend = connect().await;
    let spec = TableSpec::builder("dropped").partition("id", Type::I64).column("v", Type::Text).build().unwrap();
    let table = create(&backend, spec).await;
    for id in 0..2_000_i64 {
        let write = Write::Apply(put(&key([Value::from(id)]), &[(1, Value::from("x"))]));
        let mut request = backend.call(Request::write(table.clone(), write));
        let _ = futures::poll!(&mut request);
    }
    let row = key([Value::from(-1_i64)]);
    apply(&backend, &table, put(&row, &[(1, Value::from("x"))])).await.unwrap();
    assert!(get(&backend, &table, &row).await.unwrap().is_some());
}

#[tokio::test]
async fn a_closed_backend_refuses_and_its_session_ends() {
    let backend = connect().await;
    let spec = TableSpec::builder("closed").partition("id", Type::I64).column("v", Type::Text).build().unwrap();
    let table = create(&backend, spec).await;
    backend.close().await.unwrap();
    backend.close().await.unwrap();
    let error = get(&backend, &table, &key([Value::from(1_i64)])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!(backend.session().err().unwrap().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn a_killed_server_fails_requests_in_time_with_their_outcome_and_is_found_again() {
    let mut node = Cassandra::builder().durable().start().unwrap();
    let address = node.cql_address().to_string();
    let config = CqlConfig::new([address.as_str()]).keyspace("killed").request_timeout(Duration::from_secs(3));
    let backend = Arc::new(CqlBackend::connect(config).await.unwrap());
    let make = Schema::CreateNamespace { replication: Replication::default(), if_absent: true };
    backend.call(Request::schema(make)).await.unwrap();
    let spec = TableSpec::builder("t").partition("id", Type::I64).column("v", Type::Text).build().unwrap();
    let table = create(&backend, spec).await;
    let row = |id: i64| key([Value::from(id)]);
    apply(&backend, &table, put(&row(0), &[(1, Value::from("kept"))])).await.unwrap();

    // Writers keep on while the server dies under them.
    let writer = |from: i64| {
        let (backend, table) = (Arc::clone(&backend), Arc::clone(&table));
        tokio::spawn(async move {
            let mut errors = Vec::new();
            for id in from..from + 100_000 {
                if let Err(error) =
                    apply(&backend, &table, put(&key([Value::from(id)]), &[(1, Value::from("x"))])).await
                {
                    errors.push(error);
                    if errors.len() == 3 {
                        break;
                    }
                }
            }
            errors
        })
    };
    let writers: Vec<_> = (1..9).map(|number| writer(number * 1_000_000)).collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    node.kill();
    let begun = Instant::now();
    for writer in writers {
        for error in writer.await.unwrap() {
            let expected = match error.kind() {
                ErrorKind::ConnectionLost | ErrorKind::Timeout(_) => Outcome::Unknown,
                ErrorKind::Unavailable => Outcome::NotApplied,
                other => panic!("{other:?}: {error}"),
            };
            assert_eq!(error.outcome(), expected, "{error}");
        }
    }
    assert!(begun.elapsed() < BOUND);
    let error = get(&backend, &table, &row(0)).await.unwrap_err();
    assert!(error.attempts().iter().all(|attempt| attempt.endpoint == address), "{error}");
    let outcomes =
        apply_all(&backend, &table, (1..4).map(|id| put(&row(id), &[(1, Value::from("x"))])).collect()).await;
    assert!(outcomes.iter().all(Result::is_err));
    let all = Read::GetAll { keys: vec![row(0)], columns: peristyle_core::request::Projection::default() };
    assert!(crate::support::read(&backend, &table, all).await.is_err());

    node.restart().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match get(&backend, &table, &row(0)).await {
            Ok(kept) => break assert_eq!(kept.unwrap().values[1], Some(Value::from("kept"))),
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
