use super::*;

fn refused(uri: &str) -> String {
    HBaseConfig::from_uri(uri).unwrap_err().to_string()
}

#[test]
fn a_uri_sets_every_parameter() {
    let uri = "hbase://h1,[::1]:9191/ns?api=thrift1&protocol=compact&pool=7&connect_timeout=1s&request_timeout=2s\
               &schema_timeout=3s&idle_timeout=4s&max_request_bytes=1000000&schema_gateways=h2,h3:1&transport=framed";
    let config = HBaseConfig::from_uri(uri).unwrap();
    assert_eq!(config.gateways, ["h1:9090", "[::1]:9191"]);
    assert_eq!((config.api, config.transport, config.protocol), (Api::Thrift1, Transport::Framed, Protocol::Compact));
    assert_eq!((config.namespace.as_str(), config.pool.get()), ("ns", 7));
    let seconds = [config.connect_timeout, config.request_timeout, config.schema_timeout, config.idle_timeout];
    assert_eq!(seconds.map(|limit| limit.as_secs()), [1, 2, 3, 4]);
    assert_eq!(
        (config.max_request_bytes, config.schema_gateways),
        (1_000_000, vec!["h2:9090".to_owned(), "h3:1".into()])
    );
}

#[test]
fn a_uri_names_authorities_and_what_sits_with_what() {
    let uri = "hbase://gw1,gw2:1?transport=http&tls=true&tls_ca=/ca.pem&colocated=rs1=gw1,rs2:16020=gw2:1";
    let config = HBaseConfig::from_uri(uri).unwrap();
    assert_eq!((config.transport, config.tls, config.tls_ca), (Transport::Http, true, Some("/ca.pem".into())));
    let colocated = [("rs1", "gw1:9090"), ("rs2:16020", "gw2:1")];
    assert_eq!(config.colocated, colocated.map(|(server, gateway)| (server.to_owned(), gateway.to_owned())));
}

#[test]
fn framed_gateways_take_less_than_their_two_mebibytes() {
    assert!(HBaseConfig::from_uri("hbase://h?transport=framed").unwrap().max_request_bytes < 2 << 20);
    assert_eq!(HBaseConfig::from_uri("hbase://h").unwrap().max_request_bytes, 64 << 20);
}

#[test]
fn a_wrong_part_is_named_and_the_right_ones_listed() {
    let cases = [
        ("cql://h", "hbase://"),
        ("hbase://", "no gateway"),
        ("hbase://h:x", "\"h:x\""),
        ("hbase://h/a.b", "\"a.b\""),
        ("hbase://h?api=thrift3", "thrift2, thrift1"),
        ("hbase://h?transport=https", "buffered, framed, http"),
        ("hbase://h?tls=true", "transport=http"),
        ("hbase://h?transport=http&tls_ca=/x", "tls=true"),
        ("hbase://h?transport=http&protocol=compact", "protocol=binary"),
        ("hbase://h?colocated=rs1", "rs1=gw1:9090"),
        ("hbase://h?colocated=rs1=other", "none of the gateways"),
        ("hbase://h?pool=0", "pool=0"),
        ("hbase://h?request_timeout=soon", "request_timeout=soon"),
        ("hbase://h?request_timeout=0s", "timeout of 0"),
        ("hbase://h?max_request_bytes=5", "131072"),
        ("hbase://h?pol=1", "\"pol\" in the URI; there are api, transport"),
        ("hbase://h/%ff", "UTF-8"),
    ];
    for (uri, text) in cases {
        let message = refused(uri);
        assert!(message.contains(text) && !message.contains('\n'), "{message}");
    }
}
