//! Writes that wait for each other, or that nobody waits for.

use peristyle::{Error, ErrorKind, Result};
use tokio::task::{JoinError, JoinSet};

use crate::settings::Settings;
use crate::status::Status;
use crate::store::{Record, Store};

/// The writes of one client: inserts put together into requests, and requests on their way. Each client has its own: none waits
/// for another's.
#[derive(Debug)]
pub struct Writer {
    /// Inserts in a request.
    size: usize,
    /// Requests on their way at a time; with 0 the client waits for each.
    in_flight: usize,
    records: Vec<(String, Record)>,
    under_way: JoinSet<Tally>,
    /// Of the writes whose status said nothing of them.
    sent: u64,
    applied: u64,
    failure: Option<Error>,
}

/// What came of a request.
#[derive(Debug, Default)]
struct Tally {
    applied: u64,
    /// The first failure.
    failure: Option<Error>,
}

impl Tally {
    fn of(outcomes: impl IntoIterator<Item = Result<()>>) -> Self {
        let mut tally = Self::default();
        for outcome in outcomes {
            match outcome {
                Ok(()) => tally.applied += 1,
                Err(error) => tally.failure = tally.failure.or(Some(error)),
            }
        }
        tally
    }

    fn failed(error: Error) -> Self {
        Self { applied: 0, failure: Some(error) }
    }

    /// Of a task that ended otherwise than by its own.
    fn lost(error: JoinError) -> Self {
        Self::failed(Error::new(ErrorKind::Internal, format!("a write was lost: {error}")))
    }
}

impl Writer {
    /// Writes as [`batch`](Settings::batch) and [`in_flight`](Settings::in_flight) say.
    pub fn new(settings: &Settings) -> Self {
        Self {
            size: settings.batch,
            in_flight: settings.in_flight,
            records: Vec::new(),
            under_way: JoinSet::new(),
            sent: 0,
            applied: 0,
            failure: None,
        }
    }

    /// Adds an insert: [`BatchedOk`](Status::BatchedOk) until the batch is full, then what came of the request. Where nobody
    /// waits it is `BatchedOk` throughout.
    ///
    /// Must be called in a tokio runtime.
    pub async fn insert(&mut self, store: &Store, key: &str, record: Record) -> Status {
        if self.size == 1 {
            return self.update(store, key, record).await;
        }
        self.records.push((key.to_owned(), record));
        if self.records.len() < self.size { Status::BatchedOk } else { self.send_batch(store).await }
    }

    /// Writes fields of a record: what came of it, or [`BatchedOk`](Status::BatchedOk) where nobody waits.
    ///
    /// Must be called in a tokio runtime.
    pub async fn update(&mut self, store: &Store, key: &str, record: Record) -> Status {
        if self.in_flight == 0 {
            return match store.write(key, record).await {
                Ok(()) => Status::Ok,
                Err(error) => self.keep(error),
            };
        }
        let write = store.write(key, record);
        self.start(1, async { Tally::of([write.await]) }).await
    }

    /// Writes what waits, and waits for what is on its way. Every write that fails is [counted](Self::failed).
    pub async fn flush(&mut self, store: &Store) -> Status {
        let mut status = self.send_batch(store).await;
        while let Some(tally) = self.under_way.join_next().await {
            let ended = self.count(tally.unwrap_or_else(Tally::lost));
            if status.is_ok() {
                status = ended;
            }
        }
        status
    }

    async fn send_batch(&mut self, store: &Store) -> Status {
        let records = std::mem::take(&mut self.records);
        if records.is_empty() {
            return Status::Ok;
        }
        let sent = records.len() as u64;
        let write = store.write_all(records);
        let request = async { write.await.map_or_else(Tally::failed, Tally::of) };
        if self.in_flight > 0 {
            return self.start(sent, request).await;
        }
        self.sent += sent;
        let tally = request.await;
        self.count(tally)
    }

    /// Sends a request that nobody waits for, once there is room for it.
    async fn start(&mut self, writes: u64, request: impl Future<Output = Tally> + Send + 'static) -> Status {
        while self.under_way.len() >= self.in_flight {
            let Some(tally) = self.under_way.join_next().await else { break };
            self.count(tally.unwrap_or_else(Tally::lost));
        }
        self.sent += writes;
        self.under_way.spawn(request);
        Status::BatchedOk
    }

    fn count(&mut self, tally: Tally) -> Status {
        self.applied += tally.applied;
        tally.failure.map_or(Status::Ok, |error| self.keep(error))
    }

    fn keep(&mut self, error: Error) -> Status {
        let status = Status::from(&error);
        self.failure.get_or_insert(error);
        status
    }

    /// How many writes were sent in batches, or without waiting.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// How many of them aren't known to be applied. The others have told by their status what came of them.
    pub fn failed(&self) -> u64 {
        self.sent - self.applied
    }

    /// Takes the first failure since the last call.
    pub fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }
}
