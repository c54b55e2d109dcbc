//! Where requests go in a ring of three.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use peristyle_core::client::Client;
use peristyle_core::model::{Row, TableSpec, Type};
use peristyle_core::request::Replication;
use peristyle_cql::{CqlBackend, CqlConfig};
use peristyle_servers::{Cassandra, Ring};
use scylla::client::session::Session;
use scylla::cluster::Node;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::statement::Statement;

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

/// With one replica every other coordinator would have to forward.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_and_batches_go_to_the_node_that_has_the_partition() {
    let ring = Ring::start(&Cassandra::builder(), &[("dc1", "r1"), ("dc1", "r2"), ("dc1", "r3")]).unwrap();
    let hosts: Vec<String> = ring.nodes().iter().map(|node| node.cql_address().to_string()).collect();
    let backend = CqlBackend::connect(CqlConfig::new(hosts).keyspace("routed")).await.unwrap();
    let client = Client::builder(backend).build();
    client.create_namespace(Replication::Simple(1)).await.unwrap();
    let spec = TableSpec::builder("t").partition("id", Type::I64).column("v", Type::Text).build().unwrap();
    client.create_table(&spec).await.unwrap();
    ring.wait_until_whole().unwrap();
    let table = client.table(spec).await.unwrap();
    table.put_all((0..ROWS).map(row)).await.unwrap().into_result().unwrap();

    let session = client.native::<CqlBackend>().unwrap().session().unwrap();
    session.refresh_metadata().await.unwrap();
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
