//! Writing: all that is queued is applied in order and made durable at once (group commit), so that writers share the cost of
//! a flush, and a row's read, change and write need no lock of its own.
//!
//! One writer is at work at a time. Where a write waits for the disk it is the engine's thread; where it doesn't, whoever
//! finds nobody at work writes for all, which spares two changes of threads, and leaves what may block to the thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fjall::PersistMode;
use peristyle_core::{Error, ErrorKind, Response, Result};
use tokio::sync::oneshot;

use super::Store;
use super::group::Group;
use super::partitions::Partitions;
use super::queue::{Job, Message, Other, Queue, SchemaChange};
use crate::error::{from_fjall, not_applied};
use crate::schema::Table;

/// How many groups a caller writes before it leaves the rest to the thread.
const CALLER_GROUPS: usize = 16;
/// How many memtables or fresh files of a table may wait to be written out or merged before writes wait for them. The engine
/// below waits too, somewhat later, but for ever if its workers have failed.
const WAITING_MEMTABLES: usize = 3;
const WAITING_FILES: usize = 24;
/// How long closing waits for reads that are under way.
const RELEASE_LIMIT: Duration = Duration::from_secs(5);

/// The queue and its writer.
pub(crate) struct Lane {
    queue: Queue,
    /// Gone once the engine is closed.
    writer: Mutex<Option<Writer>>,
    /// Whether callers may write.
    by_callers: bool,
}

struct Writer {
    store: Arc<Store>,
    partitions: Partitions,
    /// The first failure; nothing is written after it.
    failure: Option<Error>,
    /// The tables that take no more writes for now.
    crowded: Vec<Arc<Table>>,
}

impl Lane {
    /// Starts the thread.
    pub(crate) fn start(store: Arc<Store>, partitions: Partitions) -> Result<(Arc<Self>, JoinHandle<()>)> {
        let by_callers = matches!(store.settings.persist, None | Some(PersistMode::Buffer));
        let writer = Writer { store, partitions, failure: None, crowded: Vec::new() };
        let lane = Arc::new(Self { queue: Queue::new(), writer: Mutex::new(Some(writer)), by_callers });
        let thread = thread::Builder::new().name("peristyle-writer".to_owned());
        let running = Arc::clone(&lane);
        let thread = thread
            .spawn(move || running.run())
            .map_err(|error| Error::new(ErrorKind::Internal, format!("no thread for the engine's writer: {error}")))?;
        Ok((lane, thread))
    }

    /// Hands over a message. Dropping the future hands over nothing or the whole.
    pub(crate) async fn push(&self, message: Message) -> Result<()> {
        let is_write = matches!(message, Message::Write(_));
        self.queue.push(message).await?;
        if self.by_callers && is_write {
            self.write();
        } else {
            self.queue.call();
        }
        Ok(())
    }

    /// Ends the queue with this answer.
    pub(crate) fn close(&self, reply: oneshot::Sender<Result<()>>) {
        self.queue.close(reply);
    }

    /// A caller's part: writes, unless somebody else is at it, who then sees what this caller has queued.
    fn write(&self) {
        for _ in 0..CALLER_GROUPS {
            let mut guard = match self.writer.try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            let Some(writer) = guard.as_mut().filter(|writer| writer.crowded.is_empty()) else { break };
            writer.commit(self.queue.take_writes());
            drop(guard);
            if self.queue.is_empty() {
                return;
            }
        }
        self.queue.call();
    }

    /// The thread's part.
    fn run(&self) {
        loop {
            self.queue.wait();
            while !self.queue.is_empty() {
                let mut guard = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(writer) = guard.as_mut() else { return };
                writer.make_room();
                writer.commit(self.queue.take_writes());
                match self.queue.take_other() {
                    None => {}
                    Some(Other::Schema(change, reply)) => {
                        let _ = reply.send(writer.change(change));
                    }
                    Some(Other::Close(reply)) => {
                        let finished = guard.take().map_or(Ok(()), Writer::finish);
                        let _ = reply.send(finished);
                        return;
                    }
                }
            }
        }
    }
}

impl Writer {
    /// Applies the jobs, makes them durable, and answers.
    fn commit(&mut self, mut jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        if let Some(failure) = &self.failure {
            for job in jobs {
                let _ = job.reply.send(Err(not_applied(failure.share())));
            }
            return;
        }
        // The engine below panics on some damage. The jobs' callers then learn that their writes are in doubt.
        if catch_unwind(AssertUnwindSafe(|| self.commit_group(&mut jobs))).is_err() {
            let message = "the engine's writer met damaged data; restore the folder from a copy";
            self.failure = Some(Error::new(ErrorKind::Corrupt, message));
        }
    }

    fn commit_group(&mut self, jobs: &mut Vec<Job>) {
        let mut group = Group::new(&self.store, &mut self.partitions);
        let mut answers = Vec::with_capacity(jobs.len());
        for Job { table, operation, reply } in jobs.drain(..) {
            let answer = current(&self.store, table).and_then(|table| group.apply(table, operation));
            answers.push((reply, answer));
        }
        let (tables, written) = group.commit();
        self.crowded = tables.into_iter().filter(|table| is_crowded(table)).collect();
        for (reply, answer) in answers {
            let _ = reply.send(match &written {
                Ok(()) => answer,
                Err(error) => answer.and_then(|answer| fail(answer, error)),
            });
        }
        self.failure = written.err();
    }

    /// Waits until every table takes more writes.
    fn make_room(&mut self) {
        while self.crowded.iter().any(|table| is_crowded(table)) {
            // Fails if the workers that would make room have failed.
            if let Err(error) = self.store.db.persist(PersistMode::Buffer) {
                self.failure.get_or_insert(from_fjall(error, &self.store.settings.folder));
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.crowded.clear();
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

    /// Writes everything out and gives up the folder.
    fn finish(self) -> Result<()> {
        let Self { store, partitions, crowded, .. } = self;
        let persisted =
            store.db.persist(PersistMode::SyncAll).map_err(|error| from_fjall(error, &store.settings.folder));
        drop((partitions, crowded));
        release(store);
        persisted
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

fn is_crowded(table: &Table) -> bool {
    table.rows.sealed_memtable_count() >= WAITING_MEMTABLES || table.rows.l0_table_count() >= WAITING_FILES
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
