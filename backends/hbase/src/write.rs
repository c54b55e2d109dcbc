//! Writes of rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join;
use futures::stream::{self, StreamExt};
use peristyle_core::model::Key;
use peristyle_core::request::{Mutation, Write};
use peristyle_core::{Error, Response, Result};

use crate::codec::{Layout, RowKeys, encode_row_key};
use crate::config::Api;
use crate::connection::Call;
use crate::error;
use crate::mutation::{plain_put, row_write};
use crate::store::Store;
use crate::wire::{RowStep, RowWrite, StepOfRow, calls};

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
        let row = encode_row_key(layout, mutation.key.values())?;
        let write = row_write(layout, mutation, &row, self.clock.seconds())?;
        let call = call.at(self.place(layout, &row));
        calls::write(&self.gateways, &call, &layout.table, &write).await
    }

    async fn increment(&self, layout: &Layout, key: &Key, deltas: Vec<(usize, i64)>, call: &Call) -> Result<()> {
        let row = encode_row_key(layout, key.values())?;
        let cells = deltas.into_iter().map(|(column, delta)| layout.cell(column).map(|cell| (cell.clone(), delta)));
        let cells = cells.collect::<Result<Vec<_>>>()?;
        let call = call.at(self.place(layout, &row));
        calls::increment(&self.gateways, &call, &layout.table, row, cells).await
    }

    /// Writes many rows, with an outcome for each. Rows that only put or only delete go together; the others, whose steps must
    /// be one unit, one by one.
    async fn apply_all(&self, layout: &Layout, mutations: &[Mutation], call: &Call) -> Vec<Result<()>> {
        let mut outcomes: Vec<Result<()>> = mutations.iter().map(|_| Ok(())).collect();
        let mut plan = Plan::default();
        let mut rows = RowKeys::with_capacity(mutations.len());
        for (mutation, outcome) in mutations.iter().zip(&mut outcomes) {
            *outcome = rows.push(layout, mutation.key.values());
        }
        let now = self.clock.seconds();
        for ((place, mutation), row) in mutations.iter().enumerate().zip(rows.iter()).filter(|(_, row)| !row.is_empty())
        {
            let added = plan.add(layout, place, mutation, row, now);
            set(&mut outcomes, place, added);
        }
        let batches = join(self.write_batches(layout, plan.puts, call), self.write_batches(layout, plan.deletes, call));
        let ((put, deleted), singles) = join(batches, self.write_singly(layout, plan.singles, call)).await;
        let failed: Vec<usize> = put.iter().filter(|(_, outcome)| outcome.is_err()).map(|(place, _)| *place).collect();
        // What lies below cells that expire is deleted behind their put: readers see no difference until they expire.
        let below = plan.below.into_iter().filter(|(place, _)| !failed.contains(place)).collect();
        let below = self.write_batches(layout, below, call).await;
        for (place, outcome) in put.into_iter().chain(deleted).chain(singles).chain(below) {
            set(&mut outcomes, place, outcome);
        }
        outcomes
    }

    async fn write_singly(&self, layout: &Layout, writes: Placed<RowWrite<'_>>, call: &Call) -> Placed<Result<()>> {
        let write = |(place, write)| self.write_single(layout, place, write, call);
        let writes: Vec<_> = writes.into_iter().map(write).collect();
        stream::iter(writes).buffer_unordered(SINGLES).collect().await
    }

    async fn write_single(
        &self,
        layout: &Layout,
        place: usize,
        write: RowWrite<'_>,
        call: &Call,
    ) -> (usize, Result<()>) {
        let call = call.at(self.place(layout, write.row));
        (place, calls::write(&self.gateways, &call, &layout.table, &write).await)
    }

    /// Writes what is all puts or all deletes, in batches at the same time.
    async fn write_batches(&self, layout: &Layout, items: Placed<StepOfRow<'_>>, call: &Call) -> Placed<Result<()>> {
        let batches = self.batches(layout, items);
        let writes: Vec<_> = batches.into_iter().map(|batch| self.write_batch(layout, batch, call)).collect();
        stream::iter(writes).buffer_unordered(SINGLES).concat().await
    }

    /// Writes a batch. A gateway tells nothing of single rows, so a batch in which rows are at fault is cut in halves until
    /// they are found. Every row has its timestamps already, so to send it twice changes nothing.
    async fn write_batch(&self, layout: &Layout, batch: Batch<'_>, call: &Call) -> Placed<Result<()>> {
        let call = call.at(batch.place.clone());
        let mut left = vec![batch];
        let mut outcomes = Vec::new();
        let mut cuts = 0;
        while let Some(mut batch) = left.pop() {
            match calls::write_multiple(&self.gateways, &call, &layout.table, &batch.steps).await {
                Err(error) if batch.steps.len() > 1 && error::is_of_single_rows(&error) && cuts < MAX_CUTS => {
                    cuts += 1;
                    left.push(batch.split());
                    left.push(batch);
                }
                outcome => outcomes.extend(batch.indexes.into_iter().map(|index| (index, shared(&outcome)))),
            }
        }
        outcomes
    }

    /// Groups rows by the gateway that sits with their region; one group where there is no choice.
    pub(crate) fn by_place<T>(
        &self,
        layout: &Layout,
        items: impl IntoIterator<Item = T>,
        row: impl Fn(&T) -> &[u8],
    ) -> BTreeMap<Option<Arc<str>>, Vec<T>> {
        if !self.gateways.have_choice() {
            return BTreeMap::from([(None, items.into_iter().collect())]);
        }
        let mut groups: BTreeMap<Option<Arc<str>>, Vec<T>> = BTreeMap::new();
        for item in items {
            groups.entry(self.place(layout, row(&item))).or_default().push(item);
        }
        groups
    }

    /// Groups rows by gateway, and cuts the groups so that no request is over the limit.
    fn batches<'a>(&self, layout: &Layout, items: Placed<StepOfRow<'a>>) -> Vec<Batch<'a>> {
        // Room for the call itself.
        let limit = self.config.max_request_bytes.saturating_sub(4096);
        let mut batches: Vec<Batch<'a>> = Vec::new();
        for (place, mut group) in self.by_place(layout, items, |(_, item)| item.row) {
            // One call of Thrift 1 has one timestamp and one time to live for all its rows.
            let moment = |item: &StepOfRow<'_>| {
                (self.config.api == Api::Thrift1).then(|| (item.step.timestamp(), item.step.ttl()))
            };
            if self.config.api == Api::Thrift1 {
                group.sort_by_key(|(_, item)| moment(item));
            }
            let (mut bytes, mut last) = (usize::MAX, None);
            for (index, item) in group {
                let added = item.row.len() + item.step.size();
                bytes = bytes.saturating_add(added);
                if bytes > limit || moment(&item) != last {
                    (bytes, last) = (added, moment(&item));
                    batches.push(Batch { place: place.clone(), ..Batch::default() });
                }
                if let Some(batch) = batches.last_mut() {
                    batch.indexes.push(index);
                    batch.steps.push(item);
                }
            }
        }
        batches
    }
}

