//! What waits to be written.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use peristyle_core::model::TableSpec;
use peristyle_core::request::{Condition, Mutation};
use peristyle_core::{Response, Result};
use tokio::sync::{Semaphore, oneshot};

use crate::codec::RowKey;
use crate::error::closed;
use crate::schema::Table;

/// How many requests wait before callers wait to hand over theirs.
const PLACES: usize = 1024;
/// The most rows that are made durable at once, unless one request has more.
const GROUP_ROWS: usize = 8192;

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
#[expect(clippy::large_enum_variant, reason = "nearly every message is a write, and none is moved more than twice")]
pub(crate) enum Message {
    Write(Job),
    Other(Other),
}

/// What only the engine's own thread does.
pub(crate) enum Other {
    Schema(SchemaChange, Reply),
    Close(oneshot::Sender<Result<()>>),
}

/// Messages in the order of their arrival, a limited number of them.
pub(crate) struct Queue {
    state: Mutex<State>,
    called: Condvar,
    places: Semaphore,
}

#[derive(Default)]
struct State {
    messages: VecDeque<Message>,
    /// Nothing comes in any more.
    closed: bool,
    /// The thread is wanted.
    call: bool,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), called: Condvar::new(), places: Semaphore::new(PLACES) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place and takes it. Dropping the future leaves nothing behind.
    pub(crate) async fn push(&self, message: Message) -> Result<()> {
        self.places.acquire().await.map_err(|_| closed())?.forget();
        let mut state = self.state();
        if state.closed {
            return Err(closed());
        }
        state.messages.push_back(message);
        Ok(())
    }

    /// Ends the queue with this message; there is always a place for it.
    pub(crate) fn close(&self, reply: oneshot::Sender<Result<()>>) {
        let mut state = self.state();
        state.closed = true;
        state.messages.push_back(Message::Other(Other::Close(reply)));
        drop(state);
        self.places.close();
        self.call();
    }

    /// Asks the thread to come.
    pub(crate) fn call(&self) {
        self.state().call = true;
        self.called.notify_one();
    }

    /// Waits for a call.
    pub(crate) fn wait(&self) {
        let waiting = self.called.wait_while(self.state(), |state| !state.call);
        waiting.unwrap_or_else(PoisonError::into_inner).call = false;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state().messages.is_empty()
    }

    /// Takes the writes that wait, up to the first message of another kind.
    pub(crate) fn take_writes(&self) -> Vec<Job> {
        let mut state = self.state();
        let (mut jobs, mut rows) = (Vec::new(), 0);
        while rows < GROUP_ROWS {
            match state.messages.pop_front() {
                Some(Message::Write(job)) => {
                    rows += job.operation.rows();
                    jobs.push(job);
                }
                Some(other) => {
                    state.messages.push_front(other);
                    break;
                }
                None => break,
            }
        }
        drop(state);
        self.places.add_permits(jobs.len());
        jobs
    }

    /// Takes the first message if it is no write.
    pub(crate) fn take_other(&self) -> Option<Other> {
        let mut state = self.state();
        let message = match state.messages.pop_front()? {
            Message::Write(job) => {
                state.messages.push_front(Message::Write(job));
                return None;
            }
            Message::Other(other) => other,
        };
        self.places.add_permits(1);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn change() -> (Message, oneshot::Receiver<Result<Response>>) {
        let (reply, answer) = oneshot::channel();
        (Message::Other(Other::Schema(SchemaChange::Truncate { name: "t".into() }, reply)), answer)
    }

    #[test]
    fn a_full_queue_makes_callers_wait_for_a_place() {
        let queue = Queue::new();
        for _ in 0..PLACES {
            assert!(queue.push(change().0).now_or_never().is_some());
        }
        let mut waiting = Box::pin(queue.push(change().0));
        assert!(waiting.as_mut().now_or_never().is_none());
        queue.take_other();
        assert!(waiting.now_or_never().is_some());
        assert!(queue.push(change().0).now_or_never().is_none());
    }

    #[test]
    fn a_caller_that_gave_up_waiting_leaves_its_place_to_others() {
        let queue = Queue::new();
        for _ in 0..PLACES {
            queue.push(change().0).now_or_never().unwrap().unwrap();
        }
        assert!(queue.push(change().0).now_or_never().is_none());
        queue.take_other();
        assert!(queue.push(change().0).now_or_never().is_some());
    }

    #[test]
    fn a_closed_queue_gives_out_what_it_has_and_takes_no_more() {
        let queue = Queue::new();
        queue.push(change().0).now_or_never().unwrap().unwrap();
        queue.close(oneshot::channel().0);
        assert!(queue.push(change().0).now_or_never().unwrap().is_err());
        assert!(matches!(queue.take_other(), Some(Other::Schema(..))));
        assert!(matches!(queue.take_other(), Some(Other::Close(_))));
        assert!(queue.is_empty());
    }

    #[test]
    fn a_call_before_the_wait_is_not_lost() {
        let queue = Queue::new();
        queue.call();
        queue.wait();
    }
}
