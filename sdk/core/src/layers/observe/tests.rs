use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use futures::FutureExt;
use tokio::time::sleep;
use tower::ServiceExt;
use tracing::field::{Field, Visit};
use tracing::span;

use super::*;
use crate::error::{ErrorKind, TimeoutPhase};
use crate::layers::AttemptTimeoutLayer;
use crate::layers::recorder::recorded;
use crate::layers::testing::{Mock, get, ok, put, put_all};
use crate::request::{RequestOptions, Schema};

#[test]
fn each_operation_is_timed_under_its_name_and_its_error() {
    let kept = recorded(|| async {
        let mock = Mock::new(|number, request| async move {
            sleep(Duration::from_millis(20)).await;
            match number {
                0..3 => ok(&request),
                3 => Err(Error::new(ErrorKind::Timeout(TimeoutPhase::Deadline), "")),
                _ => Ok(Response::Outcomes(vec![Ok(()), Err(Error::new(ErrorKind::Overloaded, ""))])),
            }
        });
        let service = ObserveLayer::calls("memory").layer(mock);
        let describe = Request::schema(Schema::Describe { name: "t".into() });
        for request in [get(), get(), describe, put(), put_all(0..2)] {
            drop(service.clone().oneshot(request).await);
        }
    });
    let name = |operation: &str, exception: &str| {
        kept.values(&format!("session.cql-requests{{system=memory,operation={operation},exception={exception}}}")).len()
    };
    assert_eq!((name("get", "none"), name("describe", "none")), (2, 1));
    assert_eq!((name("put", "timeout_deadline"), name("put_all", "overloaded")), (1, 1));
    assert_eq!(kept.values("session.cql-client-timeouts{system=memory}"), [1.0]);
    let get = kept.values("session.cql-requests{system=memory,operation=get,exception=none}");
    assert!(get.iter().all(|seconds| (seconds - 0.02).abs() < 1e-9), "{get:?}");
    assert!(crate::layers::names::SLO_BUCKETS.is_sorted());
}

#[test]
fn what_is_under_way_is_counted_down_when_it_is_dropped() {
    let kept = recorded(|| async {
        let service = ObserveLayer::attempts("memory").layer(Mock::new(|_, _| std::future::pending()));
        let mut calls: Vec<_> = (0..3).map(|_| Box::pin(service.clone().oneshot(get()))).collect();
        assert!(calls.iter_mut().all(|call| call.as_mut().now_or_never().is_none()));
    });
    let gauge = kept.values("nodes.pool.in-flight{system=memory,node=}");
    assert_eq!((gauge.iter().filter(|step| **step > 0.0).count(), gauge.iter().sum::<f64>()), (3, 0.0));
    assert!(kept.values("nodes.cql-messages{system=memory,node=,operation=get,exception=none}").is_empty());
}

#[test]
fn attempts_are_counted_by_the_node_that_they_go_to() {
    let kept = recorded(|| async {
        let mock = Mock::new(|number, request| async move {
            match number {
                0 | 1 => ok(&request),
                2 => Err(Error::new(ErrorKind::ConnectionLost, "")),
                _ => std::future::pending().await,
            }
        });
        let service =
            AttemptTimeoutLayer::new(Duration::from_millis(10)).layer(ObserveLayer::attempts("m").layer(mock));
        for (node, request) in [("a", get()), ("b", get()), ("b", put()), ("a", put()), ("a", get())] {
            let options = RequestOptions { endpoint: Some(Endpoint::named(node)), ..Default::default() };
            drop(service.clone().oneshot(request.with_options(options)).await);
        }
    });
    let count = |name: &str| kept.values(name).len();
    for node in ["a", "b"] {
        assert_eq!(count(&format!("nodes.cql-messages{{system=m,node={node},operation=get,exception=none}}")), 1);
        let under_way = kept.values(&format!("nodes.pool.in-flight{{system=m,node={node}}}"));
        assert!(under_way.len() >= 4 && under_way.iter().sum::<f64>().abs() < 1e-9, "{under_way:?}");
    }
    assert_eq!(count("nodes.errors.request.aborted{system=m,node=b}"), 1);
    // The attempts that ran into their limit are dropped by the layer that has it.
    for name in ["write-timeouts", "read-timeouts"] {
        assert_eq!(count(&format!("nodes.errors.request.{name}{{system=m,node=a}}")), 1, "{name}");
    }
    let timed = kept.values("nodes.cql-messages{system=m,node=a,operation=put,exception=timeout_attempt}");
    assert!(matches!(*timed, [seconds] if (seconds - 0.01).abs() < 1e-9), "{timed:?}");
}

/// Keeps the fields of all spans, and which span was entered in which.
#[derive(Default, Clone)]
struct Spans(Arc<Mutex<SpansKept>>);

#[derive(Default)]
struct SpansKept {
    fields: Vec<BTreeMap<String, String>>,
    entered: Vec<u64>,
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl tracing::Subscriber for Spans {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut kept = self.0.lock().unwrap();
        let parent = kept.entered.last().map(ToString::to_string).unwrap_or_default();
        let mut fields = BTreeMap::from([("parent".to_owned(), parent)]);
        attributes.record(&mut Fields(&mut fields));
        kept.fields.push(fields);
        span::Id::from_u64(u64::try_from(kept.fields.len()).unwrap())
    }

    fn record(&self, id: &span::Id, values: &span::Record<'_>) {
        let place = usize::try_from(id.into_u64() - 1).unwrap();
        values.record(&mut Fields(&mut self.0.lock().unwrap().fields[place]));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {}

    fn enter(&self, id: &span::Id) {
        self.0.lock().unwrap().entered.push(id.into_u64());
    }

    fn exit(&self, _: &span::Id) {
        self.0.lock().unwrap().entered.pop();
    }
}

#[test]
fn spans_follow_the_conventions_and_attempts_lie_within_calls() {
    let spans = Spans::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    tracing::subscriber::with_default(spans.clone(), || {
        runtime.block_on(async {
            let answers = Mock::new(|_, _| async {
                Ok(Response::Outcomes(vec![Ok(()), Err(Error::new(ErrorKind::Overloaded, ""))]))
            });
            let service = ObserveLayer::calls("memory").layer(ObserveLayer::attempts("memory").layer(answers));
            drop(service.oneshot(put_all(0..2)).await);
        });
    });
    let kept = spans.0.lock().unwrap();
    let expected = [
        ("otel.name", "put_all t"),
        ("db.system.name", "memory"),
        ("db.operation.name", "put_all"),
        ("db.collection.name", "t"),
        ("db.operation.batch.size", "2"),
        ("error.type", "overloaded"),
        ("otel.status_code", "ERROR"),
    ];
    for (fields, kind, parent) in [(&kept.fields[0], "internal", ""), (&kept.fields[1], "client", "1")] {
        for (name, value) in expected.into_iter().chain([("otel.kind", kind), ("parent", parent)]) {
            assert_eq!(fields.get(name).map(String::as_str), Some(value), "{name} in {fields:?}");
        }
    }
    assert!(kept.entered.is_empty());
}
