//! Random histories of one table: whatever is written, in whatever order, reads as in memory.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures::TryStreamExt;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use tokio::runtime::Handle;

use super::Fixture;
use crate::capability::{Capabilities, Capability};
use crate::client::Client;
use crate::error::Result;
use crate::memory::MemoryBackend;
use crate::model::{Key, Order, StoredRow, TableSpec, Ttl, Type, Value, WriteTime};
use crate::request::{Mutation, Request, Write};
use crate::table::Table;

/// The value columns, by index.
const V: usize = 4;
const W: usize = 5;

/// A row's place within the partition of a history.
type Place = (i32, &'static str);

#[derive(Debug, Clone)]
enum Step {
    Put { place: Place, v: Option<Vec<u8>>, w: Option<i64>, expires: bool, time: i64 },
    Replace { place: Place, v: Vec<u8>, time: i64 },
    Delete { place: Place, time: i64 },
    DeleteColumns { place: Place, columns: Vec<usize>, time: i64 },
    DeletePartition { time: i64 },
    PutAll { rows: Vec<(Place, i64)> },
    Query(Look),
}

#[derive(Debug, Clone)]
struct Look {
    prefix: Option<i32>,
    lower: Bound<i32>,
    upper: Bound<i32>,
    reverse: bool,
    limit: usize,
    page_size: usize,
}

fn place() -> impl Strategy<Value = Place> {
    (0..3_i32, select(&["", "x", "xy"][..]))
}

/// Offsets from one instant, few enough to tie and to come in any order.
fn time() -> impl Strategy<Value = i64> {
    0..12_i64
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    select(vec![&b""[..], b"\0", b"a", b"ab", b"\xff"]).prop_map(<[u8]>::to_vec)
}

fn bound() -> impl Strategy<Value = Bound<i32>> {
    prop_oneof![Just(Bound::Unbounded), (0..3_i32).prop_map(Bound::Included), (0..3_i32).prop_map(Bound::Excluded)]
}

fn look() -> impl Strategy<Value = Look> {
    let range = (prop::option::of(0..3_i32), bound(), bound());
    (range, any::<bool>(), 0..10_usize, 1..4_usize).prop_map(|((prefix, lower, upper), reverse, limit, page_size)| {
        Look { prefix, lower, upper, reverse, limit, page_size }
    })
}

fn step(capabilities: &Capabilities) -> impl Strategy<Value = Step> + use<> {
    let [partition_delete, replace, ttl] =
        [Capability::PartitionDelete, Capability::AtomicReplace, Capability::PerWriteTtl]
            .map(|capability| capabilities.has(capability));
    let expires = if ttl { any::<bool>().boxed() } else { Just(false).boxed() };
    let w = prop::option::of(select(&[-1, 0, 5_i64][..]));
    let put = (place(), prop::option::of(bytes()), w, expires, time());
    let columns = subsequence(vec![V, W], 1..=2);
    prop_oneof![
        6 => put.prop_map(|(place, v, w, expires, time)| Step::Put { place, v, w, expires, time }),
        2 => (place(), bytes(), time()).prop_map(move |(place, v, time)| {
            if replace { Step::Replace { place, v, time } } else { Step::Delete { place, time } }
        }),
        2 => (place(), time()).prop_map(|(place, time)| Step::Delete { place, time }),
        2 => (place(), columns, time()).prop_map(|(place, columns, time)| Step::DeleteColumns { place, columns, time }),
        // A weight of 0 would not keep it out of shrunk histories.
        1 => time().prop_map(move |time| {
            if partition_delete { Step::DeletePartition { time } } else { Step::Delete { place: (0, ""), time } }
        }),
        1 => prop::collection::vec((place(), 0..9_i64), 1..8).prop_map(|rows| Step::PutAll { rows }),
        3 => look().prop_map(Step::Query),
    ]
}

/// Runs random histories on the backend and on memory, and compares every query on the way and every row at the end.
///
/// A history writes to a partition of its own; write times come in any order, and tie unless the fixture is
/// [without ties](Fixture::without_ties). The failing history is shrunk and printed.
pub fn random_histories(runtime: &Handle, fixture: &Fixture, histories: u32) {
    let spec = fixture
        .table()
        .partition("history", Type::I64)
        .partition("group", Type::Text)
        .clustering("a", Type::I32, Order::Ascending)
        .clustering("b", Type::Text, Order::Descending)
        .column("v", Type::Blob)
        .column("w", Type::I64)
        .build()
        .unwrap();
    let pair = Arc::new(runtime.block_on(Pair::new(fixture, spec)));
    let capabilities = fixture.client().capabilities();
    let steps = prop::collection::vec(step(capabilities), 1..40);
    let mut runner = TestRunner::new(Config { cases: histories, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&steps, |steps| runtime.block_on(pair.run(&steps)).map_err(TestCaseError::fail));
    match outcome {
        Ok(()) => runtime.block_on(pair.finish()),
        Err(TestError::Fail(reason, steps)) => panic!("{reason}\nafter {steps:#?}"),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

/// The table under test and the one in memory.
struct Pair {
    tested: Table,
    memory: Table,
    start: i64,
    ties: bool,
    next: AtomicI64,
}

impl Pair {
    async fn new(fixture: &Fixture, spec: TableSpec) -> Self {
        let client = fixture.client();
        client.create_table(&spec).await.unwrap();
        let reference = Client::builder(MemoryBackend::new()).build();
        reference.create_table(&spec).await.unwrap();
        // An hour back, so that no write lies ahead of any clock.
        let start = client.next_write_time().as_micros() - 3_600_000_000;
        let tested = client.table(spec.clone()).await.unwrap();
        let memory = reference.table(spec).await.unwrap();
        Self { tested, memory, start, ties: fixture.has_ties(), next: AtomicI64::new(0) }
    }

    async fn run(&self, steps: &[Step]) -> Result<(), String> {
        let history = self.next.fetch_add(1, Ordering::Relaxed);
        for (place, step) in steps.iter().enumerate() {
            let step_fault = |fault: String| format!("step {place}, {step:?}: {fault}");
            match step {
                Step::Query(look) => self.compare(history, look).await.map_err(step_fault)?,
                step => self.write(history, place, step).await.map_err(step_fault)?,
            }
        }
        let everything = Look {
            prefix: None,
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
            reverse: false,
            limit: 99,
            page_size: 4,
        };
        self.compare(history, &everything).await
    }

    async fn write(&self, history: i64, place: usize, step: &Step) -> Result<(), String> {
        let mutations = self.mutations(history, place, step);
        for table in [&self.tested, &self.memory] {
            let write = match mutations.as_slice() {
                [mutation] => Write::Apply(mutation.clone()),
                many => Write::ApplyAll(many.to_vec()),
            };
            let answer = table.client().call(Request::write(table.spec().clone(), write)).await;
            match answer.map_err(|error| format!("{error:?}"))? {
                crate::Response::Outcomes(outcomes) => {
                    outcomes.into_iter().collect::<Result<()>>().map_err(|error| format!("{error:?}"))?;
                }
                done => done.into_done().map_err(|error| format!("{error:?}"))?,
            }
        }
        Ok(())
    }

    fn mutations(&self, history: i64, step_number: usize, step: &Step) -> Vec<Mutation> {
        // Two apart, so that what a replace wipes ties with nothing either.
        let own = 2 * i64::try_from(step_number).unwrap();
        let time = |time: i64| if self.ties { time } else { 100 * time + own };
        let at = |offset: i64| WriteTime::from_micros(self.start + time(offset)).unwrap();
        let partition = || vec![Value::from(history), Value::from("g")];
        let key = |(a, b): Place| Key::new([partition(), vec![a.into(), b.into()]].concat());
        match step {
            Step::Put { place, v, w, expires, time } => {
                let v = v.as_deref().map(|v| (V, Value::from(v)));
                let w = w.map(|w| (W, Value::from(w)));
                let values: Vec<_> = v.into_iter().chain(w).collect();
                let values = if values.is_empty() { vec![(W, Value::from(0_i64))] } else { values };
                // Lives that differ by far more than a clock tick, so that the later expiry is the same on every clock.
                let seconds = 1_000 + 100 * u64::try_from(step_number).unwrap();
                let ttl = if *expires { Ttl::after(Duration::from_secs(seconds)).unwrap() } else { Ttl::Never };
                vec![Mutation::put(key(*place), at(*time), values, ttl)]
            }
            Step::Replace { place, v, time } => {
                let values = vec![(V, Value::from(v.as_slice()))];
                vec![Mutation::put(key(*place), at(*time), values, Ttl::Never).replacing()]
            }
            Step::Delete { place, time } => vec![Mutation::delete_row(key(*place), at(*time))],
            Step::DeleteColumns { place, columns, time } => {
                vec![Mutation::delete_columns(key(*place), at(*time), columns.iter().copied())]
            }
            Step::DeletePartition { time } => vec![Mutation::delete_partition(Key::new(partition()), at(*time))],
            Step::PutAll { rows } => {
                let mut seen = BTreeSet::new();
                let rows = rows.iter().filter(|(place, _)| seen.insert(*place));
                rows.map(|(place, w)| Mutation::put(key(*place), at(*w), vec![(W, Value::from(*w))], Ttl::Never))
                    .collect()
            }
            Step::Query(_) => Vec::new(),
        }
    }

    async fn compare(&self, history: i64, look: &Look) -> Result<(), String> {
        let tested = read(&self.tested, history, look).await.map_err(|error| format!("{error:?}"))?;
        let memory = read(&self.memory, history, look).await.map_err(|error| format!("{error:?}"))?;
        if tested == memory {
            return Ok(());
        }
        Err(format!("{look:?}\nread     {tested:#?}\nexpected {memory:#?}"))
    }

    /// Compares whole scans, then drops the table.
    async fn finish(&self) {
        let mut scans = Vec::new();
        for table in [&self.tested, &self.memory] {
            let mut rows: Vec<StoredRow> = table.scan().page_size(50).rows().try_collect().await.unwrap();
            rows.sort_by_key(|row| format!("{:?}", &row.values[..V]));
            scans.push(rows);
        }
        assert_eq!(scans[0], scans[1], "the scan after all histories");
        self.tested.client().drop_table(self.tested.spec().name()).await.unwrap();
    }
}

async fn read(table: &Table, history: i64, look: &Look) -> Result<Vec<StoredRow>> {
    let mut query = table.query((history, "g")).limit(look.limit).page_size(look.page_size);
    query = match look.prefix {
        Some(prefix) => query.prefix(prefix),
        None => query.range((look.lower, look.upper)),
    };
    query = if look.reverse { query.reverse() } else { query };
    query.rows().try_collect().await
}
