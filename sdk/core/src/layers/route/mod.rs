//! Gives each request the endpoint that it goes to.

#[cfg(test)]
mod ring;

use std::task::{Context, Poll};

use tower::{Layer, Service};

use crate::endpoint::Router;
use crate::error::Result;
use crate::request::Request;

/// Writes into each request [where it goes](crate::request::RequestOptions::endpoint), before it is sent.
///
/// **Promise**: a request on rows whose owners are known, where there is more than one endpoint, goes to an owner that is well, by
/// the [`Router`]: a replica of its token, or the gateway that sits with its region. All that is held by endpoint below it, the
/// budget of retries, the circuit, the share of the limit of requests under way, is then that endpoint's, so that one that is slow
/// or fails takes nothing from the others. A request that brings an endpoint keeps it; scans and requests on the schema have
/// none. It changes where a request goes and nothing else. **Defaults**: on. **Cost**: off, none; with one endpoint, a question
/// to the topology; else what it takes to find the owners. **Place**: directly above the retry, which chooses another endpoint after
/// an error, as the hedge does for its second read; below the salt, which gives rows their stored keys.
#[derive(Debug, Clone)]
pub struct RouteLayer {
    router: Option<Router>,
}

impl RouteLayer {
    /// Routes by this router.
    pub fn new(router: Router) -> Self {
        Self { router: Some(router) }
    }

    /// Requests stay as they are: for a stack whose type is the same with routing and without.
    pub fn off() -> Self {
        Self { router: None }
    }
}

impl<S> Layer<S> for RouteLayer {
    type Service = Route<S>;

    fn layer(&self, inner: S) -> Route<S> {
        Route { inner, router: self.router.clone() }
    }
}

/// The service of [`RouteLayer`].
#[derive(Debug, Clone)]
pub struct Route<S> {
    inner: S,
    router: Option<Router>,
}

impl<S: Service<Request>> Service<Request> for Route<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    #[inline(always)]
    fn call(&mut self, mut request: Request) -> S::Future {
        if let Some(router) = &self.router
            && request.options.endpoint.is_none()
        {
            request.options.endpoint = router.choose(&request, None);
        }
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests;
