//! Where requests go in a ring of three.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::stream::{self, StreamExt};
use peristyle_core::client::{Client, ClientBuilder};
use peristyle_core::layers::CircuitPolicy;
use peristyle_core::model::{Row, TableSpec, Type};
use peristyle_core::request::{Replication, Request};
use peristyle_core::{Endpoint, Table};
use peristyle_cql::{CqlBackend, CqlConfig};
use peristyle_servers::{Cassandra, Ring};
use scylla::client::session::Session;
use scylla::cluster::Node;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::statement::Statement;
use tower::{Layer, Service};

const ROWS: i64 = 1_500;

fn pinned(text: &str, node: &Arc<Node>) -> Statement {
    let mut statement = Statement::new(text);
    let policy = SingleTargetLoadBalancingPolicy::new(NodeIdentifier::Node(Arc::clone(node)), None);
    statement.set_load_balancing_policy(Some(policy));
    statement
}

/// How many requests of clients a node has seen.
async fn requests(session: &Session, node: &Arc<Node>) -> i64 {
    let statement = pinned("SELECT request_count FROM system_views.clients", node);
    let answer = session.query_unpaged(statement, ()).await.unwrap().into_rows_result().unwrap();
    answer.rows::<(i64,)>().unwrap().map(|row| row.unwrap().0).sum()
}

/// The node of each key by the server's own words: the tokens that nodes have, and the tokens of keys.
async fn owners(session: &Session, nodes: &[Arc<Node>]) -> HashMap<i64, IpAddr> {
    let mut ring = BTreeMap::new();
    for node in nodes {
        let local = session.query_unpaged(pinned("SELECT tokens FROM system.local", node), ()).await.unwrap();
        let (tokens,) = local.into_rows_result().unwrap().single_row::<(Vec<String>,)>().unwrap();
        ring.extend(tokens.iter().map(|token| (token.parse::<i64>().unwrap(), node.address.ip())));
    }
    let answer = session.query_unpaged("SELECT id, token(id) FROM routed.t", ()).await.unwrap();
    let answer = answer.into_rows_result().unwrap();
    let first = *ring.values().next().unwrap();
    let owner = |token: i64| ring.range(token..).next().map_or(first, |(_, node)| *node);
    answer.rows::<(i64, i64)>().unwrap().map(|row| row.unwrap()).map(|(id, token)| (id, owner(token))).collect()
}

fn row(id: i64) -> Row {
    Row::new().with("id", id).with("v", "x")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_ring_of_three() {
    let ring = Ring::start(&Cassandra::builder(), &[("dc1", "r1"), ("dc1", "r2"), ("dc1", "r3")]).unwrap();
    requests_and_batches_go_to_the_node_that_has_the_partition(&ring).await;
    a_node_that_hangs_takes_nothing_from_the_others(&ring).await;
}

async fn open(
    ring: &Ring,
    keyspace: &str,
    replicas: u32,
    setting: fn(ClientBuilder) -> ClientBuilder,
) -> (Client, Table) {
    let hosts: Vec<String> = ring.nodes().iter().map(|node| node.cql_address().to_string()).collect();
    let backend = CqlBackend::connect(CqlConfig::new(hosts).keyspace(keyspace)).await.unwrap();
    let client = setting(Client::builder(backend)).build();
    client.create_namespace(Replication::Simple(replicas)).await.unwrap();
    let spec = TableSpec::builder("t").partition("id", Type::I64).column("v", Type::Text).build().unwrap();
    client.create_table_if_absent(&spec).await.unwrap();
    ring.wait_until_whole().unwrap();
    client.native::<CqlBackend>().unwrap().session().unwrap().refresh_metadata().await.unwrap();
    let table = client.table(spec).await.unwrap();
    (client, table)
}

/// With one replica every other coordinator would have to forward.
async fn requests_and_batches_go_to_the_node_that_has_the_partition(ring: &Ring) {
    let (client, table) = open(ring, "routed", 1, |builder| builder).await;
    table.put_all((0..ROWS).map(row)).await.unwrap().into_result().unwrap();

    let session = client.native::<CqlBackend>().unwrap().session().unwrap();
    let nodes: Vec<Arc<Node>> = session.get_cluster_state().get_nodes_info().to_vec();
    let owners = owners(&session, &nodes).await;
    assert_eq!(owners.len(), usize::try_from(ROWS).unwrap());
    for node in &nodes {
        let keys: Vec<i64> =
            owners.iter().filter(|(_, owner)| **owner == node.address.ip()).map(|(id, _)| *id).collect();
        assert!(keys.len() > 50, "{} of {ROWS} keys are on {}", keys.len(), node.address);
        let before = requests(&session, node).await;
        for id in &keys {
            table.put(&row(*id)).await.unwrap();
            assert_eq!(table.get(*id).await.unwrap(), Some(row(*id)));
        }
        let singles = requests(&session, node).await - before;
        let sent = i64::try_from(2 * keys.len()).unwrap();
        assert!(singles * 100 >= sent * 99, "{singles} of {sent} requests went to {}", node.address);
        table.put_all(keys.iter().map(|id| row(*id))).await.unwrap().into_result().unwrap();
        let batches = requests(&session, node).await - before - singles;
        let sent = i64::try_from(keys.len().div_ceil(64)).unwrap();
        assert!(batches >= sent, "{batches} of {sent} batches went to {}", node.address);
    }
}

/// Counts attempts by the endpoint that they are for.
#[derive(Clone, Default)]
struct Counts(Arc<Mutex<HashMap<Option<Endpoint>, usize>>>);

impl Counts {
    fn of(&self, node: &str) -> usize {
        self.0.lock().unwrap().get(&Some(Endpoint::named(node))).copied().unwrap_or_default()
    }

    fn clear(&self) {
        self.0.lock().unwrap().clear();
    }
}

impl<S> Layer<S> for Counts {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, counts: self.clone() }
    }
}

