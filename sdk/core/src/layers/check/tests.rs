use std::sync::atomic::{AtomicUsize, Ordering};

use tower::{ServiceExt, service_fn};

use super::*;
use crate::capability::{Capability, Limits};
use crate::error::{ErrorKind, Outcome};
use crate::model::{Key, Salt, TableSpec, Ttl, Type, Value, WriteTime};
use crate::request::{Condition, Consistency, Projection, Read, Replication, Scan, ScanOrder, ScanRange, Schema};

fn spec() -> Arc<TableSpec> {
    Arc::new(TableSpec::builder("t").partition("id", Type::I64).column("v", Type::I64).build().unwrap())
}

fn put(id: i64, value: impl Into<Value>) -> Mutation {
    let key = Key::new(vec![Value::from(id)]);
    Mutation::put(key, WriteTime::MIN, vec![(1, value.into())], Ttl::TableDefault)
}

/// Sends a request through the layer to a service that counts its calls and applies all but the value 13.
async fn send(capabilities: &[Capability], request: Request) -> (Result<Response>, usize) {
    let calls = AtomicUsize::new(0);
    let inner = service_fn(|request: Request| {
        calls.fetch_add(1, Ordering::Relaxed);
        async move {
            let Action::Write { write: Write::ApplyAll(mutations), .. } = request.action else {
                return Ok(Response::Done);
            };
            let unlucky = |mutation: &Mutation| mutation.key.values() == [Value::from(13_i64)];
            let outcome = |mutation| if unlucky(mutation) { Err(Error::invalid("unlucky")) } else { Ok(()) };
            Ok(Response::Outcomes(mutations.iter().map(outcome).collect()))
        }
    });
    let capabilities = Capabilities::new(capabilities.iter().copied(), Limits::default());
    let layer = CheckLayer::new("test", capabilities, Clock::manual(1_000_000));
    let answer = layer.layer(inner).oneshot(request).await;
    (answer, calls.load(Ordering::Relaxed))
}

#[tokio::test]
async fn what_lacks_a_capability_never_reaches_the_backend() {
    let key = || Key::new(vec![Value::from(1_i64)]);
    let read = |columns| Request::read(spec(), Read::Get { key: key(), columns });
    let scan =
        Scan { range: ScanRange::All, order: ScanOrder::Key, after: None, limit: 1, columns: Projection::default() };
    let mut consistent = read(Projection::default());
    consistent.options.consistency = Some(Consistency::One);
    let counters = TableSpec::builder("c").partition("id", Type::I64).column("n", Type::Counter).build().unwrap();
    let salted = TableSpec::builder("s").partition("id", Type::I64).salt(Salt::Buckets(4)).build().unwrap();
    let compare = Write::CompareAndPut { mutation: put(1, 1_i64), condition: Condition::RowAbsent };
    let ttl = put(1, 1_i64).with_ttl(Ttl::after(std::time::Duration::from_secs(1)).unwrap());
    let cases = [
        (Capability::OrderedScan, Request::read(spec(), Read::Scan(Box::new(scan)))),
        (
            Capability::PartitionDelete,
            Request::write(spec(), Write::Apply(Mutation::delete_partition(key(), WriteTime::MIN))),
        ),
        (Capability::ReadWriteTime, read(Projection { write_time: true, ..Projection::default() })),
        (Capability::ReadTtl, read(Projection { ttl: true, ..Projection::default() })),
        (Capability::PerWriteTtl, Request::write(spec(), Write::Apply(ttl))),
        (Capability::Counters, Request::schema(Schema::Create { table: Arc::new(counters), if_absent: false })),
        (Capability::CompareAndPut, Request::write(spec(), compare)),
        (Capability::AtomicReplace, Request::write(spec(), Write::Apply(put(1, 1_i64).replacing()))),
        (
            Capability::RowMarker,
            Request::write(spec(), Write::Apply(Mutation::put(key(), WriteTime::MIN, Vec::new(), Ttl::TableDefault))),
        ),
        (Capability::ConsistencyLevel, consistent),
        (Capability::Introspection, Request::schema(Schema::Describe { name: "t".into() })),
        (Capability::Truncate, Request::schema(Schema::Truncate { name: "t".into() })),
        (Capability::Salt, Request::schema(Schema::Create { table: Arc::new(salted), if_absent: false })),
    ];
    for (capability, request) in cases {
        let (refused, calls) = send(&[], request.clone()).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unsupported(capability));
        assert_eq!(calls, 0, "{capability}");
        let (allowed, calls) = send(&[capability], request).await;
        assert!(allowed.is_ok() && calls == 1, "{capability}: {allowed:?}");
    }
}

#[tokio::test]
async fn a_wrong_row_fails_alone_and_at_its_place() {
    let rows = vec![put(1, "wrong"), put(2, 2_i64), put(13, 3_i64), put(4, "wrong"), put(5, 5_i64), put(6, "wrong")];
    let (answer, calls) = send(&[], Request::write(spec(), Write::ApplyAll(rows))).await;
    let outcomes = answer.unwrap().into_outcomes().unwrap();
    let messages: Vec<String> =
        outcomes.into_iter().map(|outcome| outcome.map_or_else(|error| error.to_string(), |()| "ok".into())).collect();
    let wrong = "column v: has type text, but the column is i64";
    assert_eq!(messages, [wrong, "ok", "unlucky", wrong, "ok", wrong]);
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn only_wrong_rows_need_no_backend() {
    let (answer, calls) = send(&[], Request::write(spec(), Write::ApplyAll(vec![put(1, "wrong")]))).await;
    let error = answer.unwrap().into_outcomes().unwrap().remove(0).unwrap_err();
    assert_eq!((error.outcome(), calls), (Outcome::NotApplied, 0));
}

#[tokio::test]
async fn a_namespace_needs_nothing() {
    let create = Schema::CreateNamespace { replication: Replication::default(), if_absent: true };
    assert!(send(&[], Request::schema(create)).await.0.is_ok());
}
