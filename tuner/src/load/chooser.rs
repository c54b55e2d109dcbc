//! What a worker does next: prepared requests, made from row indexes.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use peristyle::model::{Key, Value};
use peristyle::request::{Projection, Query, Read, Write};
use peristyle::{Client, Request};

use crate::stats::real;
use crate::workload::{Keys, Kind, QueryStart, Rows, Workload, Zipf, below, mix};

/// Gives out row indexes that no one had before, to all workers of a run.
#[derive(Debug, Default)]
pub(crate) struct Fresh(AtomicU64);

/// One row of so many is hot, and all but one request of so many go there.
const HOT_ROWS: u64 = 5;

/// How many a worker takes at once, so that they don't meet at one counter.
const BLOCK: u64 = 256;

/// Chooses operations and rows for one worker.
#[derive(Debug)]
pub(crate) struct Chooser {
    workload: Arc<Workload>,
    fresh: Arc<Fresh>,
    worker: u64,
    batch: usize,
    weights: u64,
    /// The counter behind this worker's random numbers.
    draws: u64,
    zipf: Zipf,
    seed: u64,
    block: std::ops::Range<u64>,
    own: u64,
}

impl Chooser {
    /// `window` sets the random numbers of one window apart from those of the next.
    pub(crate) fn new(workload: Arc<Workload>, fresh: Arc<Fresh>, worker: u64, window: u64, batch: usize) -> Self {
        let weights = workload.operations.iter().map(|operation| u64::from(operation.weight)).sum();
        let seed = mix(mix(workload.rows.seed(), window), worker);
        let zipf = Zipf::new(workload.rows.count());
        Self { workload, fresh, worker, batch, weights, draws: 0, zipf, seed, block: 0..0, own: 0 }
    }

    fn draw(&mut self, bound: u64) -> u64 {
        self.draws += 1;
        below(mix(self.seed, self.draws), bound)
    }

    /// The place of a row of which few are drawn often.
    fn skewed(&mut self) -> u64 {
        let (zipf, seed, mut draws) = (self.zipf, self.seed, self.draws);
        let place = zipf.sample(|| {
            draws += 1;
            unit(mix(seed, draws))
        });
        self.draws = draws;
        place
    }

    /// The next request, with the index of its operation.
    pub(crate) fn next(&mut self, client: &Client) -> (usize, Request) {
        let workload = Arc::clone(&self.workload);
        let (place, kind, keys) = self.operation(&workload);
        (place, self.request(&workload, kind, keys, client))
    }

    /// The partition of the next request, or of its first row.
    pub(crate) fn partition(&mut self) -> Key {
        let workload = Arc::clone(&self.workload);
        let (_, kind, keys) = self.operation(&workload);
        let index = self.index(&workload.rows, keys, matches!(kind, Kind::Put));
        workload.rows.key_prefix(index, workload.table.partition_len())
    }

    /// What is done next, and to which rows.
    fn operation(&mut self, workload: &Workload) -> (usize, Kind, Keys) {
        let mut choice = if workload.operations.len() > 1 { self.draw(self.weights) } else { 0 };
        for (place, operation) in workload.operations.iter().enumerate() {
            let weight = u64::from(operation.weight);
            if choice < weight {
                return (place, operation.kind, operation.keys);
            }
            choice -= weight;
        }
        // The choice lies below the sum of the weights, so this is the rule that a mix has at least one operation.
        (0, Kind::Get, Keys::Uniform)
    }

