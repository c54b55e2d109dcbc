//! Many rows at a time.

use std::collections::HashMap;
use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::time::Duration;

use futures::Stream;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, FuturesUnordered, StreamExt};
use tokio::task::coop::consume_budget;

use super::{Table, projection, request_options};
use crate::error::{Error, Outcome, Result};
use crate::grouping::{Grouping, Place};
use crate::model::{FromRow, Key, StoredRow, ToRow, Ttl};
use crate::request::{Mutation, Projection, Read, Request, RequestOptions, Write};
use crate::response::Response;
use crate::streamer::buffer::{Batch, Buffer, Caps, Sent};

/// Rows that a [`PutAll`] holds at a time, from the first that has no outcome to the last that it took.
const MAX_ROWS: usize = 65_536;

/// Bytes of such rows.
const MAX_BYTES: usize = 64 << 20;

/// Rows that are taken from the caller at a time.
const CHUNK: usize = 64;

/// A put of many rows; await it to send it.
#[must_use = "a put is sent when it is awaited"]
pub struct PutAll<'a> {
    table: &'a Table,
    /// Puts without a write time, as many at a time as are at hand.
    rows: BoxStream<'a, Vec<Result<Mutation>>>,
    ttl: Result<Ttl>,
    rows_per_request: usize,
    concurrency: usize,
    grouping: Grouping,
    options: RequestOptions,
}

impl<'a> PutAll<'a> {
    pub(super) fn new<R: ToRow>(table: &'a Table, rows: impl Stream<Item = R> + Send + 'a) -> Self {
        let (rows_per_request, concurrency) = table.client.batching();
        let rows = rows.map(|row| Mutation::put_row(&row, &table.spec)).ready_chunks(CHUNK).boxed();
        let (ttl, grouping, options) = (Ok(Ttl::TableDefault), table.client.grouping(), RequestOptions::default());
        Self { table, rows, ttl, rows_per_request, concurrency, grouping, options }
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

    /// Which rows go into one request; default: the client's setting.
    pub fn grouping(mut self, grouping: Grouping) -> Self {
        self.grouping = grouping;
        self
    }

    request_options!();

    async fn send(self) -> Result<PutAllReport> {
        let ttl = self.ttl?;
        let limits = self.table.client.capabilities().limits();
        let caps = Caps { rows: self.rows_per_request.min(limits.batch_rows).max(1), bytes: limits.batch_bytes };
        let mut rows = self.rows.fuse();
        let mut pending = Pending::new(self.table, self.grouping, ttl, caps);
        let mut requests = FuturesUnordered::new();
        loop {
            while requests.len() < self.concurrency
                && let Some(batch) = pending.next(rows.is_done())
            {
                requests.push(apply_all(self.table, batch, self.options));
            }
            // While a full request waits for its turn, more rows would only take up room.
            let takes = pending.has_room() && !pending.buffer.is_ready() && !rows.is_done();
            // Rows that are at hand without end leave the runtime its turn.
            consume_budget().await;
            tokio::select! {
                biased;
                Some((sent, answer)) = requests.next(), if !requests.is_empty() => pending.end(sent, answer),
                Some(rows) = rows.next(), if takes => pending.add(rows),
                else => if rows.is_done() && requests.is_empty() && pending.is_empty() { break },
            }
        }
        Ok(PutAllReport { outcomes: pending.outcomes })
    }
}

impl fmt::Debug for PutAll<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutAll").field("table", self.table.spec.name()).finish_non_exhaustive()
    }
}

/// The rows of a put that were taken: those without an outcome, and the outcomes of all, in the caller's order.
struct Pending<'a> {
    table: &'a Table,
    grouping: Grouping,
    ttl: Ttl,
    buffer: Buffer,
    rows: usize,
    bytes: usize,
    outcomes: Vec<Result<()>>,
}

impl<'a> Pending<'a> {
    fn new(table: &'a Table, grouping: Grouping, ttl: Ttl, caps: Caps) -> Self {
        let buffer = Buffer::new(caps).holding().joining(table.client.topology().joins_owners());
        Self { table, grouping, ttl, buffer, rows: 0, bytes: 0, outcomes: Vec::new() }
    }

    fn has_room(&self) -> bool {
        self.rows < MAX_ROWS && self.bytes < MAX_BYTES
    }

    fn is_empty(&self) -> bool {
        self.rows == 0
    }

