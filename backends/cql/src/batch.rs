//! Writes of many rows: grouped, sent together, and told apart again.

use std::pin::pin;
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use peristyle_core::codec::token::{append_partition, token};
use peristyle_core::model::{TableSpec, Value};
use peristyle_core::request::Mutation;
use peristyle_core::{Error, ErrorKind, Outcome, Response, Result};
use scylla::statement::batch::{Batch, BatchType};

use crate::config::BatchGrouping;
use crate::part::{Part, parts, single, sort_cells};
use crate::request::{Call, Shared};
use crate::statement::{Shape, Statement};

/// Batches of one `put_all` under way at once.
const IN_FLIGHT: usize = 64;

/// Rows in a batch: beyond, throughput falls again.
const ROWS: usize = 100;

/// Bytes of one partition in a batch: well below the 50 KiB at which Cassandra refuses a batch.
const BYTES: usize = 40 << 10;

/// Bytes of several partitions in one batch: Cassandra warns of more, of each such batch.
const MIXED_BYTES: usize = 5 << 10;

/// What Cassandra counts for a row beside its data, rounded up.
const ROW_OVERHEAD: usize = 80;

pub(crate) async fn apply_all(
    shared: Arc<Shared>,
    table: Arc<TableSpec>,
    mut mutations: Vec<Mutation>,
    call: Call,
) -> Result<Response> {
    Shared::check(&table)?;
    for mutation in &mut mutations {
        sort_cells(&mut mutation.cells);
    }
    let mut outcomes: Vec<Result<()>> = Vec::with_capacity(mutations.len());
    let mut rows = Vec::with_capacity(mutations.len());
    let mut tokens = Tokens::default();
    for (index, mutation) in mutations.iter().enumerate() {
        let checked = shared.check_expiry(&table, mutation);
        let token = checked.and_then(|()| tokens.of(mutation.key.prefix(table.partition_len())));
        outcomes.push(token.map(|token| rows.push(Row { index, token, bytes: mutation.size() + ROW_OVERHEAD })));
    }
    let groups = groups(&shared, &table, rows);
    let mutations = &mutations;
    let sends = groups.into_iter().map(|rows| {
        let (shared, table) = (&shared, &table);
        async move { send_group(shared, table, mutations, rows, &call).await }
    });
    let mut sends = stream::iter(sends).buffer_unordered(IN_FLIGHT);
    while let Some(failed) = sends.next().await {
        for (row, error) in failed {
            if let Some(place) = outcomes.get_mut(row) {
                *place = Err(error);
            }
        }
    }
    drop(sends);
    Ok(Response::Outcomes(outcomes))
}

/// The tokens of rows that are looked at one after the other.
#[derive(Debug, Default)]
struct Tokens<'a> {
    bytes: Vec<u8>,
    /// The partition before, and its token.
    last: Option<(&'a [Value], i64)>,
}

impl<'a> Tokens<'a> {
    fn of(&mut self, partition: &'a [Value]) -> Result<i64> {
        // Values that are equal and still differ, as -0.0 from 0.0, just travel as if they were of one partition.
        if let Some((last, token)) = self.last
            && last == partition
        {
            return Ok(token);
        }
        self.bytes.clear();
        append_partition(partition, &mut self.bytes)?;
        let token = token(&self.bytes);
        self.last = Some((partition, token));
        Ok(token)
    }
}

fn groups(shared: &Shared, table: &TableSpec, rows: Vec<Row>) -> Vec<Vec<usize>> {
    match shared.config.batch_grouping {
        BatchGrouping::Partition => group(rows, None::<fn(i64) -> ()>),
        BatchGrouping::Mixed => {
            let owners = shared.owners(table);
            group(rows, Some(|token| owners.as_ref().and_then(|owners| owners.of(token))))
        }
    }
}

/// A row to be grouped.
#[derive(Debug, Clone, Copy)]
struct Row {
    index: usize,
    /// What tells its partition: two that share a token travel as one.
    token: i64,
    bytes: usize,
}

/// Rows that travel together, by index. Rows of one partition keep their order. With `owner`, rows that are alone in their
/// partition are put together by it.
fn group<O: PartialEq>(mut rows: Vec<Row>, owner: Option<impl Fn(i64) -> O>) -> Vec<Vec<usize>> {
    rows.sort_unstable_by_key(|row| (row.token, row.index));
    let mut groups = Vec::new();
    let mut mixed: Vec<(O, Pile)> = Vec::new();
    for partition in rows.chunk_by(|a, b| a.token == b.token) {
        if let ([row], Some(owner)) = (partition, &owner) {
            groups.extend(pile(&mut mixed, owner(row.token)).and_then(|pile| pile.add(row, MIXED_BYTES)));
            continue;
        }
        let mut pile = Pile::default();
        groups.extend(partition.iter().filter_map(|row| pile.add(row, BYTES)));
        groups.push(pile.rows);
    }
    groups.extend(mixed.into_iter().map(|(_, pile)| pile.rows));
    groups
}