    fn request(&mut self, workload: &Workload, kind: Kind, keys: Keys, client: &Client) -> Request {
        let (table, rows) = (Arc::clone(&workload.table), &workload.rows);
        let (batch, columns) = (self.batch, Projection::default());
        match kind {
            Kind::Put if batch == 1 => {
                let mutation = rows.put(self.index(rows, keys, true), client.next_write_time());
                Request::write(table, Write::Apply(mutation))
            }
            Kind::Put => {
                let put = |_| rows.put(self.index(rows, keys, true), client.next_write_time());
                Request::write(table, Write::ApplyAll((0..batch).map(put).collect()))
            }
            Kind::Get if batch == 1 => {
                Request::read(table, Read::Get { key: rows.key(self.index(rows, keys, false)), columns })
            }
            Kind::Get => {
                let keys = (0..batch).map(|_| rows.key(self.index(rows, keys, false))).collect();
                Request::read(table, Read::GetAll { keys, columns })
            }
            Kind::Query { start, span, limit, reverse } => {
                let index = self.index(rows, keys, false);
                let (lower, upper) = match start {
                    QueryStart::Partition => (Bound::Unbounded, Bound::Unbounded),
                    QueryStart::Row => {
                        let from = rows.key(index).values().last().cloned();
                        let to = from.as_ref().zip(span).and_then(|(from, span)| Rows::behind(from, span.get()));
                        (
                            from.map_or(Bound::Unbounded, Bound::Included),
                            to.map_or(Bound::Unbounded, Bound::<Value>::Excluded),
                        )
                    }
                };
                let partition = rows.key_prefix(index, table.partition_len());
                let query = Query { partition, prefix: Vec::new(), lower, upper, reverse, after: None, limit, columns };
                Request::read(table, Read::Query(Box::new(query)))
            }
        }
    }

    fn index(&mut self, rows: &Rows, keys: Keys, writes: bool) -> u64 {
        let index = match keys {
            Keys::Uniform => return self.draw(rows.count()),
            // Which rows are the frequent ones follows from the seed of the rows: the same for all threads.
            Keys::Zipfian => return mix(rows.seed(), self.skewed()) % rows.count(),
            Keys::Latest => return rows.count() - 1 - self.skewed(),
            Keys::Hotspot => {
                let hot = (rows.count() / HOT_ROWS).max(1);
                let is_hot = self.draw(HOT_ROWS) > 0 || hot == rows.count();
                return if is_hot { self.draw(hot) } else { hot + self.draw(rows.count() - hot) };
            }
            Keys::Sequential => self.fresh(),
            Keys::PerThread(range) => {
                self.own += 1;
                self.worker.wrapping_mul(range.get()).wrapping_add((self.own - 1) % range)
            }
        };
        // Reads stay within what was loaded; writes go on behind it.
        if writes { index } else { index % rows.count() }
    }

    fn fresh(&mut self) -> u64 {
        if let Some(index) = self.block.next() {
            return index;
        }
        let start = self.fresh.0.fetch_add(BLOCK, Ordering::Relaxed);
        self.block = start + 1..start + BLOCK;
        start
    }
}

/// A number from 0 to below 1.
fn unit(random: u64) -> f64 {
    real(random >> 11) / real(1 << 53)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each row of a thousand is chosen in ten thousand draws.
    fn drawn(keys: Keys) -> Vec<u32> {
        let mut workload = Workload::find("point-read", 1).unwrap();
        workload.rows = workload.rows.with_count(1000);
        let rows = workload.rows.clone();
        let mut chooser = Chooser::new(Arc::new(workload), Arc::default(), 0, 1, 1);
        let mut counts = vec![0; 1000];
        for _ in 0..10_000 {
            counts[usize::try_from(chooser.index(&rows, keys, false)).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn each_distribution_prefers_the_rows_that_it_should() {
        let share = |counts: &[u32]| f64::from(counts.iter().sum::<u32>()) / 10_000.0;
        let uniform = drawn(Keys::Uniform);
        assert!((share(&uniform[..200]) - 0.2).abs() < 0.02 && uniform.iter().all(|count| *count < 40));
        assert!((share(&drawn(Keys::Hotspot)[..200]) - 0.8).abs() < 0.02);
        assert!(share(&drawn(Keys::Latest)[900..]) > 0.6);
        let mut zipfian = drawn(Keys::Zipfian);
        zipfian.sort_unstable();
        assert!(share(&zipfian[900..]) > 0.6 && share(&drawn(Keys::Zipfian)[900..]) < 0.5);
        assert!(drawn(Keys::Sequential).iter().all(|count| *count == 10));
    }
}
