//! Puts a client together: the one place that knows the order of the layers.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use tower::{Layer, Service, ServiceBuilder};

use super::layered::Layered;
use super::stack::{PerThread, Stack};
use super::{Client, Shared};
use crate::backend::{Backend, BackendService};
use crate::capability::Capability;
use crate::clock::{Clock, WriteClock};
use crate::endpoint::Router;
use crate::error::Error;
use crate::grouping::Grouping;
use crate::layers::{
    AttemptTimeoutLayer, Autopilot, BatchLayer, CheckLayer, CircuitLayer, CircuitPolicy, ConcurrencyLayer,
    DeadlineLayer, HedgeLayer, ObserveLayer, RateLimitLayer, RetryLayer, RetryPolicy, RouteLayer, SaltLayer,
};
use crate::request::Request;
use crate::response::Response;

/// Settings of a [`Client`].
#[derive(Debug)]
pub struct ClientBuilder {
    backend: Arc<dyn Backend>,
    deadline: Duration,
    clock: Clock,
    batch_rows: NonZeroUsize,
    batch_concurrency: NonZeroUsize,
    grouping: Grouping,
    observe: bool,
    route: bool,
    retry: RetryLayer,
    attempt_timeout: AttemptTimeoutLayer,
    concurrency: ConcurrencyLayer,
    extras: Option<Extras>,
}

/// Layers that are off unless they are asked for.
#[derive(Debug)]
struct Extras {
    rate_limit: RateLimitLayer,
    hedge: HedgeLayer,
    batch: bool,
    circuit: Option<CircuitPolicy>,
}

impl Default for Extras {
    fn default() -> Self {
        Self { rate_limit: RateLimitLayer::off(), hedge: HedgeLayer::off(), batch: false, circuit: None }
    }
}

const fn non_zero(number: usize) -> NonZeroUsize {
    match NonZeroUsize::new(number) {
        Some(number) => number,
        None => NonZeroUsize::MIN,
    }
}

