//! The task that does what a Java thread asks for.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use peristyle::model::StoredRow;
use peristyle::{Error, ErrorKind, Result};
use peristyle_ycsb::{Status, Store, Writer};

use crate::desk::{Desk, WakeList};
use crate::sessions::Shared;
use crate::wire::Order;
use crate::{faults, wire};

/// What a session leaves for its clerk.
#[derive(Debug)]
pub(crate) enum Errand {
    /// An order as Java wrote it. It is read where the work is done: what that needs is allocated and freed by one thread.
    Call(Vec<u8>),
    /// The last one: what waits is written.
    Close,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: Status,
    /// What a read or scan found, as Java takes it, the status included; of a write, nothing that counts.
    pub(crate) records: Vec<u8>,
}

/// Where a session and its clerk meet.
pub(crate) type ClerkDesk = Desk<Errand, Result<Answer>>;
pub(crate) type ClerkWakeList = WakeList<Errand, Result<Answer>>;

/// The task.
#[derive(Debug)]
pub(crate) struct Clerk {
    pub(crate) desk: Arc<ClerkDesk>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) store: Store,
    pub(crate) writer: Writer,
    /// The first write that failed.
    pub(crate) failure: Option<Error>,
}

impl Clerk {
    /// Serves the desk until the session is closed. A panic is the answer to its order, and no more.
    pub(crate) async fn serve(mut self) {
        let mut is_open = true;
        while is_open {
            let errand = self.desk.next().await;
            is_open = !matches!(errand, Errand::Close);
            let answer = AssertUnwindSafe(self.run(errand)).catch_unwind().await;
            self.desk.answer(answer.unwrap_or_else(|panic| Err(panicked(&*panic))));
        }
    }

    async fn run(&mut self, errand: Errand) -> Result<Answer> {
        match errand {
            Errand::Call(order) => self.carry_out(order).await,
            Errand::Close => {
                self.writer.flush(&self.store).await;
                self.keep_failure();
                self.report()?;
                Ok(Answer { status: Status::Ok, records: Vec::new() })
            }
        }
    }

    async fn carry_out(&mut self, order: Vec<u8>) -> Result<Answer> {
        faults::panic_on_io_thread(&order);
        let (store, writer) = (&self.store, &mut self.writer);
        let status = match wire::decode(&order, store)? {
            Order::Read { key, fields } => {
                let row = store.read(key, fields).await;
                let status = if matches!(row, Ok(None)) { Status::NotFound } else { Status::Ok };
                let rows = row.as_ref().map(Option::as_slice);
                return Ok(self.found(status, rows, order));
            }
            Order::Scan { start, count, fields } => {
                self.shared.tell_order(store);
                let rows = store.scan(start, count, fields).await;
                return Ok(self.found(Status::Ok, rows.as_deref(), order));
            }
            Order::Update { key, record } => writer.update(store, key, record).await,
            Order::Insert { key, record } => writer.insert(store, key, record).await,
            Order::Delete { key } => match store.delete(key).await {
                Ok(()) => Status::Ok,
                Err(error) => self.shared.failed(&error),
            },
        };
        self.keep_failure();
        Ok(Answer { status, records: order })
    }

    /// What was found, in the memory of the order.
    fn found(&self, status: Status, rows: Result<&[StoredRow], &Error>, order: Vec<u8>) -> Answer {
        let (status, rows) = match rows {
            Ok(rows) => (status, rows),
            Err(error) => (self.shared.failed(error), [].as_slice()),
        };
        let mut records = order;
        records.clear();
        wire::encode(status, rows, &self.store, &mut records);
        Answer { status, records }
    }

    fn keep_failure(&mut self) {
        if let Some(error) = self.writer.take_failure() {
            self.shared.failed(&error);
            self.failure.get_or_insert(error);
        }
    }

    /// What became of the writes whose status said nothing of it.
    fn report(&self) -> Result<()> {
        let (sent, failed) = (self.writer.sent(), self.writer.failed());
        match &self.failure {
            Some(first) if failed > 0 => {
                Err(Error::new(first.kind(), format!("{failed} of {sent} writes failed; the first: {first}")))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        self.desk.close();
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::new(ErrorKind::Internal, format!("panic: {}", message.unwrap_or("of unknown cause")))
}