#[derive(Clone)]
struct Counted<S> {
    inner: S,
    counts: Counts,
}

impl<S: Service<Request>> Service<Request> for Counted<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> S::Future {
        *self.counts.0.lock().unwrap().entry(request.options.endpoint).or_default() += 1;
        self.inner.call(request)
    }
}

/// Stops a process, or lets it go on.
fn signal(node: &Cassandra, signal: &str) {
    let process = node.process_id().unwrap().to_string();
    assert!(Command::new("kill").args([signal, &process]).status().unwrap().success());
}

/// Every node has every row, and one stands still with its connections open.
async fn a_node_that_hangs_takes_nothing_from_the_others(ring: &Ring) {
    static COUNTS: LazyLock<Counts> = LazyLock::new(Counts::default);
    let (client, table) = open(ring, "replicated", 3, |builder| {
        let circuit = CircuitPolicy::default().opens_at(0.5, 5, Duration::from_secs(10));
        builder.circuit(circuit).attempt_timeout(Duration::from_secs(2)).layer(COUNTS.clone())
    })
    .await;
    assert_eq!(client.topology().endpoint_count(), 3);
    table.put_all((0..ROWS).map(row)).await.unwrap().into_result().unwrap();
    let addresses: Vec<String> = ring.nodes().iter().map(|node| node.cql_address().to_string()).collect();
    COUNTS.clear();
    read_all(&table).await;
    let shares: Vec<usize> = addresses.iter().map(|node| COUNTS.of(node)).collect();
    assert!(shares.iter().all(|share| *share > 300) && shares.iter().sum::<usize>() == 1_500, "{shares:?}");

    signal(&ring.nodes()[2], "-STOP");
    // Until it is noticed, reads run into the limit of an attempt, and go elsewhere then.
    read_all(&table).await;
    COUNTS.clear();
    read_all(&table).await;
    let (probes, rest) = (COUNTS.of(&addresses[2]), COUNTS.of(&addresses[0]) + COUNTS.of(&addresses[1]));
    assert!(probes < 20 && rest >= 1_500, "{probes} at the node that hangs, {rest} at the others");
    signal(&ring.nodes()[2], "-CONT");
}

async fn read_all(table: &Table) {
    let reads = (0..ROWS).map(|id| async move { assert_eq!(table.get(id).await.unwrap(), Some(row(id))) });
    stream::iter(reads).buffer_unordered(16).collect::<Vec<()>>().await;
}