/// The pile of an owner. There are few owners, and no more than there are rows.
fn pile<O: PartialEq>(piles: &mut Vec<(O, Pile)>, owner: O) -> Option<&mut Pile> {
    let place = piles.iter().position(|(other, _)| *other == owner).unwrap_or_else(|| {
        piles.push((owner, Pile::default()));
        piles.len() - 1
    });
    piles.get_mut(place).map(|(_, pile)| pile)
}

#[derive(Debug, Default)]
struct Pile {
    rows: Vec<usize>,
    bytes: usize,
}

impl Pile {
    /// Adds a row; gives what was there if the row doesn't fit on it.
    fn add(&mut self, row: &Row, max_bytes: usize) -> Option<Vec<usize>> {
        let full = self.rows.len() >= ROWS || self.bytes + row.bytes > max_bytes;
        let before = if full && !self.rows.is_empty() { Some(std::mem::take(self).rows) } else { None };
        self.rows.push(row.index);
        self.bytes += row.bytes;
        before
    }
}

/// Sends rows together, and tells which failed. If the server refuses them as wrong, each is sent alone, so that only the wrong
/// ones fail.
async fn send_group(
    shared: &Arc<Shared>,
    table: &Arc<TableSpec>,
    mutations: &[Mutation],
    mut rows: Vec<usize>,
    call: &Call,
) -> Vec<(usize, Error)> {
    let mut failed = Vec::new();
    let mut bundle = Bundle { parts: Vec::with_capacity(rows.len()), runs: Vec::new() };
    for row in &rows {
        let Some(mutation) = mutations.get(*row) else { continue };
        if let Err(error) = bundle.add(shared, table, mutation, call).await {
            failed.push((*row, error));
        }
    }
    rows.retain(|row| failed.iter().all(|(other, _)| other != row));
    match bundle.send(shared, table, call).await {
        Err(error) if rows.len() > 1 && is_refusal(&error) => {
            for row in rows {
                let Some(mutation) = mutations.get(row) else { continue };
                let outcome = shared.send(table, &parts(table, mutation), call).await;
                failed.extend(outcome.err().map(|error| (row, error)));
            }
        }
        Err(error) => failed.extend(rows.into_iter().map(|row| (row, error.share()))),
        Ok(()) => {}
    }
    failed
}

/// The statements of rows that travel together.
struct Bundle<'a> {
    parts: Vec<Part<'a>>,
    runs: Vec<Run>,
}

/// Statements of one shape, one behind the other.
struct Run {
    shape: Shape,
    statement: Arc<Statement>,
    parts: usize,
}

impl<'a> Bundle<'a> {
    /// Adds what writes a row; all of it or nothing.
    async fn add(
        &mut self,
        shared: &Arc<Shared>,
        table: &Arc<TableSpec>,
        mutation: &'a Mutation,
        call: &Call,
    ) -> Result<()> {
        let Some(part) = single(table, mutation) else {
            return Box::pin(self.add_parts(shared, table, parts(table, mutation), call)).await;
        };
        // Most rows have the shape of the one before.
        let shape = part.shape();
        match self.runs.last_mut() {
            Some(run) if run.shape == shape => run.parts += 1,
            _ => {
                let statement = shared.statement(table, shape.clone(), call).await?;
                self.runs.push(Run { shape, statement, parts: 1 });
            }
        }
        self.parts.push(part);
        Ok(())
    }

    async fn add_parts(
        &mut self,
        shared: &Arc<Shared>,
        table: &Arc<TableSpec>,
        parts: Vec<Part<'a>>,
        call: &Call,
    ) -> Result<()> {
        let mut runs = Vec::with_capacity(parts.len());
        for part in &parts {
            let shape = part.shape();
            let statement = shared.statement(table, shape.clone(), call).await?;
            runs.push(Run { shape, statement, parts: 1 });
        }
        self.runs.extend(runs);
        self.parts.extend(parts);
        Ok(())
    }

