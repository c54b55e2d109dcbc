//! Rows without end, written in the background: bounded, grouped, and each accounted for.

pub(crate) mod buffer;
mod builder;
mod epochs;
mod flight;
mod receipt;
mod report;
#[cfg(test)]
pub(crate) mod testing;

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, TryAcquireError, oneshot, watch};

use self::buffer::{Buffer, Ended, Sent, given_up};
pub use self::builder::StreamerBuilder;
use self::flight::Sender;
pub use self::receipt::{Receipt, Rejected};
pub use self::report::{StreamFailure, StreamReport};
use crate::error::{Error, ErrorKind, Outcome, Result, TimeoutPhase};
use crate::grouping::{Grouping, Place};
use crate::layers::names::{STREAMER_ABANDONED, STREAMER_UNCLOSED};
use crate::model::{ToKey, ToRow, Ttl, WriteTime};
use crate::request::{Mutation, RequestOptions};
use crate::response::Response;
use crate::table::Table;

/// Writes rows in the background, made by [`Table::streamer`].
///
/// # The contract
/// - **Bounded**: rows without an outcome never exceed the set number and bytes. [`add`](Self::add) waits for room,
///   [`try_add`](Self::try_add) gives the row back when there is none.
/// - **Nothing in between**: each row that was added is applied, failed (certainly not written) or unknown. Its [`Receipt`]
///   says so, the listener hears of failures, and the [report](StreamReport) counts all and lists failures. The report keeps
///   what failed: a later `flush` or `close` tells of it again.
/// - **In order, row by row**: of several writes of one row the last one added wins. Those that wait are folded into one; no
///   write is sent while an earlier one of its row is under way. There is no order between rows.
/// - **Grouped** by [owner](Grouping) into requests below the backend's limits. While the wire is free a row goes at once;
///   while it is busy, requests fill up by themselves.
/// - **In parallel**: rows are serialised in the task that adds them, and sent by tasks of their own. Add from several tasks
///   (`&Streamer` is enough) to prepare on several cores.
/// - Sent again by the client's retry layer: those rows that failed, at the write time of their `add`.
/// - Dropped without [`close`](Self::close), it goes on in the background while the runtime lives; it warns, and counts what
///   had no outcome as [`STREAMER_ABANDONED`].
///
/// ```
/// # use peristyle_core::{client::Client, memory::MemoryBackend, model::{Row, TableSpec, Type}};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> peristyle_core::Result<()> {
/// # let client = Client::builder(MemoryBackend::new()).build();
/// # let spec = TableSpec::builder("t1").partition("id", Type::I64).column("title", Type::Text).build()?;
/// # client.create_table(&spec).await?;
/// # let table = client.table(spec).await?;
/// let streamer = table.streamer().max_rows(50_000).max_bytes(64 << 20).open();
/// for id in 0..1_000_i64 {
///     streamer.add(&Row::new().with("id", id).with("title", "Dune")).await?; // waits when the store is slower
/// }
/// let report = streamer.close().await?;
/// assert_eq!((report.applied, report.failed, report.unknown), (1_000, 0, 0));
/// # Ok(()) }
/// ```
pub struct Streamer {
    shared: Arc<Shared>,
}

type Listener = Box<dyn Fn(u64, &Error) + Send + Sync>;

struct Shared {
    table: Table,
    grouping: Grouping,
    ttl: Result<Ttl>,
    options: RequestOptions,
    timeout: Option<Duration>,
    listener: Option<Listener>,
    runtime: Handle,
    most_senders: usize,
    max_rows: usize,
    max_bytes: usize,
    free_rows: Semaphore,
    free_bytes: Semaphore,
    state: Mutex<State>,
    /// The barriers that are passed.
    passed: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    buffer: Buffer,
    senders: usize,
    closed: bool,
}

/// A write that is ready to be added.
struct Prepared {
    key: Place,
    mutation: Mutation,
    bytes: u32,
}

impl Streamer {
    /// Adds a put of the present columns of a row, and waits for room as long as it takes.
    ///
    /// # Errors
    /// What is wrong with the row, [`TooLarge`](ErrorKind::TooLarge) for one of more bytes than all may have together, and
    /// [`Closed`](ErrorKind::Closed) after [`close`](Self::close). The row was then not added.
    ///
    /// # Cancel safety
    /// Dropped while it waits, it adds nothing.
    pub async fn add<R: ToRow + ?Sized>(&self, row: &R) -> Result<Receipt> {
        let put = self.shared.put(row);
        self.shared.add(put).await.map_err(|error| self.shared.named("add", error))
    }

