//! The thread that writes: it takes all that is queued, applies it in order, and makes it durable at once (group commit), so
//! that writers share the cost of a flush, and a row's read, change and write need no locks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fjall::PersistMode;
use peristyle_core::model::TableSpec;
use peristyle_core::request::{Condition, Mutation};
use peristyle_core::{Error, ErrorKind, Response, Result};
use tokio::sync::{mpsc, oneshot};

use super::Store;
use super::group::Group;
use super::partitions::Partitions;
use crate::codec::RowKey;
use crate::error::{closed, from_fjall, not_applied};
use crate::schema::Table;

/// The most rows that are made durable at once, unless one request has more.
const GROUP_ROWS: usize = 8192;
/// How many memtables or fresh files of a table may wait to be written out or merged before writes wait for them. The engine
/// below waits too, somewhat later, but for ever if its workers have failed.
const WAITING_MEMTABLES: usize = 3;
const WAITING_FILES: usize = 24;
/// How long closing waits for reads that are under way.
const RELEASE_LIMIT: Duration = Duration::from_secs(5);

/// The write of one row.
pub(crate) struct RowWrite {
    pub(crate) key: RowKey,
    pub(crate) mutation: Mutation,
}

/// What a write does, with its keys encoded.
pub(crate) enum Operation {
    Apply(RowWrite),
    /// Rows that were refused already stand as their errors.
    ApplyAll(Vec<Result<RowWrite>>),
    DeletePartition(Mutation),
    Increment {
        key: RowKey,
        deltas: Vec<(usize, i64)>,
    },
    CompareAndPut {
        write: RowWrite,
        condition: Condition,
    },
}

impl Operation {
    fn rows(&self) -> usize {
        if let Self::ApplyAll(rows) = self { rows.len() } else { 1 }
    }
}

/// A change of the tables.
pub(crate) enum SchemaChange {
    Create { table: Arc<TableSpec>, if_absent: bool },
    Drop { name: Arc<str>, if_present: bool },
    Truncate { name: Arc<str> },
}

/// Who waits for the answer.
pub(crate) type Reply = oneshot::Sender<Result<Response>>;

/// A write and who waits for it.
pub(crate) struct Job {
    pub(crate) table: Arc<Table>,
    pub(crate) operation: Operation,
    pub(crate) reply: Reply,
}

/// What the writer is asked.
pub(crate) enum Message {
    Write(Job),
    Schema(SchemaChange, Reply),
    Close(oneshot::Sender<Result<()>>),
}

/// The state of the thread.
pub(crate) struct Writer {
    store: Arc<Store>,
    partitions: Partitions,
    messages: mpsc::Receiver<Message>,
    /// The first failure; nothing is written after it.
    failure: Option<Error>,
}

/// What ends a group.
enum Next {
    Group,
    Schema(SchemaChange, Reply),
    Close(Option<oneshot::Sender<Result<()>>>),
}

impl Writer {
    /// Starts the thread.
    pub(crate) fn spawn(
        store: Arc<Store>,
        partitions: Partitions,
        messages: mpsc::Receiver<Message>,
    ) -> Result<JoinHandle<()>> {
        let writer = Self { store, partitions, messages, failure: None };
        let thread = thread::Builder::new().name("peristyle-writer".to_owned());
        thread
            .spawn(move || writer.run())
            .map_err(|error| Error::new(ErrorKind::Internal, format!("no thread for the engine's writer: {error}")))
    }

    fn run(mut self) {
        let mut jobs = Vec::new();
        loop {
            let next = self.take(&mut jobs);
            self.commit(&mut jobs);
            match next {
                Next::Group => {}
                Next::Schema(change, reply) => {
                    let _ = reply.send(self.change(change));
                }
                Next::Close(reply) => return self.finish(reply),
            }
        }
    }

    /// Waits for one message, then takes all that are there.
    fn take(&mut self, jobs: &mut Vec<Job>) -> Next {
        let mut rows = 0;
        let mut message = self.messages.blocking_recv();
        loop {
            match message {
                None => return Next::Close(None),
                Some(Message::Close(reply)) => return Next::Close(Some(reply)),
                Some(Message::Schema(change, reply)) => return Next::Schema(change, reply),
                Some(Message::Write(job)) => {
                    rows += job.operation.rows();
                    jobs.push(job);
                }
            }
            if rows >= GROUP_ROWS {
                return Next::Group;
            }
            match self.messages.try_recv() {
                Ok(next) => message = Some(next),
                Err(_) => return Next::Group,
            }
        }
    }