    async fn send(&self, shared: &Arc<Shared>, table: &Arc<TableSpec>, call: &Call) -> Result<()> {
        match (self.parts.as_slice(), self.runs.as_slice()) {
            ([], _) => Ok(()),
            ([part], [run, ..]) => shared.execute(table, &run.statement, part, call).await.map(drop),
            _ => {
                let whole = self.batch();
                let own = call.configured_batch(&whole);
                let request = pin!(shared.session.batch(own.as_ref().unwrap_or(&whole), self.parts.as_slice()));
                shared.attempt(Some(table), call, request).await.map(drop)
            }
        }
    }

    fn batch(&self) -> Arc<Batch> {
        if let [run] = self.runs.as_slice() {
            return run.statement.repeated(run.parts);
        }
        let statements = self.runs.iter().flat_map(|run| {
            let statement = || run.statement.prepared.clone().into();
            std::iter::repeat_with(statement).take(run.parts)
        });
        Arc::new(Batch::new_with_statements(BatchType::Unlogged, statements.collect()))
    }
}

/// Whether it may be the fault of one row.
fn is_refusal(error: &Error) -> bool {
    let wrong = matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::TooLarge | ErrorKind::SchemaMismatch);
    wrong && error.outcome() == Outcome::NotApplied
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(tokens: &[(i64, usize)]) -> Vec<Row> {
        let row = |(index, (token, bytes)): (usize, &(i64, usize))| Row { index, token: *token, bytes: *bytes };
        tokens.iter().enumerate().map(row).collect()
    }

    fn sorted(mut groups: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        groups.sort();
        groups
    }

    fn by_partition(rows: Vec<Row>) -> Vec<Vec<usize>> {
        sorted(group(rows, None::<fn(i64) -> ()>))
    }

    #[test]
    fn a_token_is_that_of_its_partition_whatever_came_before() {
        let partitions: Vec<[Value; 2]> = [1, 1, 2, 1].map(|id| [Value::from(id), Value::from("a")]).to_vec();
        let mut tokens = Tokens::default();
        let found: Vec<i64> = partitions.iter().map(|partition| tokens.of(partition).unwrap()).collect();
        let alone = |partition: &[Value; 2]| Tokens::default().of(partition).unwrap();
        assert_eq!(found, partitions.iter().map(alone).collect::<Vec<_>>());
        assert!(found[0] == found[1] && found[0] != found[2]);
    }

    #[test]
    fn rows_of_one_partition_travel_together_in_their_order() {
        let rows = rows(&[(7, 9), (-2, 9), (7, 9), (3, 9), (7, 9)]);
        assert_eq!(by_partition(rows), [vec![0, 2, 4], vec![1], vec![3]]);
    }

    #[test]
    fn a_partition_is_split_by_bytes_and_by_rows() {
        let heavy = rows(&[(1, BYTES / 2), (1, BYTES / 2), (1, 1), (1, 2 * BYTES), (1, 1)]);
        assert_eq!(by_partition(heavy), [vec![0, 1], vec![2], vec![3], vec![4]]);
        let many = rows(&vec![(1, 1); ROWS + 1]);
        assert_eq!(by_partition(many), [(0..ROWS).collect(), vec![ROWS]]);
    }

    #[test]
    fn lone_rows_of_one_owner_travel_together_below_the_thresholds() {
        let tokens = [10, 20, 11, 12, 21, 30, 30];
        let by_ten = |rows| sorted(group(rows, Some(|token: i64| token / 10)));
        assert_eq!(by_ten(rows(&tokens.map(|token| (token, 9)))), [vec![0, 2, 3], vec![1, 4], vec![5, 6]]);

        let one_owner = |rows| sorted(group(rows, Some(|_: i64| ())));
        let many: Vec<(i64, usize)> = (0..=ROWS).zip(0..).map(|(_, token)| (token, 9)).collect();
        assert_eq!(one_owner(rows(&many)), [(0..ROWS).collect(), vec![ROWS]]);
        let heavy = rows(&[(0, MIXED_BYTES), (1, 1), (2, MIXED_BYTES)]);
        assert_eq!(one_owner(heavy), [vec![0], vec![1], vec![2]]);
    }

    #[test]
    fn every_row_is_in_one_group() {
        let tokens: Vec<(i64, usize)> =
            (0..500).zip(0..).map(|(token, index): (i64, usize)| (token % 170, index * 7)).collect();
        let mut all = group(rows(&tokens), Some(|token: i64| token % 3)).concat();
        all.sort_unstable();
        assert_eq!(all, (0..500).collect::<Vec<_>>());
    }
}
