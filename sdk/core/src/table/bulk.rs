//! Many rows at a time.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt};

use super::{Table, projection, request_options};
use crate::codec::ordered::encode_key;
use crate::error::{Error, Outcome, Result};
use crate::model::{FromRow, Key, ToRow, Ttl};
use crate::request::{Mutation, Projection, Read, Request, RequestOptions, Write};

/// The most bytes of rows in one request: what HBase's gateways and Cassandra's mutations take with room to spare.
const MAX_REQUEST_BYTES: usize = 1 << 20;

/// A put of many rows; await it to send it.
#[derive(Debug)]
#[must_use = "a put is sent when it is awaited"]
pub struct PutAll<'a> {
    table: &'a Table,
    mutations: Vec<Result<Mutation>>,
    ttl: Result<Ttl>,
    rows_per_request: usize,
    concurrency: usize,
    options: RequestOptions,
}

impl<'a> PutAll<'a> {
    pub(super) fn new<R: ToRow>(table: &'a Table, rows: impl IntoIterator<Item = R>) -> Self {
        let (rows_per_request, concurrency) = table.client.batching();
        let mutation = |row: R| {
            let (key, values) = row.to_row(&table.spec)?;
            Ok(Mutation::put(key, table.client.next_write_time(), values, Ttl::TableDefault))
        };
        let mutations = rows.into_iter().map(mutation).collect();
        let options = RequestOptions::default();
        Self { table, mutations, ttl: Ok(Ttl::TableDefault), rows_per_request, concurrency, options }
    }

    /// The columns live this long, rounded up to whole seconds; default: the table's default.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Ttl::after(ttl);
        self
    }

    /// How many rows go into one request; default: the client's setting.
    pub fn rows_per_request(mut self, rows: NonZeroUsize) -> Self {
        self.rows_per_request = rows.get();
        self
    }

    /// How many requests run at a time; default: the client's setting.
    pub fn concurrency(mut self, requests: NonZeroUsize) -> Self {
        self.concurrency = requests.get();
        self
    }

    request_options!();

    async fn send(self) -> Result<PutAllReport> {
        let ttl = self.ttl?;
        let rows = self.mutations.len();
        let plan = Plan::new(self.table, self.mutations, ttl);
        let chunks = chunks(plan.folded, self.rows_per_request);
        let (table, options) = (self.table, self.options);
        let sent =
            stream::iter(chunks).map(|chunk| apply_all(table, chunk, options)).buffer_unordered(self.concurrency);
        let sent: Vec<_> = sent.collect().await;
        let mut outcomes: Vec<Result<()>> = (0..rows).map(|_| Ok(())).collect();
        for (places, outcome) in plan.faults.into_iter().chain(sent.into_iter().flatten()) {
            set_all(&mut outcomes, &places, outcome);
        }
        Ok(PutAllReport { outcomes })
    }
}

/// The places in the caller's order that share an outcome, and what is sent for them.
type Folded = (Vec<usize>, Mutation);

struct Plan {
    folded: Vec<Folded>,
    faults: Vec<(Vec<usize>, Result<()>)>,
}

impl Plan {
    /// Folds the writes of one row into one, so that the last one wins on every backend.
    fn new(table: &Table, mutations: Vec<Result<Mutation>>, ttl: Ttl) -> Self {
        let mut plan = Self { folded: Vec::with_capacity(mutations.len()), faults: Vec::new() };
        let mut by_key: HashMap<Vec<u8>, usize> = HashMap::with_capacity(mutations.len());
        for (place, mutation) in mutations.into_iter().enumerate() {
            let mut key = Vec::with_capacity(32);
            let encoded = mutation.and_then(|mutation| {
                encode_key(mutation.key.values(), table.spec.primary_key(), &mut key)?;
                Ok(mutation.with_ttl(ttl))
            });
            match encoded {
                Err(error) => plan.faults.push((vec![place], Err(error))),
                Ok(mutation) => plan.add(place, mutation, by_key.entry(key)),
            }
        }
        plan
    }

    fn add(&mut self, place: usize, mutation: Mutation, entry: Entry<'_, Vec<u8>, usize>) {
        match entry {
            Entry::Vacant(entry) => {
                entry.insert(self.folded.len());
                self.folded.push((vec![place], mutation));
            }
            Entry::Occupied(entry) => {
                if let Some((places, earlier)) = self.folded.get_mut(*entry.get()) {
                    places.push(place);
                    earlier.fold(mutation);
                }
            }
        }
    }
}

/// Cuts what is to be sent into requests, by rows and by bytes.
fn chunks(folded: Vec<Folded>, rows: usize) -> Vec<Vec<Folded>> {
    let mut chunks: Vec<Vec<Folded>> = Vec::new();
    let mut bytes = 0;
    for folded in folded {
        let size = folded.1.size();
        match chunks.last_mut() {
            Some(chunk) if chunk.len() < rows && bytes + size <= MAX_REQUEST_BYTES => {
                chunk.push(folded);
                bytes += size;
            }
            _ => {
                chunks.push(vec![folded]);
                bytes = size;
            }
        }
    }
    chunks
}

