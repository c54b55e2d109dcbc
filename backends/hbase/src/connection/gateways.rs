//! All gateways: which one gets a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use peristyle_core::request::RequestOptions;
use peristyle_core::{Attempt, Endpoint, Endpoints, Error, ErrorKind, Outcome, Result, TimeoutPhase};
use tokio::time::timeout_at;

use super::gateway::{Gateway, Lease};
use super::{Arguments, Fault, Garbled, Reader, tls};
use crate::config::{Api, HBaseConfig};
use crate::error;
use crate::wire::Server;

/// How one call is made.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The table, for errors; may be empty.
    pub(crate) table: Arc<str>,
    /// Whether anything changes by it, so that a lost answer leaves doubt.
    pub(crate) writes: bool,
    /// The gateway that is preferred: its address, or the host of several.
    pub(crate) place: Option<Arc<str>>,
    /// The gateway that the layers chose, which goes before the place.
    endpoint: Option<Endpoint>,
    /// The limit for one attempt, from when it is sent.
    pub(crate) timeout: Duration,
    /// When all must be over.
    pub(crate) deadline: Option<Instant>,
    /// Whether it goes to the gateways for changes of the schema.
    pub(crate) schema: bool,
}

impl Call {
    /// A call as the options of its request say.
    pub(crate) fn new(table: &Arc<str>, writes: bool, options: &RequestOptions, config: &HBaseConfig) -> Self {
        let timeout = options.attempt_timeout.unwrap_or(config.request_timeout);
        let (endpoint, deadline) = (options.endpoint, options.deadline);
        Self { table: Arc::clone(table), writes, place: None, endpoint, timeout, deadline, schema: false }
    }

    /// The same call, preferably through the gateway in this place.
    pub(crate) fn at(&self, place: Option<Arc<str>>) -> Self {
        Self { place, ..self.clone() }
    }

    /// The same call, for a read.
    pub(crate) fn reading(&self) -> Self {
        Self { writes: false, ..self.clone() }
    }

    fn limit(&self) -> Instant {
        let limit = Instant::now() + self.timeout;
        self.deadline.map_or(limit, |deadline| deadline.min(limit))
    }
}

/// The gateways.
#[derive(Debug)]
pub(crate) struct Gateways {
    data: Vec<Arc<Gateway>>,
    schema: Vec<Arc<Gateway>>,
    /// Gateways by the region servers that they sit with.
    colocated: Vec<(String, Arc<str>)>,
    turn: AtomicUsize,
    api: Api,
    max_request_bytes: usize,
}

impl Gateways {
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for certificate authorities that can't be read.
    pub(crate) fn new(config: &HBaseConfig) -> Result<Self> {
        let tls = tls::client_config(config)?;
        let gateways = |addresses: &[String], config: &HBaseConfig| -> Vec<Arc<Gateway>> {
            addresses.iter().map(|address| Arc::new(Gateway::new(address, config, tls.as_ref()))).collect()
        };
        let data = gateways(&config.gateways, config);
        let schema = if config.schema_gateways.is_empty() {
            data.clone()
        } else {
            gateways(&config.schema_gateways, &config.clone().transport(crate::Transport::Buffered))
        };
        let (turn, max_request_bytes) = (AtomicUsize::new(0), config.max_request_bytes);
        let colocated = config.colocated.iter().map(|(server, gateway)| (server.clone(), Arc::from(gateway.as_str())));
        Ok(Self { data, schema, colocated: colocated.collect(), turn, api: config.api, max_request_bytes })
    }

    /// Whether there is more than one gateway for rows.
    pub(crate) fn have_choice(&self) -> bool {
        self.data.len() > 1
    }

    /// The place of the gateway that sits with a region server: as the configuration says, or on the same host.
    pub(crate) fn place_of(&self, server: &Server) -> Option<Arc<str>> {
        let address = format!("{}:{}", server.host, server.port);
        let named = |name: &&(String, Arc<str>)| name.0 == address || name.0 == server.host;
        let host = || self.data.iter().find(|gateway| gateway.host() == server.host).map(|gateway| gateway.host());
        self.colocated.iter().find(named).map(|(_, gateway)| Arc::clone(gateway)).or_else(|| host().map(Arc::from))
    }

    /// Which interface the gateways speak.
    pub(crate) fn api(&self) -> Api {
        self.api
    }

