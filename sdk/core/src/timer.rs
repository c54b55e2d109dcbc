//! Timers of time limits that hardly ever end.
//!
//! Nearly every request is answered long before its limit. To enter a timer in the runtime's wheel and to take it out again
//! costs two locks for each such request, so timers are kept: a thread hands the same ones out again, still in the wheel at the
//! end of some earlier limit. One that rings too early is set anew, which happens once for each limit that passes.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

/// Limits of so many sizes, each twice the one before, have timers of their own: a timer for long limits would have to be set
/// anew for a short one.
const SIZES: usize = 24;

/// Timers that a thread keeps of one size. A task takes for its next request what it gave back with the last.
const KEPT: usize = 32;

thread_local! {
    static IDLE: RefCell<[Vec<Kept>; SIZES]> = const { RefCell::new([const { Vec::new() }; SIZES]) };
}

#[derive(Debug)]
struct Kept {
    sleep: Pin<Box<Sleep>>,
    runtime: Id,
}

/// A timer that is taken when it is first waited for, and given back when it is dropped: what is answered at once never needs
/// one.
///
/// A task may be woken by it before its time is over, and once after it is dropped; neither makes it ready.
#[derive(Debug)]
pub struct Timer {
    size: usize,
    kept: Option<Kept>,
}

impl Timer {
    /// A timer for ends that lie about so far ahead when it is first waited for.
    pub fn new(limit: Duration) -> Self {
        let size = limit.as_millis().checked_ilog2().unwrap_or(0) as usize;
        Self { size: size.min(SIZES - 1), kept: None }
    }

    /// Ready at this time; the same time must be given at every call.
    ///
    /// # Panics
    /// Outside a runtime of tokio with its clock enabled.
    pub fn poll(&mut self, end: Instant, context: &mut Context<'_>) -> Poll<()> {
        let size = self.size;
        let kept = self.kept.get_or_insert_with(|| take(size, end));
        // Outside the runtime's budget for one turn: what the limit is for may use that up, every time.
        ready!(pin!(unconstrained(kept.sleep.as_mut())).poll(context));
        if kept.sleep.deadline() >= end || Instant::now() >= end {
            return Poll::Ready(());
        }
        kept.sleep.as_mut().reset(end);
        pin!(unconstrained(kept.sleep.as_mut())).poll(context)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        // A thread that ends has none to keep.
        let _ = IDLE.try_with(|idle| {
            if let Some(idle) = idle.borrow_mut().get_mut(self.size)
                && idle.len() < KEPT
            {
                idle.push(kept);
            }
        });
    }
}

/// An idle timer that rings by this time at the latest, or a new one.
fn take(size: usize, end: Instant) -> Kept {
    let runtime = Handle::current().id();
    let idle = IDLE.with_borrow_mut(|idle| idle.get_mut(size).and_then(Vec::pop));
    // A timer of another runtime may never ring: that one may be gone.
    if let Some(mut kept) = idle.filter(|kept| kept.runtime == runtime) {
        if kept.sleep.deadline() > end {
            kept.sleep.as_mut().reset(end);
        }
        return kept;
    }
    Kept { sleep: Box::pin(sleep_until(end)), runtime }
}

/// Waits for a future until this time at the latest; `limit` is about how far ahead that is. What is ready at the end is
/// ready.
///
/// # Errors
/// [`Elapsed`] if it isn't; the future is as it was then.
///
/// # Cancel safety
/// That of the future.
pub async fn within<F: Future>(limit: Duration, end: Instant, mut future: Pin<&mut F>) -> Result<F::Output, Elapsed> {
    let mut timer = Timer::new(limit);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => timer.poll(end, context).map(|()| Err(Elapsed)),
    })
    .await
}

/// The time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elapsed;

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::runtime::Builder;
    use tokio::time::sleep;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    async fn hang(limit: Duration) -> Duration {
        let start = Instant::now();
        let outcome = within(limit, start + limit, pin!(pending::<()>())).await;
        assert_eq!(outcome, Err(Elapsed));
        start.elapsed()
    }

    async fn answer(limit: Duration, after: Duration) {
        assert_eq!(within(limit, Instant::now() + limit, pin!(sleep(after))).await, Ok(()));
    }

    fn idle(limit: Duration) -> usize {
        let size = Timer::new(limit).size;
        IDLE.with_borrow(|idle| idle[size].len())
    }

    #[tokio::test(start_paused = true)]
    async fn a_kept_timer_rings_at_the_end_of_the_limit_that_it_is_waited_for() {
        for after in [1, 999, 500] {
            answer(LIMIT, Duration::from_millis(after)).await;
            assert_eq!(idle(LIMIT), 1);
            // The limit is longer than, shorter than, and as long as the one that the timer stands at.
            assert_eq!(hang(LIMIT).await, LIMIT);
            assert_eq!(hang(LIMIT / 10 * 6).await, LIMIT / 10 * 6);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_rang_while_it_was_idle_waits_for_the_next_end() {
        answer(LIMIT, LIMIT / 2).await;
        sleep(LIMIT * 5).await;
        assert_eq!(hang(LIMIT).await, LIMIT);
        assert_eq!(idle(LIMIT), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_ready_at_once_takes_no_timer_and_a_thread_keeps_few() {
        answer(LIMIT, Duration::ZERO).await;
        let before = idle(LIMIT);
        assert_eq!(within(LIMIT, Instant::now() + LIMIT, pin!(std::future::ready(1))).await, Ok(1));
        assert_eq!(idle(LIMIT), before);
        futures::future::join_all((0..10 * KEPT).map(|_| answer(LIMIT, LIMIT / 2))).await;
        assert_eq!(idle(LIMIT), KEPT);
    }

    #[test]
    fn a_runtime_does_not_take_the_timers_of_one_that_is_gone() {
        for _ in 0..3 {
            let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            runtime.block_on(answer(LIMIT, LIMIT / 2));
            assert_eq!(idle(LIMIT), 1);
            assert_eq!(runtime.block_on(hang(LIMIT)), LIMIT);
        }
    }
}
