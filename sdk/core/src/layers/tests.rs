//! The layers in the client's stack: one alone, and all of them.

use std::future::IntoFuture;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use proptest::prelude::*;
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use super::*;
use crate::Grouping;
use crate::client::{Client, ClientBuilder};
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Outcome, TimeoutPhase};
use crate::memory::MemoryBackend;
use crate::model::{Row, TableSpec, Type, Value};
use crate::table::Table;
use crate::testkit::{Fixture, cases, random_histories};

type Setting = fn(ClientBuilder) -> ClientBuilder;

const LIMIT: Duration = Duration::from_secs(20);

fn rate() -> NonZeroU32 {
    NonZeroU32::new(10_000_000).unwrap()
}

fn few() -> NonZeroUsize {
    NonZeroUsize::new(3).unwrap()
}

fn bare(builder: ClientBuilder) -> ClientBuilder {
    builder.without_observe().without_route().without_retry().without_concurrency()
}

fn all(builder: ClientBuilder) -> ClientBuilder {
    let builder = builder.rate_limit(rate()).attempt_timeout(LIMIT).hedge(LIMIT).concurrency(few());
    builder.batch(Grouping::Owner).circuit(CircuitPolicy::default()).layer(FaultLayer::new(FaultPlan::seeded(1)))
}

#[tokio::test]
async fn the_contract_holds_with_each_layer_alone_and_with_all_of_them() {
    let settings: [(&str, Setting); 12] = [
        ("no layer", bare),
        ("observe", |builder| builder.without_retry().without_concurrency()),
        ("rate limit", |builder| bare(builder).rate_limit(rate())),
        ("retry", |builder| builder.without_observe().without_concurrency()),
        ("attempt timeout", |builder| bare(builder).attempt_timeout(LIMIT)),
        ("hedge", |builder| bare(builder).hedge(Duration::ZERO)),
        ("batch by partition", |builder| bare(builder).batch(Grouping::Partition)),
        ("batch by owner", |builder| bare(builder).batch(Grouping::Owner)),
        ("concurrency", |builder| bare(builder).concurrency(few())),
        ("autopilot", |builder| bare(builder).autopilot(Autopilot::default())),
        ("circuit", |builder| bare(builder).circuit(CircuitPolicy::default())),
        ("all", all),
    ];
    for (name, setting) in settings {
        let clock = Clock::manual(Clock::system().micros());
        let builder = Client::builder(MemoryBackend::with_clock(clock.clone())).clock(clock.clone());
        let fixture = Fixture::with_clock(setting(builder).build(), clock);
        for case in cases().filter(|case| fixture.client().require(case.needs).is_ok()) {
            println!("{name}: {}", case.name);
            (case.run)(&fixture).await;
        }
    }
}

/// Faults that a retry must hide: nothing is lost, nothing comes back, no row takes another's place.
#[test]
fn histories_end_as_in_memory_whatever_fails_on_the_way() {
    let plan = FaultPlan::seeded(11)
        .fault(When::Share(0.1), Fault::FailBefore(ErrorKind::Unavailable))
        .fault(When::Share(0.1), Fault::FailAfter(ErrorKind::ConnectionLost))
        .fault_of("put_all", When::Share(0.5), Fault::Partial(0.5));
    let policy = RetryPolicy::default().attempts(60).pauses(Duration::ZERO, Duration::ZERO);
    let builder = Client::builder(MemoryBackend::new()).retry(policy.budget(Budget::new(u32::MAX, 1.0)));
    // DDL isn't idempotent: it goes to the same tables past the faults.
    let fixture = Fixture::new(builder.layer(DataOnly(FaultLayer::new(plan))).build());
    // A handle to a runtime of one thread drives no timers.
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    random_histories(runtime.handle(), &fixture, 24);
}

/// A layer for requests on data alone.
struct DataOnly<L>(L);

impl<S: Clone, L: tower::Layer<S>> tower::Layer<S> for DataOnly<L> {
    type Service = Fork<L::Service, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Fork { data: self.0.layer(inner.clone()), schema: inner }
    }
}

#[derive(Clone)]
struct Fork<D, S> {
    data: D,
    schema: S,
}

