//! Puts a client together: the one place that knows the order of the layers.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tower::ServiceBuilder;

use super::{Client, Shared};
use crate::backend::{Backend, BackendService};
use crate::clock::{Clock, WriteClock};
use crate::layers::{CheckLayer, DeadlineLayer};

/// Settings of a [`Client`].
#[derive(Debug)]
pub struct ClientBuilder {
    backend: Arc<dyn Backend>,
    deadline: Duration,
    clock: Clock,
    batch_rows: NonZeroUsize,
    batch_concurrency: NonZeroUsize,
}

const fn non_zero(number: usize) -> NonZeroUsize {
    match NonZeroUsize::new(number) {
        Some(number) => number,
        None => NonZeroUsize::MIN,
    }
}

impl ClientBuilder {
    /// The default settings over this backend.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            deadline: Duration::from_secs(30),
            clock: Clock::system(),
            batch_rows: non_zero(64),
            batch_concurrency: non_zero(16),
        }
    }

    /// How long any data request may take, queues included, unless it has a deadline of its own; default 30 s. Schema
    /// requests get at least 120 s.
    #[must_use]
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = limit;
        self
    }

    /// The clock of write times; default: the system's.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// How many rows `put_all` and `get_all` put into one request; default 64.
    #[must_use]
    pub fn batch_rows(mut self, rows: NonZeroUsize) -> Self {
        self.batch_rows = rows;
        self
    }

    /// How many requests of one `put_all` or `get_all` run at a time; default 16.
    #[must_use]
    pub fn batch_concurrency(mut self, requests: NonZeroUsize) -> Self {
        self.batch_concurrency = requests;
        self
    }

    /// The client.
    pub fn build(self) -> Client {
        let check = CheckLayer::new(self.backend.name(), self.backend.capabilities().clone(), self.clock.clone());
        let stack = ServiceBuilder::new()
            .layer(DeadlineLayer::new(self.deadline))
            .layer(check)
            .service(BackendService::new(Arc::clone(&self.backend)));
        let shared = Shared {
            backend: self.backend,
            stack: Box::new(stack),
            writes: WriteClock::new(self.clock),
            batch_rows: self.batch_rows.get(),
            batch_concurrency: self.batch_concurrency.get(),
        };
        Client { shared: Arc::new(shared) }
    }
}
