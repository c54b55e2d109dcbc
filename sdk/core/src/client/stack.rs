//! The one place where the type of the stack is erased.

use std::fmt;
use std::task::{Context, Poll, Waker};

use tower::{Service, ServiceExt};

use crate::backend::ResponseFuture;
use crate::error::Error;
use crate::request::Request;
use crate::response::Response;

/// A stack of layers over a backend, called through a shared reference.
pub(super) trait Stack: Send + Sync + fmt::Debug {
    fn call(&self, request: Request) -> ResponseFuture;
}

impl<S> Stack for S
where
    S: Service<Request, Response = Response, Error = Error> + Clone + Send + Sync + fmt::Debug + 'static,
    S::Future: Send,
{
    fn call(&self, request: Request) -> ResponseFuture {
        let mut service = self.clone();
        // The layers are ready at once, as a rule: then the request goes to them without a stop in a future of its own.
        match service.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => Box::pin(Service::call(&mut service, request)),
            _ => Box::pin(service.oneshot(request)),
        }
    }
}