/// Rows that travel in one request to one gateway, and where they stand in the whole.
#[derive(Default)]
struct Batch<'a> {
    place: Option<Arc<str>>,
    indexes: Vec<usize>,
    steps: Vec<StepOfRow<'a>>,
}

impl Batch<'_> {
    /// Takes the second half away.
    fn split(&mut self) -> Self {
        let half = self.steps.len() / 2;
        Self { place: self.place.clone(), indexes: self.indexes.split_off(half), steps: self.steps.split_off(half) }
    }
}

fn set(outcomes: &mut [Result<()>], place: usize, outcome: Result<()>) {
    if let (Err(_), Some(slot)) = (&outcome, outcomes.get_mut(place)) {
        *slot = outcome;
    }
}

/// How the rows of a request travel.
#[derive(Default)]
struct Plan<'a> {
    puts: Placed<StepOfRow<'a>>,
    deletes: Placed<StepOfRow<'a>>,
    /// What is deleted below puts that expire.
    below: Placed<StepOfRow<'a>>,
    singles: Placed<RowWrite<'a>>,
}

impl<'a> Plan<'a> {
    fn add(&mut self, layout: &'a Layout, place: usize, mutation: &'a Mutation, row: &'a [u8], now: i64) -> Result<()> {
        if let Some(put) = plain_put(layout, mutation, row)? {
            self.puts.push((place, put));
        } else {
            self.add_steps(place, row_write(layout, mutation, row, now)?);
        }
        Ok(())
    }

    fn add_steps(&mut self, place: usize, mut write: RowWrite<'a>) {
        match write.steps.as_slice() {
            [RowStep::Put { ttl: None, .. } | RowStep::DeleteCells { .. } | RowStep::DeleteRow { .. }] => {}
            [RowStep::DeleteCells { timestamp: before, .. }, RowStep::Put { ttl: Some(_), timestamp, .. }]
                if before < timestamp => {}
            _ => return self.singles.push((place, write)),
        }
        if let Some(step) = write.steps.pop() {
            let below = write.steps.pop();
            self.below.extend(below.map(|step| (place, StepOfRow { row: write.row, step })));
            let rows = if step.is_put() { &mut self.puts } else { &mut self.deletes };
            rows.push((place, StepOfRow { row: write.row, step }));
        }
    }
}

fn shared(outcome: &Result<()>) -> Result<()> {
    outcome.as_ref().copied().map_err(Error::share)
}