    /// Applies the jobs, makes them durable, and answers.
    fn commit(&mut self, jobs: &mut Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        if let Some(failure) = &self.failure {
            for job in jobs.drain(..) {
                let _ = job.reply.send(Err(not_applied(failure.share())));
            }
            return;
        }
        // The engine below panics on some damage. The jobs' callers then learn that their writes are in doubt.
        if catch_unwind(AssertUnwindSafe(|| self.commit_group(jobs))).is_err() {
            jobs.clear();
            let message = "the engine's writer met damaged data; restore the folder from a copy";
            self.failure = Some(Error::new(ErrorKind::Corrupt, message));
        }
    }

    fn commit_group(&mut self, jobs: &mut Vec<Job>) {
        let mut group = Group::new(&self.store, &mut self.partitions);
        let mut answers = Vec::with_capacity(jobs.len());
        for Job { table, operation, reply } in jobs.drain(..) {
            let answer = current(&self.store, table).and_then(|table| group.apply(&table, operation));
            answers.push((reply, answer));
        }
        let written = group.tables().try_for_each(|table| self.store.wait_for_room(table));
        let written = written.map_err(not_applied).and_then(|()| group.commit());
        for (reply, answer) in answers {
            let _ = reply.send(match &written {
                Ok(()) => answer,
                Err(error) => answer.and_then(|answer| fail(answer, error)),
            });
        }
        self.failure = written.err();
    }

    fn change(&mut self, change: SchemaChange) -> Result<Response> {
        if let Some(failure) = &self.failure {
            return Err(not_applied(failure.share()));
        }
        let catalogue = &self.store.catalogue;
        let gone = match change {
            SchemaChange::Create { table, if_absent } => catalogue.create(&table, if_absent).map(|()| None),
            SchemaChange::Drop { name, if_present } => catalogue.remove(&name, if_present),
            SchemaChange::Truncate { name } => catalogue.truncate(&name).map(Some),
        }?;
        if let Some(gone) = gone {
            self.partitions.forget(gone);
        }
        Ok(Response::Done)
    }

    /// Refuses what is still queued, writes everything out, and gives up the folder before it answers.
    fn finish(mut self, reply: Option<oneshot::Sender<Result<()>>>) {
        self.messages.close();
        while let Ok(message) = self.messages.try_recv() {
            match message {
                Message::Write(Job { reply, .. }) | Message::Schema(_, reply) => {
                    let _ = reply.send(Err(closed()));
                }
                Message::Close(reply) => {
                    let _ = reply.send(Ok(()));
                }
            }
        }
        let Self { store, partitions, .. } = self;
        let persisted =
            store.db.persist(PersistMode::SyncAll).map_err(|error| from_fjall(error, &store.settings.folder));
        drop(partitions);
        release(store);
        if let Some(reply) = reply {
            let _ = reply.send(persisted);
        }
    }
}

/// Gives up the folder, once the reads that are under way have ended.
fn release(mut store: Arc<Store>) {
    let patience = Instant::now() + RELEASE_LIMIT;
    while let Err(shared) = Arc::try_unwrap(store).map(drop) {
        if Instant::now() > patience {
            return;
        }
        store = shared;
        thread::sleep(Duration::from_millis(1));
    }
}

impl Store {
    /// Waits until the table takes more writes.
    fn wait_for_room(&self, table: &Table) -> Result<()> {
        let rows = &table.rows;
        while rows.sealed_memtable_count() >= WAITING_MEMTABLES || rows.l0_table_count() >= WAITING_FILES {
            // Fails if the workers that would make room have failed.
            self.db.persist(PersistMode::Buffer).map_err(|error| from_fjall(error, &self.settings.folder))?;
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// The table that a job is for now: it may have been truncated while the job was queued.
fn current(store: &Store, table: Arc<Table>) -> Result<Arc<Table>> {
    if !table.is_gone() {
        return Ok(table);
    }
    match store.catalogue.require(&table.spec)? {
        (table, None) => Ok(table),
        _ => Err(Error::new(ErrorKind::SchemaMismatch, "the table was dropped and made again with other columns")),
    }
}

/// Takes an answer back after a failed commit.
fn fail(answer: Response, error: &Error) -> Result<Response> {
    match answer {
        Response::Outcomes(outcomes) => {
            Ok(Response::Outcomes(outcomes.into_iter().map(|outcome| outcome.and(Err(error.share()))).collect()))
        }
        _ => Err(error.share()),
    }
}
