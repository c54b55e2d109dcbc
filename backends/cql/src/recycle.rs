//! Futures that are used again. The driver's futures are of several kilobytes: to allocate one for each request takes longer
//! than everything else here, and drives what the driver itself allocates out of the allocator's fast bins.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::LocalKey;

use futures::future::BoxFuture;
use peristyle_core::{Response, ResponseFuture, Result};

/// Workers that a thread keeps of one kind. A task that goes on to its next request takes the worker that it just gave back,
/// so a few are enough for any number of tasks.
const KEPT: usize = 16;

/// A future without end that does one job after the other, whenever it is polled with a new one on its desk.
type Worker = BoxFuture<'static, Infallible>;

/// What a thread has for one kind of job: idle workers, and the desk.
pub(crate) struct Office<J> {
    idle: RefCell<Vec<Worker>>,
    /// What goes in and out of the worker that is being polled. Whoever polls puts the job here first and takes the outcome
    /// away last, all on one thread, so the desk is empty in between, and one is enough for all workers.
    job: Cell<Option<J>>,
    outcome: Cell<Option<Result<Response>>>,
}

impl<J> Office<J> {
    pub(crate) const fn new() -> Self {
        Self { idle: RefCell::new(Vec::new()), job: Cell::new(None), outcome: Cell::new(None) }
    }

    fn keep(&self, worker: Worker) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < KEPT {
            idle.push(worker);
        }
    }
}

fn hire<J, F>(office: &'static LocalKey<Office<J>>, work: impl Fn(J) -> F + Send + 'static) -> Worker
where
    J: Send + 'static,
    F: Future<Output = Result<Response>> + Send + 'static,
{
    Box::pin(async move {
        loop {
            let job = poll_fn(|_| office.with(|office| office.job.take()).map_or(Poll::Pending, Poll::Ready)).await;
            let outcome = work(job).await;
            office.with(|office| office.outcome.set(Some(outcome)));
        }
    })
}

/// Has a job done by an idle worker of this thread, or a new one. One that is dropped amid its job is gone with all that the
/// job held; one that came to the end of it is kept.
pub(crate) fn recycled<J, F>(
    office: &'static LocalKey<Office<J>>,
    job: J,
    work: impl Fn(J) -> F + Send + 'static,
) -> ResponseFuture
where
    J: Send + Unpin + 'static,
    F: Future<Output = Result<Response>> + Send + 'static,
{
    let worker = office.with(|office| office.idle.borrow_mut().pop()).unwrap_or_else(|| hire(office, work));
    Box::pin(Job { office, waiting: Some(job), worker: Some(worker) })
}

struct Job<J: 'static> {
    office: &'static LocalKey<Office<J>>,
    /// Until it is first polled.
    waiting: Option<J>,
    /// `None` once the job is done.
    worker: Option<Worker>,
}

impl<J: Send + Unpin + 'static> Future for Job<J> {
    type Output = Result<Response>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(mut worker) = self.worker.take() else { return Poll::Pending };
        self.office.with(|office| {
            office.job.set(self.waiting.take());
            if let Poll::Ready(never) = worker.as_mut().poll(context) {
                match never {}
            }
            let Some(outcome) = office.outcome.take() else {
                self.worker = Some(worker);
                return Poll::Pending;
            };
            office.keep(worker);
            Poll::Ready(outcome)
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::{BoxFuture, pending, ready};
    use peristyle_core::Error;

    use super::*;

    type Instruction = &'static str;

    thread_local! {
        static OFFICE: Office<Instruction> = const { Office::new() };
    }

    fn work(instruction: Instruction) -> BoxFuture<'static, Result<Response>> {
        match instruction {
            "wait" => pending().boxed(),
            "panic" => panic!("a fault of the job"),
            "yield" => async {
                tokio::task::yield_now().await;
                Ok(Response::Done)
            }
            .boxed(),
            text => ready(Err(Error::invalid(text))).boxed(),
        }
    }

    fn start(instruction: Instruction) -> ResponseFuture {
        recycled(&OFFICE, instruction, work)
    }

    fn idle() -> usize {
        OFFICE.with(|office| office.idle.borrow().len())
    }

    #[tokio::test]
    async fn a_worker_goes_from_job_to_job_and_each_gets_its_own_outcome() {
        assert_eq!(start("first").await.unwrap_err().message(), "first");
        assert_eq!(idle(), 1);
        let second = start("second");
        assert_eq!(idle(), 0);
        assert_eq!(second.await.unwrap_err().message(), "second");
        assert!(matches!(start("yield").await, Ok(Response::Done)));
        assert_eq!(idle(), 1);
    }

    #[tokio::test]
    async fn a_job_that_is_dropped_takes_its_worker_along() {
        let mut waiting = start("wait");
        assert!((&mut waiting).now_or_never().is_none());
        drop(waiting);
        drop(start("never polled"));
        assert_eq!(idle(), 0);
        assert_eq!(start("next").await.unwrap_err().message(), "next");
    }

    #[tokio::test]
    async fn a_job_may_wait_for_another_of_its_kind() {
        fn nested(depth: u8) -> ResponseFuture {
            thread_local! { static OFFICE: Office<u8> = const { Office::new() }; }
            let work = |depth: u8| async move {
                tokio::task::yield_now().await;
                if depth > 0 { nested(depth - 1).await } else { Err(Error::invalid("the innermost")) }
            };
            recycled(&OFFICE, depth, work)
        }
        for _ in 0..2 {
            assert_eq!(nested(5).await.unwrap_err().message(), "the innermost");
        }
    }

    #[tokio::test]
    async fn a_worker_that_panics_leaves_nothing_to_the_next() {
        let panicking = std::panic::AssertUnwindSafe(start("panic")).catch_unwind().await;
        assert!(panicking.is_err());
        assert_eq!(start("next").await.unwrap_err().message(), "next");
    }

    #[tokio::test]
    async fn a_thread_keeps_few_workers() {
        let many: Vec<_> = (0..100).map(|_| start("many")).collect();
        for job in many {
            assert!(job.await.is_err());
        }
        assert_eq!(idle(), KEPT);
    }
}
