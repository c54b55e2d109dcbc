//! One round of one path.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use peristyle::model::Row;
use peristyle::table::Table;
use peristyle::{Error, Result};
use tokio::task::JoinSet;

use super::{Round, WritePath};
use crate::workload::Workload;

/// Rows of one `put_all`.
const CHUNK: u64 = 5_000;

/// Writes rows of a workload that no round wrote before.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    table: Table,
    workload: Arc<Workload>,
    threads: u32,
    next: Arc<AtomicU64>,
}

impl Writer {
    /// Writes into this table; single puts from so many tasks at a time.
    pub(crate) fn new(table: Table, workload: Arc<Workload>, threads: u32) -> Self {
        Self { table, workload, threads, next: Arc::default() }
    }

    /// Writes for this long on one path, and waits for the last outcome.
    pub(crate) async fn round(&self, path: WritePath, time: Duration) -> Round {
        let begun = Instant::now();
        let end = begun + time;
        let mut round = match path {
            WritePath::Put => self.puts(end).await,
            WritePath::PutAll => self.put_all(end).await,
            WritePath::Streamer => self.streamer(end).await,
        };
        round.elapsed = begun.elapsed();
        round
    }

    fn take(&self, rows: u64) -> u64 {
        self.next.fetch_add(rows, Ordering::Relaxed)
    }

    fn row(&self, index: u64) -> Row {
        self.workload.rows.row(index, &self.workload.table)
    }

    async fn puts(&self, end: Instant) -> Round {
        let mut tasks = JoinSet::new();
        for _ in 0..self.threads {
            let writer = self.clone();
            tasks.spawn(async move {
                let mut round = Round::default();
                while Instant::now() < end {
                    round.count(writer.table.put(&writer.row(writer.take(1))).await);
                }
                round
            });
        }
        let mut total = Round::default();
        while let Some(done) = tasks.join_next().await {
            total.add(done.unwrap_or_else(|error| Round::lost(&error.to_string())));
        }
        total
    }

    async fn put_all(&self, end: Instant) -> Round {
        let mut round = Round::default();
        while Instant::now() < end {
            let from = self.take(CHUNK);
            match self.table.put_all((from..from + CHUNK).map(|index| self.row(index))).await {
                Ok(report) => report.outcomes.into_iter().for_each(|outcome| round.count(outcome)),
                Err(error) => round.fail(CHUNK, &error),
            }
        }
        round
    }

    async fn streamer(&self, end: Instant) -> Round {
        let streamer = self.table.streamer().open();
        let mut round = Round::default();
        while Instant::now() < end {
            if let Err(error) = streamer.add(&self.row(self.take(1))).await {
                round.fail(1, &error);
            }
        }
        match streamer.close().await {
            Ok(report) => {
                round.applied += report.applied;
                round.failed += report.failed + report.unknown;
                let first = report.failures.first().map(|failure| failure.error.to_string());
                round.example = round.example.or(first);
            }
            Err(error) => round.fail(1, &error),
        }
        round
    }
}

impl Round {
    fn count(&mut self, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.applied += 1,
            Err(error) => self.fail(1, &error),
        }
    }

    fn fail(&mut self, rows: u64, error: &Error) {
        self.failed += rows;
        self.example.get_or_insert_with(|| error.to_string());
    }

    fn lost(why: &str) -> Self {
        Self { failed: 1, example: Some(format!("a writing task failed: {why}")), ..Self::default() }
    }

    fn add(&mut self, other: Self) {
        self.applied += other.applied;
        self.failed += other.failed;
        self.example = self.example.take().or(other.example);
    }
}
