//! The tasks that send.

use std::sync::Arc;

use super::Shared;
use super::buffer::{Batch, Sent, given_up};
use crate::error::{Error, ErrorKind, Outcome, Result};
use crate::request::{Request, Write};
use crate::response::Response;

/// A task that sends one request after the other while there is something to send.
///
/// Dropped before its end, by a panic below or the end of the runtime, it accounts for what it had.
pub(super) struct Sender {
    shared: Arc<Shared>,
    is_done: bool,
}

impl Sender {
    /// Starts a task. The caller has counted it.
    pub(super) fn start(shared: Arc<Shared>) {
        let runtime = shared.runtime.clone();
        let sender = Self { shared, is_done: false };
        runtime.spawn(sender.run());
    }

    async fn run(mut self) {
        while let Some(flight) = Flight::take(&self.shared) {
            flight.fly().await;
        }
        self.is_done = true;
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        self.shared.state().senders -= 1;
        if std::thread::panicking() {
            self.shared.send();
        } else {
            self.shared.give_up(&given_up("the runtime of the streamer has ended; keep it until `close` is done"));
        }
    }
}

/// A request under way.
struct Flight {
    shared: Arc<Shared>,
    sent: Option<Sent>,
    request: Option<Request>,
}

impl Flight {
    /// The next request, if there is one; else the task is one less.
    fn take(shared: &Arc<Shared>) -> Option<Self> {
        let mut state = shared.state();
        let Some(Batch { mutations, sent }) = state.buffer.next() else {
            state.senders -= 1;
            return None;
        };
        drop(state);
        let request = Request::write(shared.table.spec().clone(), Write::ApplyAll(mutations));
        let request = Some(request.with_options(shared.options));
        Some(Self { shared: Arc::clone(shared), sent: Some(sent), request })
    }

    async fn fly(mut self) {
        if let Some(request) = self.request.take() {
            let answer = self.shared.table.client().call(request).await;
            self.land(answer);
        }
    }

    fn land(&mut self, answer: Result<Response>) {
        if let Some(sent) = self.sent.take() {
            self.shared.end(sent, answer);
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let error = Error::new(ErrorKind::Closed, "the task that sent the row ended before the answer");
        self.land(Err(error.with_outcome(Outcome::Unknown)));
    }
}