    fn add(&mut self, rows: Vec<Result<Mutation>>) {
        let client = &self.table.client;
        let keys = rows.iter().filter_map(|row| row.as_ref().ok()).map(|put| &put.key);
        let mut places = self.grouping.places(client.topology(), &self.table.spec, keys).into_iter();
        let mut times = client.next_write_times(rows.len());
        for row in rows {
            let added = row.map(|put| {
                if let (Some(place), Some(time)) = (places.next(), times.next()) {
                    self.add_row(place, Mutation { write_time: time, ..put.with_ttl(self.ttl) });
                }
            });
            self.outcomes.push(added);
        }
    }

    /// Adds a row. It counts as applied until it fails.
    fn add_row(&mut self, place: Place, mutation: Mutation) {
        let bytes = mutation.size();
        self.rows += 1;
        self.bytes += bytes;
        self.buffer.add(to_u64(self.outcomes.len()), place, mutation, bytes, None);
    }

    /// The next request. One that isn't full waits until there are no more rows, or no room for them.
    fn next(&mut self, is_last: bool) -> Option<Batch> {
        if !self.buffer.is_ready() && (is_last || !self.has_room()) {
            self.buffer.release();
        }
        self.buffer.next()
    }

    fn end(&mut self, sent: Sent, answer: Result<Response>) {
        let ended = self.buffer.end(sent, answer);
        self.rows -= ended.rows;
        self.bytes -= ended.bytes;
        for (place, error) in ended.failures {
            if let Some(outcome) = usize::try_from(place).ok().and_then(|place| self.outcomes.get_mut(place)) {
                *outcome = Err(error);
            }
        }
    }
}

fn to_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

async fn apply_all(table: &Table, batch: Batch, options: RequestOptions) -> (Sent, Result<Response>) {
    let request = Request::write(table.spec.clone(), Write::ApplyAll(batch.mutations)).with_options(options);
    (batch.sent, table.client.call(request).await)
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
        let mut rows: Vec<Option<StoredRow>> = Vec::new();
        let keys = self.keys?;
        rows.resize_with(keys.len(), || None);
        let requests = requests(self.table, keys, self.rows_per_request);
        let (table, options, columns) = (self.table, self.options, self.projection);
        let read = |(places, keys): (Vec<usize>, Vec<Key>)| {
            let read = Read::GetAll { keys, columns: columns.clone() };
            let request = Request::read(table.spec.clone(), read).with_options(options);
            async move { Ok::<_, Error>((places, table.client.call(request).await?.into_rows()?)) }
        };
        let mut answers = stream::iter(requests).map(read).buffer_unordered(self.concurrency);
        while let Some(answer) = answers.next().await {
            let (places, found) = answer?;
            for (place, row) in places.into_iter().zip(found) {
                if let Some(slot) = rows.get_mut(place) {
                    *slot = row;
                }
            }
        }
        rows.into_iter().map(|row| row.map(|row| T::from_row(row, &table.spec)).transpose()).collect()
    }
}

/// Cuts keys into requests by the client's grouping, each key with its place in the caller's order.
fn requests(table: &Table, keys: Vec<Key>, most: usize) -> Vec<(Vec<usize>, Vec<Key>)> {
    let (grouping, topology) = (table.client.grouping(), table.client.topology());
    // One request takes them all, whoever owns them.
    if topology.joins_owners() && !keys.is_empty() && keys.len() <= most {
        return vec![((0..keys.len()).collect(), keys)];
    }
    let mut full = Vec::new();
    let mut groups: HashMap<u64, (Vec<usize>, Vec<Key>)> = HashMap::new();
    let places = grouping.places(topology, &table.spec, keys.iter());
    for ((index, key), place) in keys.into_iter().enumerate().zip(places) {
        let group = groups.entry(place.group).or_default();
        group.0.push(index);
        group.1.push(key);
        if group.0.len() >= most {
            full.push(std::mem::take(group));
        }
    }
    let left = groups.into_values().filter(|(places, _)| !places.is_empty());
    if topology.joins_owners() {
        let mut left: Vec<(usize, Key)> = left.flat_map(|(places, keys)| places.into_iter().zip(keys)).collect();
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(most));
            full.push(std::mem::replace(&mut left, rest).into_iter().unzip());
        }
    } else {
        full.extend(left);
    }
    full
}

impl<'a, T: FromRow + Send + 'a> IntoFuture for GetAll<'a, T> {
    type Output = Result<Vec<Option<T>>>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let table = self.table;
        async move { self.send().await.map_err(|error| error.with_context("get_all", table.spec.name())) }.boxed()
    }
}

#[cfg(test)]
mod tests;
