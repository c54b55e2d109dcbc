//! The one place where the type of the stack is erased.

use std::fmt;

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
        Box::pin(self.clone().oneshot(request))
    }
}
