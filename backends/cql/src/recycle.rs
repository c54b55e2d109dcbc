//! Futures that are used again. The driver's futures are of several kilobytes: to allocate one for each request takes longer
//! than everything else here, and drives what the driver itself allocates out of the allocator's fast bins.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::LocalKey;

use futures::future::BoxFuture;
use peristyle_core::{Response, ResponseFuture, Result};

/// Workers that a thread keeps of one kind. A task that goes on to its next request takes the worker that it just gave back,
/// so a few are enough for any number of tasks.
const KEPT: usize = 16;

/// The idle workers of one thread for one kind of job.
pub(crate) type Workers<J> = RefCell<Vec<Worker<J>>>;

/// A future without end that does one job after the other, whenever it is polled with a new one.
pub(crate) struct Worker<J> {
    desk: Arc<Mutex<Desk<J>>>,
    future: BoxFuture<'static, Infallible>,
}

/// Where a worker finds its job and leaves the outcome. Only the owner of the worker and the worker itself, which the owner
/// polls, ever lock it, one after the other.
struct Desk<J> {
    job: Option<J>,
    outcome: Option<Result<Response>>,
}

impl<J: Send + 'static> Worker<J> {
    fn hire<F>(work: impl Fn(J) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<Response>> + Send + 'static,
    {
        let desk = Arc::new(Mutex::new(Desk { job: None, outcome: None }));
        let own = Arc::clone(&desk);
        let future = Box::pin(async move {
            loop {
                let job = poll_fn(|_| lock(&own).job.take().map_or(Poll::Pending, Poll::Ready)).await;
                let outcome = work(job).await;
                lock(&own).outcome = Some(outcome);
            }
        });
        Self { desk, future }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Response>> {
        match self.future.as_mut().poll(context) {
            Poll::Pending => lock(&self.desk).outcome.take().map_or(Poll::Pending, Poll::Ready),
            Poll::Ready(never) => match never {},
        }
    }
}

/// Has a job done by an idle worker of this thread, or a new one. One that is dropped amid its job is gone with all that the
/// job held; one that came to the end of it is kept.
pub(crate) fn recycled<J, F>(
    idle: &'static LocalKey<Workers<J>>,
    job: J,
    work: impl Fn(J) -> F + Send + 'static,
) -> ResponseFuture
where
    J: Send + 'static,
    F: Future<Output = Result<Response>> + Send + 'static,
{
    let worker = idle.with_borrow_mut(Vec::pop).unwrap_or_else(|| Worker::hire(work));
    lock(&worker.desk).job = Some(job);
    Box::pin(Job { idle, worker: Some(worker) })
}

struct Job<J: 'static> {
    idle: &'static LocalKey<Workers<J>>,
    /// `None` once the job is done.
    worker: Option<Worker<J>>,
}

impl<J: Send + 'static> Future for Job<J> {
    type Output = Result<Response>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(worker) = &mut self.worker else { return Poll::Pending };
        let outcome = worker.poll(context);
        if outcome.is_ready() {
            let spare = self.worker.take();
            self.idle.with_borrow_mut(|idle| {
                if idle.len() < KEPT {
                    idle.extend(spare);
                }
            });
        }
        outcome
    }
}

/// Nothing that is done under this lock can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::{BoxFuture, pending, ready};
    use peristyle_core::Error;

    use super::*;

    type Instruction = &'static str;

    thread_local! {
        static IDLE: Workers<Instruction> = const { RefCell::new(Vec::new()) };
    }

    fn work(instruction: Instruction) -> BoxFuture<'static, Result<Response>> {
        match instruction {
            "wait" => pending().boxed(),
            "yield" => async {
                tokio::task::yield_now().await;
                Ok(Response::Done)
            }
            .boxed(),
            text => ready(Err(Error::invalid(text))).boxed(),
        }
    }

    fn start(instruction: Instruction) -> ResponseFuture {
        recycled(&IDLE, instruction, work)
    }

    fn idle() -> usize {
        IDLE.with_borrow(Vec::len)
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
    async fn a_thread_keeps_few_workers() {
        let many: Vec<_> = (0..100).map(|_| start("many")).collect();
        for job in many {
            assert!(job.await.is_err());
        }
        assert_eq!(idle(), KEPT);
    }
}