    /// Makes a call at one gateway.
    pub(crate) async fn call<A: Arguments, T>(
        &self,
        call: &Call,
        method: &'static str,
        arguments: &A,
        read: Reader<T>,
    ) -> Result<T> {
        let mut session = self.session(call).await?;
        match session.call(call, method, arguments, read).await {
            // The gateway closed it while it was idle, and was told nothing: another one does.
            Err(_) if session.is_unused => self.session(call).await?.call(call, method, arguments, read).await,
            outcome => outcome,
        }
    }

    /// Gives a connection to one gateway, after others if those can't be reached.
    pub(crate) async fn session(&self, call: &Call) -> Result<Session> {
        let mut failed: Vec<Attempt> = Vec::new();
        let mut tried: Vec<Arc<Gateway>> = Vec::new();
        loop {
            let Some(gateway) = self.choose(call, &tried) else { return Err(unreachable(failed)) };
            let start = Instant::now();
            match gateway.lease(call.limit()).await {
                Ok(lease) => return Ok(Session { lease, max_request_bytes: self.max_request_bytes, is_unused: false }),
                Err(error) if leads_on(&error) => {
                    let cause = error.message().to_owned();
                    failed.push(Attempt { endpoint: gateway.address.to_string(), elapsed: start.elapsed(), cause });
                    tried.push(gateway);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The preferred gateway; else the one with most room, in turn; those that are down last.
    fn choose(&self, call: &Call, tried: &[Arc<Gateway>]) -> Option<Arc<Gateway>> {
        let gateways = if call.schema { &self.schema } else { &self.data };
        let open = self.in_turn(gateways).filter(|gateway| !tried.iter().any(|tried| Arc::ptr_eq(tried, gateway)));
        let preferred = |gateway: &Gateway| match call.endpoint {
            Some(endpoint) => endpoint == gateway.endpoint,
            None => call.place.as_deref().is_some_and(|place| gateway.is_at(place)),
        };
        // The first of several equals, so that they take turns.
        open.min_by_key(|gateway| rank(gateway, preferred(gateway))).cloned()
    }

    /// All of them, another one first each time.
    fn in_turn<'a>(&self, gateways: &'a [Arc<Gateway>]) -> impl Iterator<Item = &'a Arc<Gateway>> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % gateways.len().max(1);
        gateways.iter().cycle().skip(turn).take(gateways.len())
    }

    /// The gateways for rows, in the order in which requests on a region with a gateway in this place prefer them; without those
    /// that are down, if others aren't.
    pub(crate) fn endpoints(&self, place: Option<&str>) -> Endpoints {
        let ranked =
            |gateway: &Arc<Gateway>| (rank(gateway, place.is_some_and(|place| gateway.is_at(place))), gateway.endpoint);
        let mut ranked: Vec<_> = self.in_turn(&self.data).map(ranked).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        let is_any_up = ranked.first().is_some_and(|((is_down, ..), _)| !is_down);
        ranked.retain(|((is_down, ..), _)| !(is_any_up && *is_down));
        Endpoints::new(ranked.into_iter().map(|(_, endpoint)| endpoint), 1)
    }

    /// How many gateways there are for rows.
    pub(crate) fn count(&self) -> usize {
        self.data.len()
    }

    /// The only gateway for rows, if there is only one.
    pub(crate) fn only(&self) -> Option<Endpoint> {
        match self.data.as_slice() {
            [only] => Some(only.endpoint),
            _ => None,
        }
    }

    pub(crate) fn close(&self) {
        self.data.iter().chain(&self.schema).for_each(|gateway| gateway.close());
    }
}

/// A connection to one gateway, for calls one after the other.
#[derive(Debug)]
pub(crate) struct Session {
    lease: Lease,
    max_request_bytes: usize,
    /// Whether its connection broke before a whole request was sent.
    is_unused: bool,
}

impl Session {
    /// Makes a call. After a timeout or a fault of the connection no other is possible.
    pub(crate) async fn call<A: Arguments, T>(
        &mut self,
        call: &Call,
        method: &'static str,
        arguments: &A,
        read: Reader<T>,
    ) -> Result<T> {
        let start = Instant::now();
        let outcome = self.attempt(call, method, arguments, read).await;
        outcome.map_err(|error| {
            let (endpoint, cause) = (self.lease.gateway.address.to_string(), error.message().to_owned());
            error.with_attempt(Attempt { endpoint, elapsed: start.elapsed(), cause })
        })
    }

    async fn attempt<A: Arguments, T>(
        &mut self,
        call: &Call,
        method: &'static str,
        arguments: &A,
        read: Reader<T>,
    ) -> Result<T> {
        let Some(mut connection) = self.lease.take() else { return Err(broken(Fault::Closed, call)) };
        let request = match connection.encode(method, arguments) {
            Ok(request) if request.len() <= self.max_request_bytes => request,
            Ok(request) => {
                self.lease.give_back(connection);
                return Err(too_large(request.len(), self.max_request_bytes));
            }
            Err(fault) => return Err(broken(fault, call)),
        };
        let answer = timeout_at(call.limit().into(), connection.exchange(request, method, read)).await;
        match answer {
            Ok(Ok(reply)) => {
                self.lease.give_back(connection);
                reply.map_err(|exception| error::from_exception(&exception, method, &call.table, call.writes))
            }
            Ok(Err(fault)) => {
                self.is_unused = matches!(fault, Fault::Unfinished(_));
                Err(broken(fault, call))
            }
            Err(_) => Err(timed_out(call)),
        }
    }
}

/// The order of gateways: those that are down last, those that sit right first, then those with most room.
fn rank(gateway: &Gateway, is_preferred: bool) -> (bool, bool, usize) {
    (gateway.is_down(), !is_preferred, usize::MAX - gateway.free())
}

/// Whether another gateway may do what this one didn't start.
fn leads_on(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Timeout(TimeoutPhase::Connect))
}

fn unreachable(failed: Vec<Attempt>) -> Error {
    let error = Error::new(ErrorKind::Unavailable, "no gateway can be reached; check hosts, ports and processes");
    failed.into_iter().fold(error, Error::with_attempt)
}

fn too_large(bytes: usize, limit: usize) -> Error {
    let message =
        format!("a request of {bytes} bytes; the gateway takes {limit} (max_request_bytes): write less at a time");
    Error::new(ErrorKind::TooLarge, message)
}

fn broken(fault: Fault, call: &Call) -> Error {
    let doubt = if call.writes { "; whether it was applied is unknown" } else { "" };
    match fault {
        Fault::Io(cause) => {
            let message = format!("the connection broke: {cause}{doubt}");
            Error::new(ErrorKind::ConnectionLost, message).with_source(cause)
        }
        Fault::Unfinished(cause) => {
            let message = format!("the connection broke before the request was sent: {cause}");
            Error::new(ErrorKind::ConnectionLost, message).with_source(cause).with_outcome(Outcome::NotApplied)
        }
        Fault::Closed => {
            let message = format!("the gateway closed the connection{doubt}; is the message over its frame limit?");
            Error::new(ErrorKind::ConnectionLost, message)
        }
        Fault::Garbled(Garbled::Sequence { expected, found }) => {
            let message = format!("the reply to request {found} came where {expected} was asked{doubt}");
            Error::new(ErrorKind::Corrupt, message)
        }
        Fault::Garbled(Garbled::TooLong) => {
            let message =
                format!("a reply over 256 MiB{doubt}; read fewer rows at a time, and check transport and protocol");
            Error::new(ErrorKind::Corrupt, message)
        }
        Fault::Garbled(Garbled::Malformed(what)) => {
            let message = format!("the reply can't be read ({what}){doubt}; check api, transport and protocol");
            Error::new(ErrorKind::Corrupt, message)
        }
        Fault::Refused(status @ (hyper::StatusCode::UNAUTHORIZED | hyper::StatusCode::FORBIDDEN)) => {
            let message =
                format!("the gateway's HTTP server answered {status}; it wants a login that this client has not");
            Error::new(ErrorKind::PermissionDenied, message).with_outcome(Outcome::NotApplied)
        }
        Fault::Refused(status) => {
            let message =
                format!("the gateway's HTTP server answered {status}{doubt}; check that it is one, and its log");
            Error::new(ErrorKind::Unavailable, message)
        }
        Fault::Unsent(cause) => {
            let message = format!("the request can't be encoded: {cause}");
            Error::new(ErrorKind::Internal, message).with_outcome(Outcome::NotApplied)
        }
    }
}

fn timed_out(call: &Call) -> Error {
    let doubt = if call.writes { "; whether it was applied is unknown" } else { "" };
    let message =
        format!("no answer within {:?}{doubt}; check the region servers, and that the table is enabled", call.timeout);
    let late = call.deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let phase = if late { TimeoutPhase::Deadline } else { TimeoutPhase::Attempt };
    Error::new(ErrorKind::Timeout(phase), message)
}