impl<D, S> tower::Service<crate::Request> for Fork<D, S>
where
    D: tower::Service<crate::Request, Response = crate::Response, Error = Error>,
    S: tower::Service<crate::Request, Response = crate::Response, Error = Error>,
    D::Future: Send + 'static,
    S::Future: Send + 'static,
{
    type Response = crate::Response;
    type Error = Error;
    type Future = crate::ResponseFuture;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: crate::Request) -> crate::ResponseFuture {
        match request.action {
            crate::request::Action::Schema(_) => self.schema.call(request).boxed(),
            _ => self.data.call(request).boxed(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Put,
    PutAll,
    Increment,
    Compare,
}

#[derive(Debug, Clone)]
struct Call {
    step: Step,
    start: u64,
    patience: u64,
}

fn call() -> impl Strategy<Value = Call> {
    let step = prop::sample::select(vec![Step::Put, Step::PutAll, Step::Increment, Step::Compare]);
    (step, 0..200_u64, 0..800_u64).prop_map(|(step, start, patience)| Call { step, start, patience })
}

/// What the caller was told of each row; `None` where it went away before it was told.
type Told = Option<Vec<Result<(), Error>>>;

async fn run(rows: &Table, counters: &Table, id: i64, step: Step) -> Vec<Result<(), Error>> {
    let row = |id: i64| Row::new().with("id", id).with("v", id);
    match step {
        Step::Put => vec![rows.put(&row(id)).await],
        Step::PutAll => rows.put_all((id..id + 4).map(row)).await.map(|report| report.outcomes).unwrap_or_default(),
        Step::Increment => vec![counters.increment(id).by("n", 1).await],
        Step::Compare => vec![rows.compare_and_put(&row(id)).if_absent().await.map(|comparison| {
            assert!(comparison.applied, "nobody else writes row {id}: it met its own first attempt");
        })],
    }
}

/// Every value that was written, by the id of its row; counters as they stand.
async fn found(rows: &Table, counters: &Table, id: i64, step: Step) -> Vec<i64> {
    let table = if matches!(step, Step::Increment) { counters } else { rows };
    let column = if matches!(step, Step::Increment) { "n" } else { "v" };
    let ids: Vec<i64> = if matches!(step, Step::PutAll) { (id..id + 4).collect() } else { vec![id] };
    let mut found = Vec::new();
    for id in ids {
        let row: Option<Row> = table.get(id).await.unwrap();
        let value = row.and_then(|row| row.get(column).cloned());
        found.push(match value {
            Some(Value::Counter(times)) => times,
            Some(value) => i64::from(value == Value::from(id)),
            None => 0,
        });
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// Applied is there, not applied is not, and nothing is there twice: through the whole stack, with every fault there is,
    /// with deadlines, and with callers that go away at any time.
    #[test]
    fn what_callers_are_told_is_what_happened(seed in any::<u64>(), calls in prop::collection::vec(call(), 1..24)) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let backend = MemoryBackend::new();
            let plain = Client::builder(backend.clone()).build();
            let rows = TableSpec::builder("rows").partition("id", Type::I64).column("v", Type::I64).build().unwrap();
            let counters = TableSpec::builder("counters").partition("id", Type::I64).column("n", Type::Counter).build().unwrap();
            for spec in [&rows, &counters] {
                plain.create_table(spec).await.unwrap();
            }
            let truth = (plain.table(rows.clone()).await.unwrap(), plain.table(counters.clone()).await.unwrap());
            let plan = FaultPlan::seeded(seed)
                .fault(When::Share(0.15), Fault::FailBefore(ErrorKind::Unavailable))
                .fault(When::Share(0.15), Fault::FailAfter(ErrorKind::ConnectionLost))
                .fault(When::Share(0.1), Fault::Delay(Duration::from_millis(60)))
                .fault(When::Share(0.1), Fault::Hang)
                .fault(When::Share(0.1), Fault::DropAnswer)
                .fault(When::Share(0.5), Fault::Partial(0.4));
            let builder = all(Client::builder(backend)).attempt_timeout(Duration::from_millis(50));
            let client = builder.deadline(Duration::from_millis(500)).layer(DataOnly(FaultLayer::new(plan))).build();
            let shaky = (client.table(rows).await.unwrap(), client.table(counters).await.unwrap());
            let told = join_all(calls.iter().zip((0..).step_by(10)).map(|(call, id)| {
                let shaky = &shaky;
                async move {
                    sleep(Duration::from_millis(call.start)).await;
                    let told = timeout(Duration::from_millis(call.patience), run(&shaky.0, &shaky.1, id, call.step)).await;
                    told.ok() as Told
                }
            })).await;
            for ((call, told), id) in calls.iter().zip(told).zip((0..).step_by(10)) {
                let found = found(&truth.0, &truth.1, id, call.step).await;
                for (place, times) in found.into_iter().enumerate() {
                    match told.as_ref().map(|told| &told[place]) {
                        Some(Ok(())) => assert_eq!(times, 1, "{call:?}"),
                        Some(Err(error)) if error.outcome() == Outcome::NotApplied => assert_eq!(times, 0, "{call:?}: {error}"),
                        _ => assert!((0..=1).contains(&times), "{call:?}: {times} times"),
                    }
                }
            }
            // Whatever went away gave its permit back: as many as the limit get one at once.
            let probes = (0..3).map(|id| shaky.0.get::<Row>(id).into_future());
            for error in join_all(probes).await.into_iter().filter_map(Result::err) {
                assert_ne!(error.kind(), ErrorKind::Timeout(TimeoutPhase::Queue), "{error}");
            }
        });
    }
}

