//! How a streamer is opened.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use super::buffer::{Buffer, Caps};
use super::{Listener, Shared, State, Streamer};
use crate::capability::Capability;
use crate::error::{Error, Result};
use crate::grouping::Grouping;
use crate::model::Ttl;
use crate::request::{Consistency, RequestOptions};
use crate::table::Table;

/// Settings of a [`Streamer`].
#[must_use = "a streamer is opened by `open`"]
pub struct StreamerBuilder {
    table: Table,
    max_rows: usize,
    max_bytes: usize,
    rows_per_request: usize,
    concurrency: usize,
    grouping: Grouping,
    ttl: Result<Ttl>,
    options: RequestOptions,
    timeout: Option<Duration>,
    listener: Option<Listener>,
}

impl StreamerBuilder {
    pub(crate) fn new(table: Table) -> Self {
        let (rows_per_request, concurrency) = table.client().batching();
        let grouping = table.client().grouping();
        Self {
            table,
            max_rows: 8_192,
            max_bytes: 64 << 20,
            rows_per_request,
            concurrency,
            grouping,
            ttl: Ok(Ttl::TableDefault),
            options: RequestOptions::default(),
            timeout: None,
            listener: None,
        }
    }

    /// How many rows may be without an outcome, at least 1; default 8 192.
    pub fn max_rows(mut self, rows: usize) -> Self {
        self.max_rows = rows.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// How many bytes of keys and values these rows may have, at least 1; default 64 MiB. What holds them in memory comes on
    /// top: some 300 bytes for each row.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// How many rows go into one request; default: the client's setting.
    pub fn rows_per_request(mut self, rows: NonZeroUsize) -> Self {
        self.rows_per_request = rows.get();
        self
    }

    /// How many requests run at a time; default: the client's setting for bulk writes.
    pub fn concurrency(mut self, requests: NonZeroUsize) -> Self {
        self.concurrency = requests.get();
        self
    }

    /// Which rows go into one request; default: the client's setting.
    pub fn grouping(mut self, grouping: Grouping) -> Self {
        self.grouping = grouping;
        self
    }

    /// The columns of puts live this long, rounded up to whole seconds; default: the table's default. Zero and more than 20
    /// years are refused when a row is added.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Ttl::after(ttl);
        self
    }

    /// How many replicas must answer; default: the client's setting.
    pub fn consistency(mut self, level: Consistency) -> Self {
        self.options.consistency = Some(level);
        self
    }

    /// How long [`flush`](Streamer::flush) and [`close`](Streamer::close) wait; default: as long as it takes. Each request
    /// ends by the client's deadline in any case.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Is told of every row that failed, by its [place](super::Receipt::place), as it happens; in a task that sends, so it
    /// should be quick.
    pub fn on_failure(mut self, listener: impl Fn(u64, &Error) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// Opens the streamer. Its tasks run in the runtime of the caller.
    ///
    /// # Panics
    /// Outside of a tokio runtime, as `tokio::spawn` does.
    pub fn open(self) -> Streamer {
        let capabilities = self.table.client().capabilities();
        let limits = capabilities.limits();
        // Half of the room at most, so that one request fills while another is under way.
        let rows = self.rows_per_request.min(limits.batch_rows).min(self.max_rows.div_ceil(2)).max(1);
        let bytes = limits.batch_bytes.min(self.max_bytes.div_ceil(2)).max(1);
        let buffer = Buffer::new(Caps { rows, bytes }).replacing(capabilities.has(Capability::AtomicReplace));
        let state = State { buffer, senders: 0, closed: false };
        let shared = Shared {
            table: self.table,
            grouping: self.grouping,
            ttl: self.ttl,
            options: self.options,
            timeout: self.timeout,
            listener: self.listener,
            runtime: Handle::current(),
            most_senders: self.concurrency,
            max_rows: self.max_rows,
            max_bytes: self.max_bytes,
            free_rows: Semaphore::new(self.max_rows),
            free_bytes: Semaphore::new(self.max_bytes),
            state: Mutex::new(state),
            passed: watch::Sender::new(0),
        };
        Streamer { shared: shared.into() }
    }
}

impl fmt::Debug for StreamerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamerBuilder")
            .field("table", self.table.spec().name())
            .field("max_rows", &self.max_rows)
            .field("max_bytes", &self.max_bytes)
            .field("rows_per_request", &self.rows_per_request)
            .field("concurrency", &self.concurrency)
            .field("grouping", &self.grouping)
            .finish_non_exhaustive()
    }
}