impl ClientBuilder {
    /// The default settings over this backend.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            deadline: Duration::from_secs(30),
            clock: Clock::system(),
            batch_rows: non_zero(64),
            batch_concurrency: non_zero(16),
            grouping: Grouping::default(),
            observe: true,
            route: true,
            retry: RetryLayer::new(RetryPolicy::default()),
            attempt_timeout: AttemptTimeoutLayer::off(),
            concurrency: ConcurrencyLayer::new(non_zero(1_024)),
            extras: None,
        }
    }

    fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }

    /// How long any data request may take, queues included, unless it has a deadline of its own; default 30 s. Schema
    /// requests get at least 120 s.
    #[must_use]
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = limit;
        self
    }

    /// The clock of write times; default: the system's.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// How many rows `put_all` and `get_all` put into one request; default 64.
    #[must_use]
    pub fn batch_rows(mut self, rows: NonZeroUsize) -> Self {
        self.batch_rows = rows;
        self
    }

    /// How many requests of one `put_all` or `get_all` run at a time; default 16.
    #[must_use]
    pub fn batch_concurrency(mut self, requests: NonZeroUsize) -> Self {
        self.batch_concurrency = requests;
        self
    }

    /// Joins puts, deletes and gets of single rows that are made at the same time into requests of many rows, by this grouping;
    /// default: nothing is joined. `put_all` and streamers put rows together by the same grouping; default: by owner.
    #[must_use]
    pub fn batch(mut self, grouping: Grouping) -> Self {
        self.grouping = grouping;
        self.extras().batch = grouping != Grouping::Off;
        self
    }

    /// Makes no spans and no metrics. By default the client makes both, of operations and of attempts, for whatever `tracing`
    /// subscriber and `metrics` recorder the application has.
    #[must_use]
    pub fn without_observe(mut self) -> Self {
        self.observe = false;
        self
    }

    /// Leaves the choice of nodes and gateways to the backend: budget, circuit and limit are then those of the whole database. By
    /// default the client chooses an owner of the partition for each request, and holds them for each.
    #[must_use]
    pub fn without_route(mut self) -> Self {
        self.route = false;
        self
    }

    /// How many rows a second may be read and written, over all clones of the client; default: no limit.
    #[must_use]
    pub fn rate_limit(mut self, rows_per_second: NonZeroU32) -> Self {
        self.extras().rate_limit = RateLimitLayer::new(rows_per_second);
        self
    }

    /// When what failed is sent again; default: [`RetryPolicy::default`].
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = RetryLayer::new(policy);
        self
    }

    /// Sends everything once.
    #[must_use]
    pub fn without_retry(mut self) -> Self {
        self.retry = RetryLayer::off();
        self
    }

    /// How long one attempt of a data request may take, unless the request says; default: the backend's own limit.
    #[must_use]
    pub fn attempt_timeout(mut self, limit: Duration) -> Self {
        self.attempt_timeout = AttemptTimeoutLayer::new(limit);
        self
    }

    /// Sends reads a second time when the first answer takes longer than this; default: never.
    #[must_use]
    pub fn hedge(mut self, delay: Duration) -> Self {
        self.extras().hedge = HedgeLayer::new(delay);
        self
    }

    /// How many requests are under way at a time; default 1024. The others queue, up to 65 536 of them. Of several endpoints one
    /// gets no more than almost twice its even share.
    #[must_use]
    pub fn concurrency(mut self, requests: NonZeroUsize) -> Self {
        self.concurrency = ConcurrencyLayer::new(requests);
        self
    }

    /// Lets as many requests be under way as are worth it, as the [autopilot](Autopilot) finds and follows. The others queue,
    /// up to 65 536 of them. Each endpoint has a limit of its own, which starts from its even share.
    #[must_use]
    pub fn autopilot(mut self, autopilot: Autopilot) -> Self {
        self.concurrency = ConcurrencyLayer::autopilot(autopilot);
        self
    }

    /// Lets as many requests be under way as there are.
    #[must_use]
    pub fn without_concurrency(mut self) -> Self {
        self.concurrency = ConcurrencyLayer::off();
        self
    }

    /// Leaves an endpoint alone for a while when most requests to it fail; default: never. Meanwhile requests go to other
    /// endpoints that may take them, and fail where there is none.
    #[must_use]
    pub fn circuit(mut self, policy: CircuitPolicy) -> Self {
        self.extras().circuit = Some(policy);
        self
    }

    /// Puts a layer directly above the backend, below all others: a [fault](crate::layers::FaultLayer), or one of the
    /// application's own. It costs one allocation for each request. Of several the last one is the outermost.
    #[must_use]
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<BackendService<dyn Backend>>,
        L::Service: Service<Request, Response = Response, Error = Error> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Future: Send,
    {
        self.backend = Arc::new(Layered::new(self.backend, &layer));
        self
    }

    /// The client.
    pub fn build(self) -> Client {
        let system = self.backend.name();
        let salt = SaltLayer::new(self.backend.capabilities());
        let capabilities = self.backend.capabilities().clone().with(Capability::Salt);
        let topology = salt.topology(Arc::clone(&self.backend));
        let observe = |layer: ObserveLayer| if self.observe { layer } else { ObserveLayer::off() };
        let outer = ServiceBuilder::new()
            .layer(observe(ObserveLayer::calls(system)))
            .layer(DeadlineLayer::new(self.deadline))
            .layer(CheckLayer::new(system, capabilities.clone(), self.clock.clone()))
            .layer(salt);
        let inner = ServiceBuilder::new()
            .layer(observe(ObserveLayer::attempts_at(Arc::clone(&self.backend))))
            .service(BackendService::new(Arc::clone(&self.backend)));
        let router = Router::new(Arc::clone(&self.backend));
        let route = |router: &Router| if self.route { RouteLayer::new(router.clone()) } else { RouteLayer::off() };
        // Layers that are off cost little, but those that few use cost nothing: there are two shapes of the stack.
        let stack: Box<dyn Stack> = match self.extras {
            None => Box::new(PerThread::new(
                outer
                    .layer(route(&router))
                    .layer(self.retry.routed(&router))
                    .layer(self.attempt_timeout)
                    .layer(self.concurrency.routed(&router))
                    .service(inner),
            )),
            Some(extras) => {
                let circuit = extras.circuit.map_or_else(CircuitLayer::off, |policy| CircuitLayer::new(system, policy));
                let router = circuit.health().into_iter().fold(router, Router::health);
                let (router, batch) = if extras.batch {
                    let batch = BatchLayer::new(self.grouping, Arc::clone(&self.backend));
                    (router.first_owner(), batch.rows(self.batch_rows))
                } else {
                    (router, BatchLayer::off())
                };
                Box::new(PerThread::new(
                    outer
                        .layer(extras.rate_limit)
                        .layer(route(&router))
                        .layer(self.retry.routed(&router))
                        .layer(self.attempt_timeout)
                        .layer(extras.hedge.routed(&router))
                        .layer(batch)
                        .layer(self.concurrency.routed(&router))
                        .layer(circuit)
                        .service(inner),
                ))
            }
        };
        let shared = Shared {
            backend: self.backend,
            capabilities,
            topology,
            stack,
            writes: WriteClock::new(self.clock),
            batch_rows: self.batch_rows.get(),
            batch_concurrency: self.batch_concurrency.get(),
            grouping: self.grouping,
        };
        Client { shared: Arc::new(shared) }
    }
}
