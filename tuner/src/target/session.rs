//! A connection to the target with the runtime that carries it.

use std::time::{Duration, Instant};

use peristyle::Client;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use super::TargetUri;
use crate::failure::{Failure, Result};
use crate::load::class_of;
use crate::space::Point;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(20);
/// How long to wait at most for the other connections of a pool.
const FILL: Duration = Duration::from_secs(5);

/// A client, and a runtime with as many worker threads as the point asks for.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) runtime: Runtime,
    pub(crate) client: Client,
    io_threads: u32,
    pool: u32,
}

/// Why there is no session: the class for results, and a sentence.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) class: &'static str,
    pub(crate) message: String,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::input(refusal.message)
    }
}

impl Session {
    /// Connects. An engine in this process is opened once: `open` is the client of an earlier session.
    pub(crate) fn connect(
        uri: &TargetUri,
        point: Point,
        open: Option<&Client>,
        limit: Duration,
    ) -> Result<Self, Refusal> {
        let runtime = runtime(point.io_threads)?;
        let client = match open.filter(|_| uri.is_in_process()) {
            Some(client) => client.clone(),
            None => runtime.block_on(connect_filled(uri, point.pool, limit.min(CONNECT)))?,
        };
        Ok(Self { runtime, client, io_threads: point.io_threads, pool: point.pool })
    }

    /// Whether it serves this point.
    pub(crate) fn serves(&self, point: Point) -> bool {
        self.io_threads == point.io_threads && self.pool == point.pool
    }

    /// Ends the connections; an engine in the process stays open.
    pub(crate) fn end(self, uri: &TargetUri) {
        if !uri.is_in_process() {
            // A server that doesn't answer now is none of the next window's business.
            let _ = self
                .runtime
                .block_on(async { tokio::time::timeout(Duration::from_secs(1), self.client.close()).await });
        }
        self.runtime.shutdown_background();
    }
}

fn runtime(io_threads: u32) -> Result<Runtime, Refusal> {
    let threads = usize::try_from(io_threads).unwrap_or(usize::MAX).max(1);
    let runtime = Builder::new_multi_thread().worker_threads(threads).thread_name("tuner-io").enable_all().build();
    runtime.map_err(|error| Refusal {
        class: "client_threads",
        message: format!("can't start {io_threads} io threads: {error}"),
    })
}

/// Connects, and lets the pool fill. A driver is ready with its first connections and opens the others behind them, unseen: a
/// window that began at once would measure a smaller pool than it was asked for. Connecting took the round trips of a connection
/// several times over (to find the cluster, to learn its layout, to open the first connection), so as long again is enough.
async fn connect_filled(uri: &TargetUri, pool: u32, limit: Duration) -> Result<Client, Refusal> {
    let begun = Instant::now();
    let client = connect(uri, pool, limit).await?;
    if !uri.is_in_process() {
        let took = begun.elapsed();
        sleep(took.min(FILL).min(limit.saturating_sub(took) / 2)).await;
    }
    Ok(client)
}

async fn connect(uri: &TargetUri, pool: u32, limit: Duration) -> Result<Client, Refusal> {
    let text = uri.with_pool(pool);
    match tokio::time::timeout(limit, peristyle::connect(&text)).await {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(error)) => Err(Refusal {
            class: class_of(&error),
            message: format!("can't open {uri}: {}", uri.hide(&error.to_string())),
        }),
        Err(_) => Err(Refusal {
            class: "timeout_connect",
            message: format!(
                "can't open {uri}: no connection within {:.0} s; check hosts and port",
                limit.as_secs_f64()
            ),
        }),
    }
}

/// Runs something of the client's with a limit of its own, on the session's runtime.
pub(crate) fn within<T>(
    session: &Session,
    limit: Duration,
    what: &str,
    work: impl Future<Output = peristyle::Result<T>>,
) -> Result<T, String> {
    session.runtime.block_on(async {
        match tokio::time::timeout(limit, work).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("{what}: no answer within {} s", limit.as_secs())),
        }
    })
}
