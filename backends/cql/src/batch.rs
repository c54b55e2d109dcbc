//! Writes of many rows: grouped, sent together, and told apart again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use peristyle_core::codec::token::append_partition;
use peristyle_core::model::{TableSpec, Value};
use peristyle_core::request::Mutation;
use peristyle_core::{Error, ErrorKind, Outcome, Response, Result};

use crate::config::BatchGrouping;
use crate::part::{Part, parts, single, sort_cells};
use crate::request::{Call, Shared};
use crate::statement::{Shape, Statement};

/// Batches of one `put_all` under way at once.
const IN_FLIGHT: usize = 64;

/// Rows of one partition in a batch: beyond, throughput falls again.
const ROWS: usize = 100;

/// Bytes of one partition in a batch: well below the 50 KiB at which Cassandra refuses a batch.
const BYTES: usize = 40 << 10;

/// Partitions in one batch: Cassandra warns of more.
const PARTITIONS: usize = 10;

/// Bytes of several partitions in one batch: Cassandra warns of more.
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
    let mut outcomes: Vec<Result<()>> = Vec::with_capacity(mutations.len());
    let mut keys = Keys::default();
    for mutation in &mut mutations {
        sort_cells(&mut mutation.cells);
        let checked = shared.check_expiry(&table, mutation);
        outcomes.push(checked.and_then(|()| keys.push(outcomes.len(), mutation.key.prefix(table.partition_len()))));
    }
    let groups = groups(&shared, &table, &mutations, &keys);
    let mutations = &mutations;
    let sends = groups.into_iter().map(|rows| {
        let (shared, table) = (&shared, &table);
        async move { send_group(shared, table, mutations, rows, &call).await }
    });
    let mut sends = stream::iter(sends).buffer_unordered(IN_FLIGHT);
    while let Some(done) = sends.next().await {
        for (row, outcome) in done {
            if let Some(place) = outcomes.get_mut(row) {
                *place = outcome;
            }
        }
    }
    drop(sends);
    Ok(Response::Outcomes(outcomes))
}

/// The serialised partition keys of the rows that have one, one behind the other.
#[derive(Debug, Default)]
struct Keys {
    bytes: Vec<u8>,
    /// By row, with where its key ends.
    ends: Vec<(usize, usize)>,
}

impl Keys {
    fn push(&mut self, row: usize, partition: &[Value]) -> Result<()> {
        append_partition(partition, &mut self.bytes)?;
        self.ends.push((row, self.bytes.len()));
        Ok(())
    }

    fn iter(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut begin = 0;
        self.ends.iter().map(move |(row, end)| {
            let key = self.bytes.get(begin..*end).unwrap_or_default();
            begin = *end;
            (*row, key)
        })
    }
}

fn groups(shared: &Shared, table: &TableSpec, mutations: &[Mutation], keys: &Keys) -> Vec<Vec<usize>> {
    let mut rows = Vec::with_capacity(mutations.len());
    for (index, partition) in keys.iter() {
        let bytes = mutations.get(index).map_or(0, Mutation::size) + ROW_OVERHEAD;
        rows.push(Row { index, partition, bytes });
    }
    match shared.config.batch_grouping {
        BatchGrouping::Partition => group(&rows, None::<fn(&[u8]) -> ()>),
        BatchGrouping::Mixed => {
            let owners = shared.owners(table);
            group(&rows, Some(|key: &[u8]| owners.as_ref().and_then(|owners| owners.of(key))))
        }
    }
}

/// A row to be grouped.
#[derive(Debug)]
struct Row<'a> {
    index: usize,
    partition: &'a [u8],
    bytes: usize,
}

