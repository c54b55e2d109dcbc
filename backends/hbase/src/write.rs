//! Writes of rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join;
use futures::stream::{self, StreamExt};
use peristyle_core::model::Key;
use peristyle_core::request::{Mutation, Write};
use peristyle_core::{Error, Response, Result};

use crate::codec::{Layout, encode_row_key};
use crate::config::Api;
use crate::connection::Call;
use crate::error;
use crate::mutation::row_write;
use crate::store::Store;
use crate::wire::hbase2::{TDelete, TPut};
use crate::wire::{RowStep, RowWrite, calls, thrift2};

/// How many rows that no batch takes are written at a time.
const SINGLES: usize = 16;
/// How often a batch is cut in halves to find the rows that are at fault, before the rest is given up.
const MAX_CUTS: usize = 64;

/// Rows with their places in the request.
type Placed<T> = Vec<(usize, T)>;

impl Store {
    pub(crate) async fn write(&self, layout: &Layout, write: Write, call: &Call) -> Result<Response> {
        match write {
            Write::Apply(mutation) => self.apply(layout, &mutation, call).await.map(|()| Response::Done),
            Write::ApplyAll(mutations) => Ok(Response::Outcomes(self.apply_all(layout, &mutations, call).await)),
            Write::Increment { key, deltas } => {
                self.increment(layout, &key, deltas, call).await.map(|()| Response::Done)
            }
            Write::CompareAndPut { mutation, condition } => {
                self.compare_and_put(layout, &mutation, &condition, call).await.map(Response::Compared)
            }
        }
    }

    async fn apply(&self, layout: &Layout, mutation: &Mutation, call: &Call) -> Result<()> {
        let write = row_write(layout, mutation, self.clock.seconds())?;
        let call = call.at(self.host(layout, &write.row));
        calls::write(&self.gateways, &call, &layout.table, write).await
    }

    async fn increment(&self, layout: &Layout, key: &Key, deltas: Vec<(usize, i64)>, call: &Call) -> Result<()> {
        let row = encode_row_key(layout, key.values())?;
        let cells = deltas.into_iter().map(|(column, delta)| layout.cell(column).map(|cell| (cell.clone(), delta)));
        let cells = cells.collect::<Result<Vec<_>>>()?;
        let call = call.at(self.host(layout, &row));
        calls::increment(&self.gateways, &call, &layout.table, row, cells).await
    }

    /// Writes many rows, with an outcome for each. Rows that only put or only delete go together; the others, whose steps must
    /// be one unit, one by one.
    async fn apply_all(&self, layout: &Layout, mutations: &[Mutation], call: &Call) -> Vec<Result<()>> {
        let mut outcomes: Vec<Result<()>> = mutations.iter().map(|_| Ok(())).collect();
        let mut plan = Plan::default();
        let now = self.clock.seconds();
        for (place, mutation) in mutations.iter().enumerate() {
            match row_write(layout, mutation, now) {
                // One call of Thrift 1 has one timestamp for all its rows.
                Ok(write) if self.config.api == Api::Thrift1 => plan.singles.push((place, write)),
                Ok(write) => plan.add(place, write),
                Err(error) => set(&mut outcomes, place, Err(error)),
            }
        }
        let batches = join(self.put_all(layout, plan.puts, call), self.delete_all(layout, plan.deletes, call));
        let ((put, deleted), singles) = join(batches, self.write_singly(layout, plan.singles, call)).await;
        let failed: Vec<usize> = put.iter().filter(|(_, outcome)| outcome.is_err()).map(|(place, _)| *place).collect();
        // What lies below cells that expire is deleted behind their put: readers see no difference until they expire.
        let below = plan.below.into_iter().filter(|(place, _)| !failed.contains(place)).collect();
        let below = self.delete_all(layout, below, call).await;
        for (place, outcome) in put.into_iter().chain(deleted).chain(singles).chain(below) {
            set(&mut outcomes, place, outcome);
        }
        outcomes
    }

    async fn put_all(&self, layout: &Layout, puts: Placed<TPut>, call: &Call) -> Placed<Result<()>> {
        let send = |puts: Vec<TPut>, call: Call| async move {
            let (puts, sent) = thrift2::put_multiple(&self.gateways, &call, &layout.table, puts).await;
            (puts, sent)
        };
        let batches = self.batches(layout, puts, |put| &put.row, put_size);
        outcomes_of(batches, call, send).await
    }

    async fn delete_all(&self, layout: &Layout, deletes: Placed<TDelete>, call: &Call) -> Placed<Result<()>> {
        let send = |deletes: Vec<TDelete>, call: Call| async move {
            let (deletes, sent) = thrift2::delete_multiple(&self.gateways, &call, &layout.table, deletes).await;
            (deletes, sent)
        };
        let batches = self.batches(layout, deletes, |delete| &delete.row, |delete| delete.row.len() + 128);
        outcomes_of(batches, call, send).await
    }

    async fn write_singly(&self, layout: &Layout, writes: Placed<RowWrite>, call: &Call) -> Placed<Result<()>> {
        let write = |(place, write): (usize, RowWrite)| async move {
            let call = call.at(self.host(layout, &write.row));
            (place, calls::write(&self.gateways, &call, &layout.table, write).await)
        };
        stream::iter(writes).map(write).buffer_unordered(SINGLES).collect().await
    }