/// Holds the first request back until it is told to let go, as a network may: whoever sent it has gone by then.
#[derive(Clone, Default)]
struct HoldFirst {
    held: std::sync::Arc<std::sync::atomic::AtomicBool>,
    go: std::sync::Arc<tokio::sync::Notify>,
    arrived: std::sync::Arc<tokio::sync::Notify>,
}

impl<S> tower::Layer<S> for HoldFirst {
    type Service = Holding<S>;

    fn layer(&self, inner: S) -> Holding<S> {
        Holding { inner, first: self.clone() }
    }
}

#[derive(Clone)]
struct Holding<S> {
    inner: S,
    first: HoldFirst,
}

impl<S> tower::Service<crate::Request> for Holding<S>
where
    S: tower::Service<crate::Request, Response = crate::Response, Error = Error>,
    S::Future: Send + 'static,
{
    type Response = crate::Response;
    type Error = Error;
    type Future = crate::ResponseFuture;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: crate::Request) -> crate::ResponseFuture {
        let is_put = request.operation() == "put";
        let answer = self.inner.call(request);
        if !is_put || self.first.held.swap(true, std::sync::atomic::Ordering::Relaxed) {
            return answer.boxed();
        }
        let first = self.first.clone();
        tokio::spawn(async move {
            first.go.notified().await;
            answer.await.unwrap();
            first.arrived.notify_one();
        });
        futures::future::pending().boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_first_attempt_never_overwrites_what_another_client_wrote_since() {
    let clock = Clock::manual(Clock::system().micros());
    let backend = MemoryBackend::with_clock(clock.clone());
    let hold = HoldFirst::default();
    let builder = |backend: &MemoryBackend| Client::builder(backend.clone()).clock(clock.clone());
    let slow = builder(&backend).attempt_timeout(Duration::from_secs(1)).layer(hold.clone()).build();
    let other = builder(&backend).build();
    let spec = TableSpec::builder("t").partition("id", Type::I64).column("v", Type::Text).build().unwrap();
    other.create_table(&spec).await.unwrap();
    let (ours, theirs) = (slow.table(spec.clone()).await.unwrap(), other.table(spec).await.unwrap());
    let row = |text: &str| Row::new().with("id", 1_i64).with("v", text);
    // The first attempt hangs, the second is applied.
    ours.put(&row("old")).await.unwrap();
    assert_eq!(theirs.get(1_i64).await.unwrap(), Some(row("old")));
    clock.advance(Duration::from_millis(1));
    theirs.put(&row("new")).await.unwrap();
    hold.go.notify_one();
    hold.arrived.notified().await;
    assert_eq!(theirs.get(1_i64).await.unwrap(), Some(row("new")));
}