async fn apply_all(table: &Table, chunk: Vec<Folded>, options: RequestOptions) -> Vec<(Vec<usize>, Result<()>)> {
    let (places, mutations): (Vec<_>, Vec<_>) = chunk.into_iter().unzip();
    let request = Request::write(table.spec.clone(), Write::ApplyAll(mutations)).with_options(options);
    let outcomes = match table.client.call(request).await.and_then(crate::Response::into_outcomes) {
        Ok(outcomes) => outcomes,
        Err(error) => places.iter().map(|_| Err(error.share())).collect(),
    };
    places.into_iter().zip(outcomes).collect()
}

/// Writes that were folded into one share what became of it.
fn set_all(outcomes: &mut [Result<()>], places: &[usize], outcome: Result<()>) {
    let Err(error) = outcome else { return };
    for place in places {
        if let Some(outcome) = outcomes.get_mut(*place) {
            *outcome = Err(error.share());
        }
    }
}

impl<'a> IntoFuture for PutAll<'a> {
    type Output = Result<PutAllReport>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let table = self.table;
        async move { self.send().await.map_err(|error| error.with_context("put_all", table.spec.name())) }.boxed()
    }
}

/// What became of each row of a [`PutAll`].
#[derive(Debug)]
#[must_use = "rows may have failed"]
pub struct PutAllReport {
    /// The outcome of each row, in the order in which the rows were given.
    pub outcomes: Vec<Result<()>>,
}

impl PutAllReport {
    /// How many rows were applied.
    pub fn applied(&self) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.is_ok()).count()
    }

    /// The rows that failed, by place; [`Error::outcome`] tells those that were not applied from the doubtful ones.
    pub fn failures(&self) -> impl Iterator<Item = (usize, &Error)> {
        self.outcomes.iter().enumerate().filter_map(|(place, outcome)| Some((place, outcome.as_ref().err()?)))
    }

    /// `Ok` if every row was applied, else the first failure.
    ///
    /// # Errors
    /// The first failure; a doubtful one ([`Outcome::Unknown`]) first, since it matters most.
    pub fn into_result(self) -> Result<()> {
        let mut failures: Vec<Error> = self.outcomes.into_iter().filter_map(Result::err).collect();
        failures.sort_by_key(|error| error.outcome() == Outcome::NotApplied);
        failures.into_iter().next().map_or(Ok(()), Err)
    }
}

/// A read of many rows into `T`; await it to send it.
#[derive(Debug)]
#[must_use = "a get is sent when it is awaited"]
pub struct GetAll<'a, T> {
    table: &'a Table,
    keys: Result<Vec<Key>>,
    projection: Projection,
    fault: Option<Error>,
    rows_per_request: usize,
    concurrency: usize,
    options: RequestOptions,
    target: PhantomData<fn() -> T>,
}

impl<'a, T: FromRow> GetAll<'a, T> {
    pub(super) fn new(table: &'a Table, keys: Result<Vec<Key>>) -> Self {
        let (rows_per_request, concurrency) = table.client.batching();
        let (projection, options) = (Projection::default(), RequestOptions::default());
        Self { table, keys, projection, fault: None, rows_per_request, concurrency, options, target: PhantomData }
    }

    /// How many keys go into one request; default: the client's setting.
    pub fn rows_per_request(mut self, rows: NonZeroUsize) -> Self {
        self.rows_per_request = rows.get();
        self
    }

    /// How many requests run at a time; default: the client's setting.
    pub fn concurrency(mut self, requests: NonZeroUsize) -> Self {
        self.concurrency = requests.get();
        self
    }

    projection!();
    request_options!();

    async fn send(self) -> Result<Vec<Option<T>>> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let keys = self.keys?;
        let chunks: Vec<Vec<Key>> = keys.chunks(self.rows_per_request).map(<[Key]>::to_vec).collect();
        let (table, options, columns) = (self.table, self.options, self.projection);
        let read = |keys| {
            let read = Read::GetAll { keys, columns: columns.clone() };
            let request = Request::read(table.spec.clone(), read).with_options(options);
            async move { table.client.call(request).await?.into_rows() }
        };
        let mut answers = stream::iter(chunks).map(read).buffered(self.concurrency);
        let mut rows = Vec::with_capacity(keys.len());
        while let Some(answer) = answers.next().await {
            for row in answer? {
                rows.push(row.map(|row| T::from_row(row, &table.spec)).transpose()?);
            }
        }
        Ok(rows)
    }
}

impl<'a, T: FromRow + Send + 'a> IntoFuture for GetAll<'a, T> {
    type Output = Result<Vec<Option<T>>>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let table = self.table;
        async move { self.send().await.map_err(|error| error.with_context("get_all", table.spec.name())) }.boxed()
    }
}
