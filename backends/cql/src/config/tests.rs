use std::fs;

use super::*;

fn refused(uri: &str) -> String {
    CqlConfig::from_uri(uri).unwrap_err().to_string()
}

#[test]
fn a_uri_sets_everything_it_names() {
    let uri = "cql://me:p%40s%3As@h1:9142,h2,[::1],[fe80::1]:9043/Iot?datacenter=dc1&consistency=one\
               &serial_consistency=serial&pool=4&pool_per=host&compression=lz4&connect_timeout=1s&request_timeout=250ms\
               &schema_timeout=2m&page_size=7&batch_grouping=partition&max_expiry=4294967294\
               &tls=true&tls_ca=%2Fa+b.pem&tls_cert=c.pem&tls_key=k.pem&tls_verify=authority";
    let config = CqlConfig::from_uri(uri).unwrap();
    assert_eq!(config.hosts, ["h1:9142", "h2:9042", "[::1]:9042", "[fe80::1]:9043"]);
    assert_eq!(config.keyspace.as_deref(), Some("Iot"));
    assert_eq!(config.user.as_deref(), Some("me"));
    assert_eq!(config.password.as_ref().unwrap().expose(), "p@s:s");
    assert_eq!(config.datacenter.as_deref(), Some("dc1"));
    assert_eq!((config.consistency, config.serial_consistency), (Consistency::One, SerialConsistency::Serial));
    assert_eq!((config.pool.get(), config.pool_per, config.compression), (4, PoolPer::Host, Compression::Lz4));
    assert_eq!(config.connect_timeout, Duration::from_secs(1));
    assert_eq!(config.request_timeout, Duration::from_millis(250));
    assert_eq!(config.schema_timeout, Duration::from_secs(120));
    assert_eq!((config.page_size, config.batch_grouping), (7, BatchGrouping::Partition));
    assert_eq!(config.max_expiry, 4_294_967_294);
    assert!(config.tls);
    assert_eq!(config.tls_ca.as_deref(), Some(Path::new("/a+b.pem")));
    assert_eq!((config.tls_cert, config.tls_key), (Some("c.pem".into()), Some("k.pem".into())));
    assert_eq!(config.tls_verify, TlsVerify::Authority);
}

#[test]
fn a_uri_of_a_host_alone_has_the_defaults() {
    let config = CqlConfig::from_uri("cql://127.0.0.1").unwrap();
    assert_eq!(config, CqlConfig::new(["127.0.0.1:9042"]));
    assert_eq!(config.keyspace, None);
    assert_eq!(config.consistency, Consistency::LocalQuorum);
}

#[test]
fn what_cannot_be_understood_is_named() {
    let cases = [
        ("http://h1", "does not start with cql://"),
        ("cql:///ks", "no hosts"),
        ("cql://h1:port/ks", "\"h1:port\""),
        ("cql://::1/ks", "brackets"),
        ("cql://h1/a-b", "keyspace \"a-b\""),
        ("cql://h1/ks?consistency=most", "\"most\""),
        ("cql://h1/ks?pool=0", "pool=0"),
        ("cql://h1/ks?compression=zip", "none, lz4, snappy"),
        ("cql://h1/ks?connect_timeout=5", "500ms"),
        ("cql://h1/ks?connect_timeout=0s", "timeout of 0"),
        ("cql://h1/ks?page_size=0", "page_size 0"),
        ("cql://h1/ks?tls=yes", "tls=yes"),
        ("cql://h1/ks?tls_ca=x.pem", "without tls=true"),
        ("cql://h1/ks?tls=true&tls_cert=x.pem", "tls_key"),
        ("cql://h1/ks?user=me", "user without password"),
        ("cql://h1/ks?datacenter=%ff", "not UTF-8"),
    ];
    for (uri, expected) in cases {
        let message = refused(uri);
        assert!(message.contains(expected), "{uri}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn an_unknown_parameter_is_told_with_all_that_are_known() {
    let message = refused("cql://h1/ks?datacentre=dc1");
    assert!(message.contains("\"datacentre\"") && message.contains("datacenter, consistency"), "{message}");
}

#[test]
fn every_parameter_that_is_listed_is_known() {
    let message = refused("cql://h1/ks?x=1");
    let listed = message.split_once("there are ").unwrap().1;
    for name in listed.split(", ") {
        let outcome = CqlConfig::from_uri(&format!("cql://h1/ks?{name}=~")).map(drop);
        let message = outcome.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(!message.contains("unknown parameter"), "{message}");
    }
}

#[test]
fn a_password_is_not_shown() {
    let config = CqlConfig::from_uri("cql://me:hidden@h1").unwrap();
    let shown = format!("{config:?}");
    assert!(shown.contains("***") && !shown.contains("hidden"), "{shown}");
}

#[test]
fn a_file_has_the_names_of_the_uri() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cluster.toml");
    let text = "hosts = ['h1', 'h2:9142']\nkeyspace = 'iot'\nuser = 'me'\npassword = 'x'\nrequest_timeout = '2s'\n\
                pool = 4\npool_per = 'host'\nconsistency = 'quorum'\ntls = true\ntls_verify = 'nothing'";
    fs::write(&path, text).unwrap();
    let read = CqlConfig::from_file(&path).unwrap();
    let built = CqlConfig::new(["h1", "h2:9142"]).keyspace("iot").login("me", "x");
    let built = built.tls().tls_verify(TlsVerify::Nothing);
    let built = built.pool(4, PoolPer::Host).consistency(Consistency::Quorum).request_timeout(Duration::from_secs(2));
    assert_eq!(read, built);
}

#[test]
fn a_file_with_an_unknown_field_or_a_wrong_value_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cluster.toml");
    for (text, expected) in [
        ("hosts = ['h1']\npol = 4", "pol"),
        ("hosts = ['h1']\nrequest_timeout = 'soon'", "soon"),
        ("hosts = ['h1:x']", "h1:x"),
        ("keyspace = 'ks'", "no hosts"),
        ("hosts = []", "no hosts"),
    ] {
        fs::write(&path, text).unwrap();
        let message = CqlConfig::from_file(&path).unwrap_err().to_string();
        assert!(message.contains(expected) && message.contains("cluster.toml"), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
    let missing = CqlConfig::from_file(folder.path().join("none.toml")).unwrap_err().to_string();
    assert!(missing.contains("none.toml"), "{missing}");
}
