//! Inserts that wait for each other.

use peristyle::{Error, Result};

use crate::status::Status;
use crate::store::{Record, Store};

/// Inserts of one client, put together into requests. Each client has its own: none waits for another's.
#[derive(Debug)]
pub struct Batch {
    size: usize,
    records: Vec<(String, Record)>,
    inserted: u64,
    failed: u64,
    example: Option<Error>,
}

impl Batch {
    /// Of this many inserts a request; with 1 nothing waits.
    pub fn new(size: usize) -> Self {
        Self { size: size.max(1), records: Vec::new(), inserted: 0, failed: 0, example: None }
    }

    /// Adds an insert: [`BatchedOk`](Status::BatchedOk) until the batch is full, then what came of the request.
    pub async fn insert(&mut self, store: &Store, key: &str, record: Record) -> Status {
        if self.size == 1 {
            return self.ended(store.write(key, record).await);
        }
        self.records.push((key.to_owned(), record));
        if self.records.len() < self.size { Status::BatchedOk } else { self.flush(store).await }
    }

    /// Writes what waits. Every insert that fails is [counted](Self::failed).
    pub async fn flush(&mut self, store: &Store) -> Status {
        let records = std::mem::take(&mut self.records);
        if records.is_empty() {
            return Status::Ok;
        }
        let count = records.len() as u64;
        self.inserted += count;
        let outcomes = match store.write_all(records).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                self.failed += count;
                return self.ended(Err(error));
            }
        };
        let mut status = Status::Ok;
        for outcome in outcomes {
            self.failed += u64::from(outcome.is_err());
            let ended = self.ended(outcome);
            if status.is_ok() {
                status = ended;
            }
        }
        status
    }

    fn ended(&mut self, outcome: Result<()>) -> Status {
        let Err(error) = outcome else { return Status::Ok };
        let status = Status::from(&error);
        self.example.get_or_insert(error);
        status
    }

    /// How many inserts were sent in batches.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// How many of them failed. Those that are no part of a batch have told it by their status.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// The first failure.
    pub fn example(&self) -> Option<&Error> {
        self.example.as_ref()
    }
}
