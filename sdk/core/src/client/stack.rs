//! The one place where the type of the stack is erased.

use std::fmt;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use tower::{Service, ServiceExt};

use crate::backend::ResponseFuture;
use crate::error::Error;
use crate::request::Request;
use crate::response::Response;
use crate::thread;

/// A stack of layers over a backend, called through a shared reference.
pub(super) trait Stack: Send + Sync + fmt::Debug {
    fn call(&self, request: Request) -> ResponseFuture;
}

/// A clone of the service for each thread. To clone it for each request would take a reference to everything that its layers
/// share, and the counts of these would go from processor to processor with every request.
#[derive(Debug)]
pub(super) struct PerThread<S> {
    service: S,
    clones: [Own<S>; thread::NUMBERS],
}

/// On cache lines of its own, two of which some processors fetch at a time.
#[derive(Debug)]
#[repr(align(128))]
struct Own<S>(Mutex<S>);

impl<S: Clone> PerThread<S> {
    pub(super) fn new(service: S) -> Self {
        let clones = std::array::from_fn(|_| Own(Mutex::new(service.clone())));
        Self { service, clones }
    }
}

impl<S> Stack for PerThread<S>
where
    S: Service<Request, Response = Response, Error = Error> + Clone + Send + Sync + fmt::Debug + 'static,
    S::Future: Send,
{
    fn call(&self, request: Request) -> ResponseFuture {
        match self.clones.get(thread::number()).map(|own| own.0.try_lock()) {
            Some(Ok(mut service)) => send(&mut *service, request),
            // Held by a thread with the same number, or by this one: a layer may call the client that it is part of.
            _ => send(&mut self.service.clone(), request),
        }
    }
}

fn send<S>(service: &mut S, request: Request) -> ResponseFuture
where
    S: Service<Request, Response = Response, Error = Error> + Clone + Send + 'static,
    S::Future: Send,
{
    // The layers are ready at once, as a rule: then the request goes to them without a stop in a future of its own.
    match service.poll_ready(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(())) => Box::pin(service.call(request)),
        _ => Box::pin(service.clone().oneshot(request)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, OnceLock};

    use futures::FutureExt;

    use super::*;
    use crate::error::Result;
    use crate::request::{Replication, Schema};

    fn request() -> Request {
        Request::schema(Schema::CreateNamespace { replication: Replication::default(), if_absent: true })
    }

    /// A service that calls the stack that it is part of, once.
    #[derive(Debug, Clone, Default)]
    struct Nested {
        stack: Arc<OnceLock<Arc<PerThread<Self>>>>,
        calls: Arc<AtomicUsize>,
    }

    impl Service<Request> for Nested {
        type Response = Response;
        type Error = Error;
        type Future = ResponseFuture;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request) -> ResponseFuture {
            if self.calls.fetch_add(1, Ordering::Relaxed) == 0 {
                return self.stack.get().unwrap().call(request);
            }
            futures::future::ok(Response::Done).boxed()
        }
    }

    #[test]
    fn a_layer_may_call_the_client_that_it_is_part_of() {
        let service = Nested::default();
        let stack = Arc::new(PerThread::new(service.clone()));
        service.stack.set(Arc::clone(&stack)).unwrap();
        assert!(matches!(stack.call(request()).now_or_never(), Some(Ok(Response::Done))));
        assert_eq!(service.calls.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn threads_beyond_the_number_of_clones_are_served_too() {
        let service = Nested { calls: Arc::new(AtomicUsize::new(1)), ..Nested::default() };
        let stack = PerThread::new(service.clone());
        std::thread::scope(|scope| {
            for _ in 0..2 * thread::NUMBERS {
                scope.spawn(|| assert!(stack.call(request()).now_or_never().is_some()));
            }
        });
        assert_eq!(service.calls.load(Ordering::Relaxed), 1 + 2 * thread::NUMBERS);
    }
}
