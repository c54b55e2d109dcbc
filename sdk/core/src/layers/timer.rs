//! The timer of a time limit.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that is made when it is first waited for: what is answered at once never needs it, and the future that holds it
/// stays small while it moves from layer to layer.
#[derive(Debug, Default)]
pub(super) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    /// Ready at this time; the same time must be given at every call.
    pub(super) fn poll(&mut self, end: Instant, context: &mut Context<'_>) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(end)));
        // Outside the runtime's budget for one turn: what the limit is for may use that up, every time.
        pin!(unconstrained(sleep.as_mut())).poll(context)
    }
}
