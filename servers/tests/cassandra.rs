//! A real Cassandra, started, crashed and refused. Never skipped: it is fetched if need be.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panic")]

mod victim;

use std::fs;
use std::net::SocketAddr;

use peristyle_servers::{Cassandra, Client, Error, Login, Ring};

const KEYSPACE: &str = "CREATE KEYSPACE k WITH replication = \
                        {'class': 'SimpleStrategy', 'replication_factor': 1}";

#[test]
fn a_node_answers_and_is_gone_with_its_folder_when_dropped() {
    let node = Cassandra::builder().start().unwrap();
    let rows = node.client().unwrap().query("SELECT release_version FROM system.local").unwrap();
    assert_eq!(rows, [[Some(b"5.0.6".to_vec())]]);
    assert!(node.resident_bytes().unwrap() > 0);

    let process = format!("/proc/{}", node.process_id().unwrap());
    let log = node.log_file();
    let address = node.cql_address();
    drop(node);
    assert!(!fs::exists(process).unwrap());
    assert!(!fs::exists(log).unwrap());
    assert!(Client::connect(address, None).is_err());
}

#[test]
fn a_durable_node_keeps_an_acknowledged_row_over_kill_and_restart() {
    let mut node = Cassandra::builder().durable().start().unwrap();
    let mut client = node.client().unwrap();
    client.query(KEYSPACE).unwrap();
    client.query("CREATE TABLE k.t (id int PRIMARY KEY, name text)").unwrap();
    client.query("INSERT INTO k.t (id, name) VALUES (1, 'kept')").unwrap();
    let address = node.cql_address();
    node.kill();
    assert!(client.query("SELECT name FROM k.t").is_err());

    node.restart().unwrap();
    assert_eq!(node.cql_address(), address);
    let rows = node.client().unwrap().query("SELECT name FROM k.t WHERE id = 1").unwrap();
    assert_eq!(rows, [[Some(b"kept".to_vec())]]);
}

#[test]
fn a_node_with_tls_serves_encrypted_clients_only() {
    let node = Cassandra::builder().tls().start().unwrap();
    assert_answers(&mut node.client().unwrap());
    assert!(Client::connect(node.cql_address(), None).is_err());
}

#[test]
fn a_node_with_mutual_tls_refuses_a_client_without_certificate() {
    let node = Cassandra::builder().mutual_tls().start().unwrap();
    assert_answers(&mut node.client().unwrap());
    let certificates = node.certificates().unwrap();
    assert!(Client::connect_tls(node.cql_address(), certificates, false, None).is_err());
}

#[test]
fn a_node_with_passwords_refuses_strangers_and_wrong_passwords() {
    let node = Cassandra::builder().password_auth().start().unwrap();
    assert_answers(&mut node.client().unwrap());
    let address = node.cql_address();
    assert_bad_credentials(address, None);
    assert_bad_credentials(address, Some(Login { user: "cassandra", password: "wrong" }));
}

#[test]
fn a_start_that_fails_says_how() {
    let builder = Cassandra::builder().setting("num_tokens", "many");
    let error = builder.start().unwrap_err().to_string();
    assert!(error.contains("failed: it ended with exit status"), "{error}");
}

#[test]
fn a_ring_forms_over_racks_and_loses_a_killed_node() {
    let places = [("dc1", "r1"), ("dc1", "r2"), ("dc2", "r1")];
    let template = Cassandra::builder().heap_mib(256).setting("phi_convict_threshold", "5");
    let mut ring = Ring::start(&template, &places).unwrap();
    let mut client = ring.nodes()[0].client().unwrap();
    let centers = client.query("SELECT data_center FROM system.peers_v2").unwrap();
    let count = |name: &str| centers.iter().filter(|row| row[0] == Some(name.into())).count();
    assert_eq!((count("dc1"), count("dc2")), (1, 1));

    ring.node(2).unwrap().kill();
    assert!(Client::connect(ring.nodes()[2].cql_address(), None).is_err());
    assert_answers(&mut client);
}

#[test]
fn a_node_dies_with_a_killed_process() {
    let start = || {
        let node = Cassandra::builder().start().unwrap();
        (vec![node.process_id().unwrap()], node)
    };
    victim::assert_dies_with_its_process("a_node_dies_with_a_killed_process", "CassandraDaemon", start);
}

fn assert_answers(client: &mut Client) {
    assert_eq!(client.query("SELECT key FROM system.local").unwrap().len(), 1);
}

fn assert_bad_credentials(address: SocketAddr, login: Option<Login<'_>>) {
    match Client::connect(address, login) {
        Err(Error::Refused { code: 0x0100, .. }) => {}
        other => panic!("{other:?}"),
    }
}
