//! The driver's session: opened with everything that retries, hedges or stamps switched off, for that is done above.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use peristyle_core::request::{Consistency, SerialConsistency};
use peristyle_core::{Error, ErrorKind, Result};
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
use crate::fleet::Fleet;
use crate::pin::wanted;
use crate::{error, tls};

/// Opens the session within the configured limit.
pub(crate) async fn open(config: &CqlConfig, fleet: &Arc<Fleet>) -> Result<Session> {
    config.validate()?;
    let tls = if config.tls { Some(TlsContext::from(tls::client_config(config)?)) } else { None };
    let tries = tries(&config.hosts);
    let limit = config.connect_timeout / u32::try_from(tries.len()).unwrap_or(1);
    let mut outcome = Err(error::unreachable_hosts("no hosts", "none was given"));
    for hosts in tries {
        let profile = profile(config, fleet);
        outcome = match tokio::time::timeout(limit, builder(config, hosts, limit, tls.clone(), profile).build()).await {
            Ok(built) => built.map_err(|error| error::connect(error, &config.hosts)),
            Err(_) => Err(error::unreachable_hosts(&config.hosts.join(", "), &format!("no answer within {limit:?}"))),
        };
        // Anything else than absence would be the same at the next host.
        if !matches!(&outcome, Err(error) if error.kind() == ErrorKind::Unavailable) {
            break;
        }
    }
    let session = outcome?;
    check_datacenter(config, &session.get_cluster_state())?;
    Ok(session)
}

/// The contact points to try at once, one set after the other: all, and then the first few alone, because the driver waits
/// without limit for one that accepts a connection and never answers.
fn tries(hosts: &[String]) -> Vec<&[String]> {
    let alone = if hosts.len() > 1 { hosts.chunks(1).take(3).collect() } else { Vec::new() };
    std::iter::once(hosts).chain(alone).collect()
}

fn builder(
    config: &CqlConfig,
    hosts: &[String],
    limit: Duration,
    tls: Option<TlsContext>,
    profile: ExecutionProfileHandle,
) -> SessionBuilder {
    let builder = SessionBuilder::new()
        .known_nodes(hosts)
        .connection_timeout(limit)
        .hostname_resolution_timeout(Some(limit))
        .schema_agreement_timeout(config.schema_timeout)
        .compression(compression(config.compression))
        .pool_size(match config.pool_per {
            PoolPer::Host => PoolSize::PerHost(config.pool),
            PoolPer::Shard => PoolSize::PerShard(config.pool),
        })
        .default_execution_profile_handle(profile)
        .tls_context(tls);
    match (&config.user, &config.password) {
        (Some(user), Some(password)) => builder.user(user, password.expose()),
        _ => builder,
    }
}

fn profile(config: &CqlConfig, fleet: &Arc<Fleet>) -> ExecutionProfileHandle {
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
        .load_balancing_policy(Arc::new(Pinning { policy: policy.build(), fleet: Arc::clone(fleet) }))
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

thread_local! {
    /// The node whose answer was a failure, last on this thread.
    static FAILED: Cell<Option<SocketAddr>> = const { Cell::new(None) };
}

/// The node that the failed request was sent to: the driver's errors don't tell. To be called in the poll in which the
/// request failed; a request that failed before it was sent has none.
pub(crate) fn failed_node() -> Option<SocketAddr> {
    FAILED.take()
}

/// A policy that sends requests where they are [wanted](crate::pin), looks for replicas only where there is a choice, and notes the
/// nodes of requests that failed.
#[derive(Debug)]
struct Pinning {
    policy: Arc<dyn LoadBalancingPolicy>,
    fleet: Arc<Fleet>,
}

impl LoadBalancingPolicy for Pinning {
    fn pick<'a>(&'a self, request: &'a RoutingInfo, cluster: &'a ClusterState) -> Option<(NodeRef<'a>, Option<Shard>)> {
        match cluster.get_nodes_info() {
            [only] if only.is_enabled() && only.sharder().is_none() => Some((only, Some(0))),
            _ => wanted(&self.fleet, request, cluster).or_else(|| self.policy.pick(request, cluster)),
        }
    }

    fn fallback<'a>(&'a self, request: &'a RoutingInfo, cluster: &'a ClusterState) -> FallbackPlan<'a> {
        self.policy.fallback(request, cluster)
    }

    fn on_request_success(&self, request: &RoutingInfo, latency: Duration, node: NodeRef<'_>) {
        self.policy.on_request_success(request, latency, node);
    }

    fn on_request_failure(
        &self,
        request: &RoutingInfo,
        latency: Duration,
        node: NodeRef<'_>,
        error: &RequestAttemptError,
    ) {
        FAILED.set(Some(SocketAddr::new(node.address.ip(), node.address.port())));
        self.policy.on_request_failure(request, latency, node, error);
    }

    fn name(&self) -> String {
        self.policy.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_tried_together_and_then_alone() {
        let hosts = ["a", "b", "c", "d"].map(str::to_owned);
        assert_eq!(tries(&hosts[..1]), [&hosts[..1]]);
        assert_eq!(tries(&hosts[..2]), [&hosts[..2], &hosts[..1], &hosts[1..2]]);
        assert_eq!(tries(&hosts), [&hosts[..], &hosts[..1], &hosts[1..2], &hosts[2..3]]);
    }
}