    /// Adds a row if there is room for it now, else gives it back.
    ///
    /// # Errors
    /// As [`add`](Self::add); [`Overloaded`](ErrorKind::Overloaded) if there is no room.
    pub fn try_add<R: ToRow>(&self, row: R) -> Result<Receipt, Rejected<R>> {
        let added = self.shared.put(&row).and_then(|put| {
            self.shared.try_reserve(put.bytes)?;
            self.shared.push(put)
        });
        added.map_err(|error| Rejected { row, error: self.shared.named("try_add", error) })
    }

    /// Adds a delete of a row, in order with its puts, and waits for room as long as it takes.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    /// Dropped while it waits, it adds nothing.
    pub async fn delete<K: ToKey>(&self, key: K) -> Result<Receipt> {
        let key = key.to_key(self.shared.table.spec().primary_key());
        let delete = key.and_then(|key| self.shared.prepare(Mutation::delete_row(key, WriteTime::MIN)));
        self.shared.add(delete).await.map_err(|error| self.shared.named("delete", error))
    }

    /// Waits until every row that was added before this call has its outcome, and tells of all rows so far.
    ///
    /// # Errors
    /// [`TimeoutPhase::Deadline`] when the [time](StreamerBuilder::timeout) is over before; the rows stay.
    ///
    /// # Cancel safety
    /// Dropped, it changes nothing.
    pub async fn flush(&self) -> Result<StreamReport> {
        let barrier = self.shared.state().buffer.cut();
        let passed = self.shared.pass(barrier).await;
        passed.map(|()| self.report()).map_err(|error| self.shared.named("flush", error))
    }

    /// Refuses further rows, waits until every row has its outcome, and tells of them all. May be called again, with the
    /// same answer.
    ///
    /// # Errors
    /// [`TimeoutPhase::Deadline`] when the [time](StreamerBuilder::timeout) is over before. What still waited is then given
    /// up, not applied; what is under way ends by the client's deadline. [`report`](Self::report) has the figures.
    ///
    /// # Cancel safety
    /// Dropped, the streamer stays closed for further rows, and goes on sending; call it again to wait.
    pub async fn close(&self) -> Result<StreamReport> {
        let barrier = {
            let mut state = self.shared.state();
            state.closed = true;
            state.buffer.cut()
        };
        self.shared.free_rows.close();
        self.shared.free_bytes.close();
        let passed = self.shared.pass(barrier).await;
        if let Err(error) = passed {
            self.shared
                .give_up(&given_up("the streamer was closed, and the time for it was over before the row was sent"));
            return Err(self.shared.named("close", error));
        }
        Ok(self.report())
    }

    /// What became of the rows so far.
    pub fn report(&self) -> StreamReport {
        self.shared.state().buffer.report().share()
    }
}

impl Drop for Streamer {
    fn drop(&mut self) {
        let state = self.shared.state();
        let report = state.buffer.report();
        if state.closed || report.added == 0 {
            return;
        }
        let (unfinished, failed) = (report.unfinished(), report.failed + report.unknown);
        drop(state);
        metrics::counter!(STREAMER_UNCLOSED).increment(1);
        metrics::counter!(STREAMER_ABANDONED).increment(unfinished);
        tracing::warn!(
            table = &**self.shared.table.spec().name(),
            unfinished,
            failed,
            "a streamer was dropped without close: nobody was told of these rows"
        );
    }
}

