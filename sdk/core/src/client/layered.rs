//! A backend under a layer is a backend.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use tower::{Layer, Service, ServiceExt};

use crate::backend::{Backend, BackendService, ResponseFuture, Topology};
use crate::capability::Capabilities;
use crate::error::{Error, Result};
use crate::request::Request;
use crate::response::Response;

/// A backend with a layer on top; all but its calls goes to the backend itself.
pub(super) struct Layered<S> {
    backend: Arc<dyn Backend>,
    service: S,
}

impl<S> Layered<S> {
    pub(super) fn new<L>(backend: Arc<dyn Backend>, layer: &L) -> Self
    where
        L: Layer<BackendService<dyn Backend>, Service = S>,
    {
        let service = layer.layer(BackendService::new(Arc::clone(&backend)));
        Self { backend, service }
    }
}

impl<S> fmt::Debug for Layered<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layered").field("backend", &self.backend).finish_non_exhaustive()
    }
}

impl<S> Backend for Layered<S>
where
    S: Service<Request, Response = Response, Error = Error> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    fn name(&self) -> &'static str {
        self.backend.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.backend.capabilities()
    }

    fn call(&self, request: Request) -> ResponseFuture {
        Box::pin(self.service.clone().oneshot(request))
    }

    fn topology(&self) -> &dyn Topology {
        self.backend.topology()
    }

    fn native(&self) -> &dyn Any {
        self.backend.native()
    }

    fn close(&self) -> BoxFuture<'static, Result<()>> {
        self.backend.close()
    }
}
