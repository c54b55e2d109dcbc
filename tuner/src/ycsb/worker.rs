//! One worker: one of YCSB's threads.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use peristyle::model::StoredRow;
use peristyle_ycsb::{Fields, Status, Writer};

use super::client::Shared;
use super::generator::Choice;
use super::measurement::Span;
use super::options::Phase;
use super::random::Random;
use super::workload::Operation;
use crate::workload::mix;

/// One worker.
#[derive(Debug)]
pub(super) struct Worker {
    shared: Arc<Shared>,
    number: usize,
    /// How many operations are its own; `None` for as many as there is time for.
    quota: Option<u64>,
    random: Random,
    choice: Choice,
    writer: Writer,
    /// Records whose insert waits in a batch.
    waiting: Vec<u64>,
    intended: Option<Instant>,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, number: u64, quota: Option<u64>) -> Self {
        let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self {
            number: usize::try_from(number).unwrap_or(usize::MAX),
            quota,
            random: Random::new(mix(u64::from(seed.subsec_nanos()), number)),
            choice: shared.job.core.choice.clone(),
            writer: Writer::new(&shared.job.settings),
            waiting: Vec::new(),
            intended: None,
            shared,
        }
    }

    /// Does its operations, one after the other.
    pub(super) async fn run(mut self) {
        let mut done = 0;
        while self.quota.is_none_or(|quota| done < quota) && !self.shared.stop.load(Ordering::Relaxed) {
            self.intended = self.shared.intended();
            if !self.wait().await {
                break;
            }
            let goes_on = match self.shared.job.phase {
                Phase::Load => self.load().await,
                Phase::Run | Phase::Sweep => self.operate().await,
            };
            if !goes_on {
                break;
            }
            done += 1;
            self.shared.count(self.number);
            // An engine in the process may answer without ever waiting; others must get their turn.
            tokio::task::consume_budget().await;
        }
        self.clean_up().await;
    }

    /// Waits for the intended start; whether it came before the end.
    async fn wait(&self) -> bool {
        const NAP: Duration = Duration::from_millis(50);
        let Some(intended) = self.intended else { return true };
        while !self.shared.stop.load(Ordering::Relaxed) {
            let left = intended.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            tokio::time::sleep(left.min(NAP)).await;
        }
        false
    }

    fn measure(&self, operation: &'static str, status: Status, begun: Instant) {
        let span = Span { intended: self.intended, begun, ended: Instant::now() };
        self.shared
            .sheet(self.number, |sheet, measuring, origin| sheet.add(operation, status, span, origin, measuring));
    }

    /// Lets the inserted records be read.
    fn acknowledge(&mut self) {
        for number in self.waiting.drain(..) {
            self.shared.inserted.acknowledge(number);
        }
    }

    /// Keeps a failed write for people.
    fn tell_failure(&mut self) {
        if let Some(error) = self.writer.take_failure() {
            self.shared.tell(&error);
        }
    }

    async fn clean_up(mut self) {
        self.intended = None;
        let begun = Instant::now();
        self.writer.flush(&self.shared.job.store).await;
        self.acknowledge();
        let span = Span { intended: None, begun, ended: Instant::now() };
        self.shared.sheet(self.number, |sheet, measuring, origin| {
            sheet.add_latency("CLEANUP", Status::Ok, span, origin, measuring);
        });
        self.shared.lost.fetch_add(self.writer.failed(), Ordering::Relaxed);
        self.tell_failure();
    }

    /// Inserts the next record; whether the load goes on.
    async fn load(&mut self) -> bool {
        let key = self.shared.job.core.key(self.shared.next_record.fetch_add(1, Ordering::Relaxed));
        for attempt in 0.. {
            let record = self.shared.job.core.whole_record(&key, &mut self.random);
            if self.insert(&key, record).await.is_ok() {
                return true;
            }
            if attempt == self.shared.job.core.retries || self.shared.stop.load(Ordering::Relaxed) {
                break;
            }
            let seconds = self.shared.job.core.retry_interval * (0.8 + 0.4 * self.random.unit());
            tokio::time::sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default()).await;
        }
        self.shared.job.core.keep_going
    }

    async fn insert(&mut self, key: &str, record: Vec<(usize, Bytes)>) -> Status {
        let begun = Instant::now();
        let status = self.writer.insert(&self.shared.job.store, key, record).await;
        self.measure("INSERT", status, begun);
        self.tell_failure();
        status
    }

    /// Does an operation of the mix. As in YCSB, a failure doesn't end the run.
    async fn operate(&mut self) -> bool {
        match self.shared.job.core.operation(&mut self.random) {
            Operation::Read => self.read_one().await,
            Operation::Update => {
                let key = self.existing();
                self.update(&key).await;
            }
            Operation::Insert => {
                let number = self.shared.inserted.next();
                let key = self.shared.job.core.key(number);
                let record = self.shared.job.core.whole_record(&key, &mut self.random);
                let status = self.insert(&key, record).await;
                self.waiting.push(number);
                // What waits in a batch is not there to be read yet. Where nobody waits for writes, nobody knows.
                if status != Status::BatchedOk || self.shared.job.settings.in_flight > 0 {
                    self.acknowledge();
                }
            }
            Operation::Scan => self.scan().await,
            Operation::ReadModifyWrite => self.read_modify_write().await,
        }
        true
    }

    /// The key of a record that is there.
    fn existing(&mut self) -> String {
        let number = self.choice.next(&mut self.random, &self.shared.sequence, &self.shared.inserted);
        self.shared.job.core.key(number)
    }

    /// The fields of a read.
    fn fields(&mut self, by_name: bool) -> Fields {
        let (core, store) = (&self.shared.job.core, &self.shared.job.store);
        if !core.read_all {
            store.choose([core.field(&mut self.random)])
        } else if by_name {
            store.choose(0..store.fields().len())
        } else {
            Fields::default()
        }
    }

    async fn read_one(&mut self) {
        let key = self.existing();
        let core = &self.shared.job.core;
        let fields = self.fields(core.integrity || core.read_all_by_name);
        let row = self.read(&key, fields).await;
        self.verify(&key, row);
    }

    async fn read(&mut self, key: &str, fields: Fields) -> Option<StoredRow> {
        let begun = Instant::now();
        let answer = self.shared.job.store.read(key, fields).await;
        let status = match &answer {
            Ok(None) => Status::NotFound,
            other => self.shared.status(other),
        };
        self.measure("READ", status, begun);
        answer.ok().flatten()
    }

    async fn update(&mut self, key: &str) {
        let core = &self.shared.job.core;
        let record = if core.write_all {
            core.whole_record(key, &mut self.random)
        } else {
            let field = core.field(&mut self.random);
            vec![(field, core.value(key, field, &mut self.random))]
        };
        let begun = Instant::now();
        let status = self.writer.update(&self.shared.job.store, key, record).await;
        self.measure("UPDATE", status, begun);
        self.tell_failure();
    }

    async fn scan(&mut self) {
        let key = self.existing();
        let length = self.shared.job.core.scan_length(&mut self.random);
        let fields = self.fields(false);
        let begun = Instant::now();
        let status = self.shared.status(&self.shared.job.store.scan(&key, length, fields).await);
        self.measure("SCAN", status, begun);
    }

    async fn read_modify_write(&mut self) {
        let key = self.existing();
        let fields = self.fields(false);
        let begun = Instant::now();
        let row = self.read(&key, fields).await;
        self.update(&key).await;
        let span = Span { intended: self.intended, begun, ended: Instant::now() };
        self.verify(&key, row);
        self.shared.sheet(self.number, |sheet, measuring, origin| {
            sheet.add_latency("READ-MODIFY-WRITE", Status::Ok, span, origin, measuring);
        });
    }

    /// Checks the values of a row, where data integrity is asked for.
    fn verify(&self, key: &str, row: Option<StoredRow>) {
        let job = &self.shared.job;
        if !job.core.integrity {
            return;
        }
        let begun = Instant::now();
        let row = row.unwrap_or_default();
        let mut values = job.store.values(&row).peekable();
        let status = if values.peek().is_none() {
            Status::Error
        } else if values.all(|(field, value)| job.core.is_intact(key, field, value)) {
            Status::Ok
        } else {
            Status::UnexpectedState
        };
        // YCSB measures no intended latency of it, and its latency under its own name, whatever was found.
        let span = Span { intended: None, begun, ended: Instant::now() };
        self.shared.sheet(self.number, |sheet, measuring, origin| {
            sheet.add("VERIFY", status, span, origin, measuring);
        });
    }
}