impl fmt::Debug for Streamer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report();
        f.debug_struct("Streamer").field("table", self.shared.table.spec().name()).field("report", &report).finish()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn named(&self, operation: &'static str, error: Error) -> Error {
        error.with_context(operation, self.table.spec().name())
    }

    fn put<R: ToRow + ?Sized>(&self, row: &R) -> Result<Prepared> {
        let put = Mutation::put_row(row, self.table.spec())?;
        let ttl = self.ttl.as_ref().map_err(Error::share)?;
        self.prepare(put.with_ttl(*ttl))
    }

    fn prepare(&self, mutation: Mutation) -> Result<Prepared> {
        let size = mutation.size();
        let bytes = u32::try_from(size).ok().filter(|_| size <= self.max_bytes).ok_or_else(|| {
            let most = self.max_bytes;
            let message = format!("a row of {size} bytes; the streamer holds {most} in all: raise `max_bytes`");
            Error::new(ErrorKind::TooLarge, message)
        })?;
        let topology = self.table.client().topology();
        let key = self.grouping.place(topology, self.table.spec(), &mutation.key);
        Ok(Prepared { key, mutation, bytes })
    }

    async fn add(self: &Arc<Self>, prepared: Result<Prepared>) -> Result<Receipt> {
        let prepared = prepared?;
        // One after the other, in one order for all, and what is under way gives back without either: no deadlock.
        let row = self.free_rows.acquire().await.map_err(|_| closed())?;
        let bytes = self.free_bytes.acquire_many(prepared.bytes).await.map_err(|_| closed())?;
        row.forget();
        bytes.forget();
        self.push(prepared)
    }

    fn try_reserve(&self, bytes: u32) -> Result<()> {
        let refused = |error: TryAcquireError| match error {
            TryAcquireError::Closed => closed(),
            TryAcquireError::NoPermits => {
                let (rows, bytes) = (self.max_rows, self.max_bytes);
                let message = format!(
                    "no room among {rows} rows and {bytes} bytes; wait with `add`, send less, or raise the limits"
                );
                Error::new(ErrorKind::Overloaded, message).with_outcome(Outcome::NotApplied)
            }
        };
        let row = self.free_rows.try_acquire().map_err(refused)?;
        self.free_bytes.try_acquire_many(bytes).map_err(refused)?.forget();
        row.forget();
        Ok(())
    }

    /// Adds a row for which there is room.
    fn push(self: &Arc<Self>, prepared: Prepared) -> Result<Receipt> {
        let Prepared { key, mut mutation, bytes } = prepared;
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        if state.closed {
            drop(state);
            self.free(1, usize::try_from(bytes).unwrap_or(usize::MAX));
            return Err(closed());
        }
        // Under the lock, so that the order of write times is the order of rows.
        mutation.write_time = self.table.client().next_write_time();
        let place = state.buffer.report().added;
        state.buffer.add(place, key, mutation, usize::try_from(bytes).unwrap_or(usize::MAX), Some(sender));
        self.send_from(state);
        Ok(Receipt::new(place, receiver))
    }

    /// Starts a task if there is something to send.
    fn send(self: &Arc<Self>) {
        self.send_from(self.state());
    }

    fn send_from(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if !state.buffer.is_ready() || state.senders >= self.most_senders {
            return;
        }
        state.senders += 1;
        drop(state);
        Sender::start(Arc::clone(self));
    }

    /// Ends a request.
    fn end(self: &Arc<Self>, sent: Sent, answer: Result<Response>) {
        let (ended, passed) = {
            let mut state = self.state();
            (state.buffer.end(sent, answer), state.buffer.passed())
        };
        self.ended(ended, passed);
        self.send();
    }

    fn give_up(&self, error: &Error) {
        let (ended, passed) = {
            let mut state = self.state();
            (state.buffer.give_up(error), state.buffer.passed())
        };
        self.ended(ended, passed);
    }

    fn ended(&self, ended: Ended, passed: u64) {
        self.free(ended.rows, ended.bytes);
        self.passed.send_if_modified(|barrier| {
            let moved = *barrier < passed;
            *barrier = passed.max(*barrier);
            moved
        });
        if let Some(listener) = &self.listener {
            ended.failures.iter().for_each(|(place, error)| listener(*place, error));
        }
    }

    fn free(&self, rows: usize, bytes: usize) {
        self.free_rows.add_permits(rows);
        self.free_bytes.add_permits(bytes);
    }

    /// Waits for a barrier.
    async fn pass(&self, barrier: u64) -> Result<()> {
        let mut passed = self.passed.subscribe();
        // The other end is in the same place, so it is never gone.
        let wait = async move { passed.wait_for(|passed| *passed >= barrier).await.map(drop).map_err(|_| closed()) };
        within(self.timeout, wait).await
    }
}

/// Waits for as long as may be.
async fn within(limit: Option<Duration>, wait: impl Future<Output = Result<()>>) -> Result<()> {
    let Some(limit) = limit else { return wait.await };
    tokio::time::timeout(limit, wait).await.unwrap_or_else(|_| {
        let message = format!("rows have no outcome after {limit:?}; check the servers' load, or allow more time");
        Err(Error::new(ErrorKind::Timeout(TimeoutPhase::Deadline), message))
    })
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the streamer is closed; open another")
}

#[cfg(test)]
mod tests;