    /// Groups rows by the gateway that sits with their region; one group where there is no choice.
    pub(crate) fn by_host<T>(
        &self,
        layout: &Layout,
        items: impl IntoIterator<Item = T>,
        row: impl Fn(&T) -> &Vec<u8>,
    ) -> BTreeMap<Option<Arc<str>>, Vec<T>> {
        let mut groups: BTreeMap<Option<Arc<str>>, Vec<T>> = BTreeMap::new();
        for item in items {
            groups.entry(self.host(layout, row(&item))).or_default().push(item);
        }
        groups
    }

    /// Groups rows by gateway, and cuts the groups so that no request is over the limit.
    fn batches<T>(
        &self,
        layout: &Layout,
        items: Placed<T>,
        row: impl Fn(&T) -> &Vec<u8>,
        size: impl Fn(&T) -> usize,
    ) -> Vec<(Option<Arc<str>>, Placed<T>)> {
        // Room for the call itself, and for what the protocol puts around each field.
        let limit = self.config.max_request_bytes.saturating_sub(4096);
        let mut batches: Vec<(Option<Arc<str>>, Placed<T>)> = Vec::new();
        for (host, group) in self.by_host(layout, items, |(_, item)| row(item)) {
            let mut bytes = usize::MAX;
            for item in group {
                let added = size(&item.1);
                bytes = bytes.saturating_add(added);
                match batches.last_mut().filter(|_| bytes <= limit) {
                    Some((_, batch)) => batch.push(item),
                    None => {
                        bytes = added;
                        batches.push((host.clone(), vec![item]));
                    }
                }
            }
        }
        batches
    }
}

fn put_size(put: &TPut) -> usize {
    let cell =
        |cell: &crate::wire::hbase2::TColumnValue| cell.family.len() + cell.qualifier.len() + cell.value.len() + 40;
    put.row.len() + 80 + put.column_values.iter().map(cell).sum::<usize>()
}

fn set(outcomes: &mut [Result<()>], place: usize, outcome: Result<()>) {
    if let (Err(_), Some(slot)) = (&outcome, outcomes.get_mut(place)) {
        *slot = outcome;
    }
}

/// How the rows of a request travel.
#[derive(Default)]
struct Plan {
    puts: Placed<TPut>,
    deletes: Placed<TDelete>,
    /// What is deleted below puts that expire.
    below: Placed<TDelete>,
    singles: Placed<RowWrite>,
}

impl Plan {
    fn add(&mut self, place: usize, mut write: RowWrite) {
        let (last, first) = (write.steps.pop(), write.steps.pop());
        if !write.steps.is_empty() {
            write.steps.extend(first.into_iter().chain(last));
            return self.singles.push((place, write));
        }
        match (first, last) {
            (None, Some(RowStep::Put { cells, timestamp, ttl: None })) => {
                self.puts.push((place, thrift2::put(write.row, cells, timestamp, None)));
            }
            (
                Some(RowStep::DeleteCells { cells: below, timestamp: before }),
                Some(RowStep::Put { cells, timestamp, ttl: Some(ttl) }),
            ) if before < timestamp => {
                self.below.push((place, thrift2::delete(write.row.clone(), Some(below), before)));
                self.puts.push((place, thrift2::put(write.row, cells, timestamp, Some(ttl))));
            }
            (None, Some(RowStep::DeleteCells { cells, timestamp })) => {
                self.deletes.push((place, thrift2::delete(write.row, Some(cells), timestamp)));
            }
            (None, Some(RowStep::DeleteRow { timestamp })) => {
                self.deletes.push((place, thrift2::delete(write.row, None, timestamp)));
            }
            (first, last) => {
                write.steps.extend(first.into_iter().chain(last));
                self.singles.push((place, write));
            }
        }
    }
}

/// Sends batches at the same time. A gateway tells nothing of single rows, so a batch in which rows are at fault is cut in
/// halves until they are found. Every row has its timestamps already, so to send it twice changes nothing.
async fn outcomes_of<T, F, S>(batches: Vec<(Option<Arc<str>>, Placed<T>)>, call: &Call, send: F) -> Placed<Result<()>>
where
    F: Fn(Vec<T>, Call) -> S,
    S: Future<Output = (Vec<T>, Result<()>)>,
{
    let send = &send;
    let batch = |(host, batch): (Option<Arc<str>>, Placed<T>)| async move {
        let call = call.at(host);
        let mut left = vec![batch];
        let mut outcomes = Vec::new();
        let mut cuts = 0;
        while let Some(batch) = left.pop() {
            let (places, items): (Vec<usize>, Vec<T>) = batch.into_iter().unzip();
            let (items, outcome) = send(items, call.clone()).await;
            match outcome {
                Err(error) if places.len() > 1 && error::is_of_single_rows(&error) && cuts < MAX_CUTS => {
                    cuts += 1;
                    let mut first: Placed<T> = places.into_iter().zip(items).collect();
                    left.push(first.split_off(first.len() / 2));
                    left.push(first);
                }
                outcome => outcomes.extend(places.into_iter().map(|place| (place, shared(&outcome)))),
            }
        }
        outcomes
    };
    stream::iter(batches).map(batch).buffer_unordered(SINGLES).concat().await
}

fn shared(outcome: &Result<()>) -> Result<()> {
    outcome.as_ref().copied().map_err(Error::share)
}
