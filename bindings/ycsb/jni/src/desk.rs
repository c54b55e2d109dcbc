//! Where a Java thread leaves an order and waits for the answer. The work is done by a task on the io threads, whose code and
//! data are in the caches: on the many threads of YCSB, each of which is woken for one operation, the same work takes far longer.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread::{self, Thread};

/// How many others a caller wakes that was woken itself.
const FAN_OUT: usize = 2;

/// Orders go one way and answers the other, one at a time.
#[derive(Debug)]
pub(crate) struct Desk<O, A> {
    /// Callers of one desk wait for each other.
    turn: Mutex<()>,
    tray: Mutex<Tray<O, A>>,
    wake_list: Arc<WakeList<O, A>>,
}

#[derive(Debug)]
struct Tray<O, A> {
    order: Option<O>,
    answer: Option<A>,
    /// The thread that waits for the answer, until it is woken.
    caller: Option<Thread>,
    clerk: Option<Waker>,
    is_closed: bool,
}

/// Callers that have their answer and are to be woken. An io thread that woke each at once would lose its processor to it: two
/// switches of threads for each operation. So it wakes one when it has nothing else to do, and those wake each other.
#[derive(Debug)]
pub(crate) struct WakeList<O, A>(Mutex<VecDeque<Arc<Desk<O, A>>>>);

impl<O, A> Default for WakeList<O, A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<O, A> WakeList<O, A> {
    /// Wakes at most so many callers.
    pub(crate) fn wake(&self, count: usize) {
        let mut woken = 0;
        while woken < count {
            let Some(desk) = lock(&self.0).pop_front() else { return };
            woken += usize::from(desk.wake());
        }
    }
}

impl<O, A> Desk<O, A> {
    pub(crate) fn new(wake_list: Arc<WakeList<O, A>>) -> Self {
        let tray = Tray { order: None, answer: None, caller: None, clerk: None, is_closed: false };
        Self { turn: Mutex::default(), tray: Mutex::new(tray), wake_list }
    }

    /// Leaves an order, and waits for the answer; `None` if nobody serves the desk any more.
    pub(crate) fn ask(&self, order: O) -> Option<A> {
        let _turn = lock(&self.turn);
        let clerk = {
            let mut tray = lock(&self.tray);
            tray.order = Some(order);
            tray.clerk.take()
        };
        if let Some(clerk) = clerk {
            clerk.wake();
        }
        if self.wait() {
            // Whoever was woken wakes others, so that all on the list are woken though the io thread wakes but one.
            self.wake_list.wake(FAN_OUT);
        }
        lock(&self.tray).answer.take()
    }

    /// Waits until there is an answer; whether it was woken for it.
    fn wait(&self) -> bool {
        let mut tray = lock(&self.tray);
        if tray.answer.is_some() || tray.is_closed {
            return false;
        }
        tray.caller = Some(thread::current());
        while tray.caller.is_some() {
            drop(tray);
            thread::park();
            tray = lock(&self.tray);
        }
        true
    }

    /// The next order. For one task only.
    pub(crate) async fn next(&self) -> O {
        poll_fn(|context| {
            let mut tray = lock(&self.tray);
            if tray.order.is_none() {
                tray.clerk = Some(context.waker().clone());
            }
            tray.order.take().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Gives the answer. The caller that waits for it is on the wake list then.
    pub(crate) fn answer(self: &Arc<Self>, answer: A) {
        let mut tray = lock(&self.tray);
        tray.answer = Some(answer);
        if tray.caller.is_some() {
            drop(tray);
            lock(&self.wake_list.0).push_back(Arc::clone(self));
        }
    }

    /// Tells callers, now and later, that nobody serves the desk any more.
    pub(crate) fn close(&self) {
        lock(&self.tray).is_closed = true;
        self.wake();
    }

    /// Whether there was somebody to be woken.
    fn wake(&self) -> bool {
        let caller = lock(&self.tray).caller.take();
        caller.inspect(Thread::unpark).is_some()
    }
}

/// Nothing that is done under these locks can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
