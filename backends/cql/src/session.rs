//! The driver's session: opened with everything that retries, hedges or stamps switched off, for that is done above.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use peristyle_core::request::{Consistency, SerialConsistency};
use peristyle_core::{Error, Result};
use scylla::client::execution_profile::{ExecutionProfile, ExecutionProfileHandle};
use scylla::client::session::{Session, TlsContext};
use scylla::client::session_builder::SessionBuilder;
use scylla::client::{Compression as DriverCompression, PoolSize};
use scylla::cluster::{ClusterState, NodeRef};
use scylla::errors::RequestAttemptError;
use scylla::policies::load_balancing::{DefaultPolicy, FallbackPlan, LoadBalancingPolicy, RoutingInfo};
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::routing::Shard;
use scylla::statement;

use crate::config::{Compression, CqlConfig, PoolPer};
use crate::{error, tls};

/// Opens the session within the configured limit.
pub(crate) async fn open(config: &CqlConfig) -> Result<Session> {
    config.validate()?;
    let tls = if config.tls { Some(TlsContext::from(tls::client_config(config)?)) } else { None };
    // Several hosts share the limit, so that a silent one leaves time for others.
    let tries = u32::try_from(config.hosts.len().min(3)).unwrap_or(1);
    let mut builder = SessionBuilder::new()
        .known_nodes(&config.hosts)
        .connection_timeout(config.connect_timeout / tries)
        .hostname_resolution_timeout(Some(config.connect_timeout))
        .schema_agreement_timeout(config.schema_timeout)
        .compression(compression(config.compression))
        .pool_size(match config.pool_per {
            PoolPer::Host => PoolSize::PerHost(config.pool),
            PoolPer::Shard => PoolSize::PerShard(config.pool),
        })
        .default_execution_profile_handle(profile(config))
        .tls_context(tls);
    if let (Some(user), Some(password)) = (&config.user, &config.password) {
        builder = builder.user(user, password.expose());
    }
    let session = match tokio::time::timeout(config.connect_timeout, builder.build()).await {
        Ok(built) => built.map_err(|error| error::connect(error, &config.hosts))?,
        Err(_) => {
            let cause = format!("no answer within {:?}", config.connect_timeout);
            return Err(error::unreachable_hosts(&config.hosts.join(", "), &cause));
        }
    };
    check_datacenter(config, &session.get_cluster_state())?;
    Ok(session)
}

fn profile(config: &CqlConfig) -> ExecutionProfileHandle {
    let mut policy = DefaultPolicy::builder().token_aware(true);
    if let Some(datacenter) = &config.datacenter {
        policy = policy.prefer_datacenter(datacenter.clone());
    }
    ExecutionProfile::builder()
        .consistency(consistency(config.consistency))
        .serial_consistency(Some(serial_consistency(config.serial_consistency)))
        .request_timeout(None)
        .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
        .speculative_execution_policy(None)
        .load_balancing_policy(Arc::new(Observed(policy.build())))
        .build()
        .into_handle()
}

/// The driver would refuse every request of a datacenter that isn't there.
fn check_datacenter(config: &CqlConfig, cluster: &ClusterState) -> Result<()> {
    let Some(wanted) = &config.datacenter else {
        return Ok(());
    };
    let mut known: Vec<_> = cluster.get_nodes_info().iter().filter_map(|node| node.datacenter.as_deref()).collect();
    if known.contains(&wanted.as_str()) {
        return Ok(());
    }
    known.sort_unstable();
    known.dedup();
    Err(Error::invalid(format!("no datacenter {wanted:?} in this cluster; it has {}", known.join(", "))))
}

fn compression(compression: Compression) -> Option<DriverCompression> {
    match compression {
        Compression::None => None,
        Compression::Lz4 => Some(DriverCompression::Lz4),
        Compression::Snappy => Some(DriverCompression::Snappy),
    }
}

pub(crate) fn consistency(level: Consistency) -> statement::Consistency {
    match level {
        Consistency::Any => statement::Consistency::Any,
        Consistency::One => statement::Consistency::One,
        Consistency::Two => statement::Consistency::Two,
        Consistency::Three => statement::Consistency::Three,
        Consistency::Quorum => statement::Consistency::Quorum,
        Consistency::All => statement::Consistency::All,
        Consistency::LocalQuorum => statement::Consistency::LocalQuorum,
        Consistency::EachQuorum => statement::Consistency::EachQuorum,
        Consistency::LocalOne => statement::Consistency::LocalOne,
    }
}

pub(crate) fn serial_consistency(level: SerialConsistency) -> statement::SerialConsistency {
    match level {
        SerialConsistency::Serial => statement::SerialConsistency::Serial,
        SerialConsistency::LocalSerial => statement::SerialConsistency::LocalSerial,
    }
}

tokio::task_local! {
    /// The node that the request of this task was last sent to.
    static TARGET: Cell<Option<SocketAddr>>;
}

/// Runs a request, and tells with its outcome which node it was sent to: the driver's errors don't.
pub(crate) async fn observed<T>(request: impl Future<Output = T>) -> (T, Option<SocketAddr>) {
    TARGET
        .scope(Cell::new(None), async {
            let outcome = request.await;
            (outcome, TARGET.with(Cell::get))
        })
        .await
}

fn note(node: NodeRef<'_>) {
    let address = SocketAddr::new(node.address.ip(), node.address.port());
    // Requests of the native session are not observed.
    let _ = TARGET.try_with(|target| target.set(Some(address)));
}

/// A policy that notes the nodes it gives.
#[derive(Debug)]
struct Observed(Arc<dyn LoadBalancingPolicy>);

impl LoadBalancingPolicy for Observed {
    fn pick<'a>(&'a self, request: &'a RoutingInfo, cluster: &'a ClusterState) -> Option<(NodeRef<'a>, Option<Shard>)> {
        self.0.pick(request, cluster).inspect(|(node, _)| note(node))
    }

    fn fallback<'a>(&'a self, request: &'a RoutingInfo, cluster: &'a ClusterState) -> FallbackPlan<'a> {
        Box::new(self.0.fallback(request, cluster).inspect(|(node, _)| note(node)))
    }

    fn on_request_success(&self, request: &RoutingInfo, latency: Duration, node: NodeRef<'_>) {
        self.0.on_request_success(request, latency, node);
    }

    fn on_request_failure(
        &self,
        request: &RoutingInfo,
        latency: Duration,
        node: NodeRef<'_>,
        error: &RequestAttemptError,
    ) {
        self.0.on_request_failure(request, latency, node, error);
    }

    fn name(&self) -> String {
        self.0.name()
    }
}