/// Rows that travel together, by index. Rows of one partition keep their order. With `owner`, rows that are alone in their
/// partition are put together by it.
fn group<O: Eq + Hash>(rows: &[Row<'_>], owner: Option<impl Fn(&[u8]) -> O>) -> Vec<Vec<usize>> {
    let mut places: HashMap<&[u8], usize> = HashMap::with_capacity(rows.len());
    let mut partitions: Vec<Vec<&Row<'_>>> = Vec::new();
    for row in rows {
        let place = *places.entry(row.partition).or_insert_with(|| {
            partitions.push(Vec::new());
            partitions.len() - 1
        });
        if let Some(partition) = partitions.get_mut(place) {
            partition.push(row);
        }
    }
    let mut groups = Vec::new();
    let mut mixed: HashMap<O, Pile> = HashMap::new();
    for partition in partitions {
        match (partition.as_slice(), &owner) {
            ([row], Some(owner)) => {
                let pile = mixed.entry(owner(row.partition)).or_default();
                groups.extend(pile.add(row, PARTITIONS, MIXED_BYTES));
            }
            (rows, _) => {
                let mut pile = Pile::default();
                groups.extend(rows.iter().filter_map(|row| pile.add(row, ROWS, BYTES)));
                groups.push(pile.rows);
            }
        }
    }
    groups.extend(mixed.into_values().map(|pile| pile.rows));
    groups
}

#[derive(Debug, Default)]
struct Pile {
    rows: Vec<usize>,
    bytes: usize,
}

impl Pile {
    /// Adds a row; gives what was there if the row doesn't fit on it.
    fn add(&mut self, row: &Row<'_>, max_rows: usize, max_bytes: usize) -> Option<Vec<usize>> {
        let full = self.rows.len() >= max_rows || self.bytes + row.bytes > max_bytes;
        let before = if full && !self.rows.is_empty() { Some(std::mem::take(self).rows) } else { None };
        self.rows.push(row.index);
        self.bytes += row.bytes;
        before
    }
}

/// Sends rows together. If the server refuses them as wrong, each is sent alone, so that only the wrong ones fail.
async fn send_group(
    shared: &Arc<Shared>,
    table: &Arc<TableSpec>,
    mutations: &[Mutation],
    rows: Vec<usize>,
    call: &Call,
) -> Vec<(usize, Result<()>)> {
    let mut done = Vec::with_capacity(rows.len());
    let mut sent = Vec::with_capacity(rows.len());
    let (mut statements, mut all_parts) = (Statements::default(), Vec::with_capacity(rows.len()));
    for row in rows {
        let Some(mutation) = mutations.get(row) else { continue };
        let before = all_parts.len();
        match single(table, mutation) {
            Some(part) => all_parts.push(part),
            None => all_parts.extend(parts(table, mutation)),
        }
        match statements.prepare(shared, table, all_parts.get(before..).unwrap_or_default(), call).await {
            Ok(()) => sent.push(row),
            Err(error) => {
                all_parts.truncate(before);
                statements.all.truncate(before);
                done.push((row, Err(error)));
            }
        }
    }
    let outcome = match all_parts.as_slice() {
        [] => Ok(()),
        [_] => shared.send(table, &all_parts, call).await,
        _ => shared.send_batch(table, &statements.all, &all_parts, call).await,
    };
    match outcome {
        Err(error) if sent.len() > 1 && is_refusal(&error) => {
            for row in sent {
                let Some(mutation) = mutations.get(row) else { continue };
                done.push((row, shared.send(table, &parts(table, mutation), call).await));
            }
        }
        Err(error) => done.extend(sent.into_iter().map(|row| (row, Err(error.share())))),
        Ok(()) => done.extend(sent.into_iter().map(|row| (row, Ok(())))),
    }
    done
}

/// The statements of a batch, of which most have the shape of the one before.
#[derive(Default)]
struct Statements {
    all: Vec<Arc<Statement>>,
    last: Option<(Shape, Arc<Statement>)>,
}

impl Statements {
    async fn prepare(
        &mut self,
        shared: &Arc<Shared>,
        table: &Arc<TableSpec>,
        parts: &[Part<'_>],
        call: &Call,
    ) -> Result<()> {
        for part in parts {
            let shape = part.shape();
            let statement = match &self.last {
                Some((last, statement)) if *last == shape => Arc::clone(statement),
                _ => {
                    let statement = shared.statement(table, shape.clone(), call).await?;
                    self.last = Some((shape, Arc::clone(&statement)));
                    statement
                }
            };
            self.all.push(statement);
        }
        Ok(())
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

    fn rows(keys: &[(&'static str, usize)]) -> Vec<Row<'static>> {
        let row = |(index, (key, bytes)): (usize, &(&'static str, usize))| Row {
            index,
            partition: key.as_bytes(),
            bytes: *bytes,
        };
        keys.iter().enumerate().map(row).collect()
    }

    fn sorted(mut groups: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        groups.sort();
        groups
    }

    fn by_partition(rows: &[Row<'_>]) -> Vec<Vec<usize>> {
        sorted(group(rows, None::<fn(&[u8]) -> ()>))
    }

    #[test]
    fn rows_of_one_partition_travel_together_in_their_order() {
        let rows = rows(&[("a", 9), ("b", 9), ("a", 9), ("c", 9), ("a", 9)]);
        assert_eq!(by_partition(&rows), [vec![0, 2, 4], vec![1], vec![3]]);
    }

    #[test]
    fn a_partition_is_split_by_bytes_and_by_rows() {
        let heavy = rows(&[("a", BYTES / 2), ("a", BYTES / 2), ("a", 1), ("a", 2 * BYTES), ("a", 1)]);
        assert_eq!(by_partition(&heavy), [vec![0, 1], vec![2], vec![3], vec![4]]);
        let many = rows(&vec![("a", 1); ROWS + 1]);
        assert_eq!(by_partition(&many), [(0..ROWS).collect(), vec![ROWS]]);
    }

    #[test]
    fn lone_rows_of_one_owner_travel_together_below_the_thresholds() {
        let names = ["a1", "b1", "a2", "a3", "b2", "c1", "c1"];
        let rows = rows(&names.map(|name| (name, 9)));
        let groups = group(&rows, Some(|key: &[u8]| key[0]));
        assert_eq!(sorted(groups), [vec![0, 2, 3], vec![1, 4], vec![5, 6]]);

        let keys: Vec<String> = (0..=PARTITIONS).map(|number| number.to_string()).collect();
        let row = |index: usize, bytes| Row { index, partition: keys[index].as_bytes(), bytes };
        let many: Vec<_> = (0..=PARTITIONS).map(|index| row(index, 9)).collect();
        assert_eq!(sorted(group(&many, Some(|_: &[u8]| ()))), [(0..PARTITIONS).collect(), vec![PARTITIONS]]);
        let heavy = [row(0, MIXED_BYTES), row(1, 1), row(2, MIXED_BYTES)];
        assert_eq!(sorted(group(&heavy, Some(|_: &[u8]| ()))), [vec![0], vec![1], vec![2]]);
    }

    #[test]
    fn every_row_is_in_one_group() {
        let names: Vec<String> = (0..500).map(|number| (number % 170).to_string()).collect();
        let rows: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(index, name)| Row { index, partition: name.as_bytes(), bytes: index * 7 })
            .collect();
        let mut all = group(&rows, Some(|key: &[u8]| key.len())).concat();
        all.sort_unstable();
        assert_eq!(all, (0..500).collect::<Vec<_>>());
    }
}
