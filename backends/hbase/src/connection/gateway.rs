//! One gateway and its connections.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustls::ClientConfig;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;

use super::gauges::{Counted, Gauges};
use super::message::Wire;
use super::{Connection, host_of};
use crate::config::HBaseConfig;
use crate::error;
use peristyle_core::{Endpoint, Error, ErrorKind, Outcome, Result, TimeoutPhase};

/// The longest pause between attempts to reach a gateway that can't be reached.
const MAX_BACKOFF: std::time::Duration = std::time::Duration::from_secs(5);
const MIN_BACKOFF: std::time::Duration = std::time::Duration::from_millis(100);

/// A gateway: at most so many connections at a time, the one used last first.
#[derive(Debug)]
pub(super) struct Gateway {
    /// `host:port`.
    pub(super) address: Arc<str>,
    pub(super) endpoint: Endpoint,
    gauges: Gauges,
    wire: Wire,
    tls: Option<Arc<ClientConfig>>,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
    outage: Mutex<Option<Outage>>,
    connect_timeout: std::time::Duration,
    idle_timeout: std::time::Duration,
}

/// Since when a gateway can't be reached, as far as it matters.
#[derive(Debug, Clone, Copy)]
struct Outage {
    until: Instant,
    pause: std::time::Duration,
}

/// A connection, for one request at a time. When it is dropped it goes back to the gateway, unless a request on it went wrong
/// or was given up half-way: then it is closed.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) gateway: Arc<Gateway>,
    /// Taken when it is dropped, and while a request is under way.
    connection: Option<Connection>,
    _busy: Counted,
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    /// Takes the connection for a request. It must be [given back](Self::give_back) to be of further use.
    pub(super) fn take(&mut self) -> Option<Connection> {
        self.connection.take()
    }

    pub(super) fn give_back(&mut self, connection: Connection) {
        self.connection = Some(connection);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.gateway.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}

impl Gateway {
    pub(super) fn new(address: &str, config: &HBaseConfig, tls: Option<&Arc<ClientConfig>>) -> Self {
        Self {
            address: Arc::from(address),
            endpoint: Endpoint::named(address),
            gauges: Gauges::new(config.pool.get()),
            wire: Wire { transport: config.transport, protocol: config.protocol },
            tls: tls.cloned(),
            permits: Arc::new(Semaphore::new(config.pool.get().min(Semaphore::MAX_PERMITS))),
            idle: Mutex::default(),
            outage: Mutex::default(),
            connect_timeout: config.connect_timeout,
            idle_timeout: config.idle_timeout,
        }
    }

    /// The host, without the port.
    pub(super) fn host(&self) -> &str {
        host_of(&self.address)
    }

    /// Whether it is at this address, or on this host.
    pub(super) fn is_at(&self, place: &str) -> bool {
        place == &*self.address || place == self.host()
    }

    /// How many more requests it takes now.
    pub(super) fn free(&self) -> usize {
        self.permits.available_permits()
    }

    /// Whether it couldn't be reached a moment ago.
    pub(super) fn is_down(&self) -> bool {
        let outage = *self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        outage.is_some_and(|outage| Instant::now() < outage.until)
    }

    /// Waits for a turn, and gives a connection: an idle one or a new one.
    pub(super) async fn lease(self: &Arc<Self>, deadline: Instant) -> Result<Lease> {
        let turn = timeout_at(deadline.into(), Arc::clone(&self.permits).acquire_owned()).await;
        let permit = match turn {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(error::closed()),
            Err(_) => return Err(self.queue_timeout()),
        };
        let connection = match self.take_idle() {
            Some(connection) => connection,
            None => self.connect(deadline).await?,
        };
        let busy = self.gauges.busy(self.endpoint);
        Ok(Lease { gateway: Arc::clone(self), connection: Some(connection), _busy: busy, _permit: permit })
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(connection) = idle.pop() {
            if connection.is_fresh(self.idle_timeout) {
                return Some(connection);
            }
        }
        None
    }

    async fn connect(&self, deadline: Instant) -> Result<Connection> {
        let limit = deadline.min(Instant::now() + self.connect_timeout);
        let opened = timeout_at(limit.into(), Connection::open(&self.address, self.wire, self.tls.as_ref())).await;
        let fault = match opened {
            Ok(Ok(mut connection)) => {
                connection.counted = Some(self.gauges.open(self.endpoint));
                *self.outage.lock().unwrap_or_else(PoisonError::into_inner) = None;
                return Ok(connection);
            }
            Ok(Err(cause)) => {
                let message =
                    format!("gateway {} can't be reached: {cause}; check host, port, process and tls", self.address);
                Error::new(ErrorKind::Unavailable, message).with_source(cause)
            }
            Err(_) => {
                let message = format!("gateway {} took no connection in time; check host and network", self.address);
                Error::new(ErrorKind::Timeout(TimeoutPhase::Connect), message)
            }
        };
        self.note_outage();
        Err(fault.with_outcome(Outcome::NotApplied))
    }

    fn note_outage(&self) {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = outage.map_or(MIN_BACKOFF, |outage| MAX_BACKOFF.min(outage.pause * 2));
        *outage = Some(Outage { until: Instant::now() + pause, pause });
        // What is idle was opened before: it leads nowhere either.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn queue_timeout(&self) -> Error {
        let message = format!(
            "no connection to gateway {} was free in time; use a larger pool, or fewer requests at a time",
            self.address
        );
        Error::new(ErrorKind::Timeout(TimeoutPhase::Queue), message)
    }

    /// Closes what is idle, and gives no further connection.
    pub(super) fn close(&self) {
        self.permits.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
