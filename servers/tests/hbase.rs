//! A real HBase and its gateways, started, crashed and commanded. Never skipped: it is fetched if
//! need be.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panic")]

mod thrift;
mod victim;

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use peristyle_servers::{Error, Gateway, HBase, Region};
use rustls::{ClientConnection, StreamOwned};

use thrift::Value::{List, Struct, Text};
use victim::wait_until;

/// Through Thrift 2.
fn create(gateway: &mut thrift::Gateway, table: &str) {
    let name = Struct(vec![(1, Text("default")), (2, Text(table))]);
    let families = List(vec![Struct(vec![(1, Text("f"))])]);
    gateway.call("createTable", vec![(1, Struct(vec![(1, name), (2, families)]))]).unwrap();
}

fn put(gateway: &mut thrift::Gateway, table: &str, row: &str, value: &str) -> io::Result<()> {
    let column = Struct(vec![(1, Text("f")), (2, Text("q")), (3, Text(value))]);
    let put = Struct(vec![(1, Text(row)), (2, List(vec![column]))]);
    gateway.call("put", vec![(1, Text(table)), (2, put)]).map(drop)
}

/// The row's strings: its key, then family, qualifier and value of each cell.
fn get(gateway: &mut thrift::Gateway, table: &str, row: &str) -> io::Result<Vec<String>> {
    gateway.call("get", vec![(1, Text(table)), (2, Struct(vec![(1, Text(row))]))])
}

/// Asks an HTTP gateway which API it serves, and gives its whole answer.
fn post(mut socket: impl Read + Write) -> io::Result<String> {
    let call = b"\x80\x01\0\x01\0\0\0\x13getThriftServerType\0\0\0\0\0";
    write!(socket, "POST / HTTP/1.1\r\nHost: hbase\r\nConnection: close\r\n")?;
    write!(socket, "Content-Type: application/x-thrift\r\nContent-Length: {}\r\n\r\n", call.len())?;
    socket.write_all(call)?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn tls(hbase: &HBase, address: SocketAddr) -> impl Read + Write + use<> {
    let config = hbase.certificates().unwrap().client_config(false).unwrap();
    let connection = ClientConnection::new(Arc::new(config), address.ip().into()).unwrap();
    StreamOwned::new(connection, TcpStream::connect(address).unwrap())
}

fn print_figures(what: &str, hbase: &HBase) {
    let mebibytes = hbase.resident_bytes().unwrap() >> 20;
    println!("{what}: up in {:.1} s, {mebibytes} MiB", hbase.start_time().as_secs_f64());
}

#[test]
fn an_hbase_serves_every_gateway_and_is_gone_with_its_folder_when_dropped() {
    let gateways = [Gateway::thrift2(), Gateway::thrift2().framed(), Gateway::thrift1()];
    let over_http = [Gateway::thrift2().http(), Gateway::thrift2().https()];
    let hbase = HBase::builder().region_servers(1).gateways(gateways).gateways(over_http).start().unwrap();
    print_figures("1 region server, 5 gateways", &hbase);
    assert_eq!(hbase.uri(), format!("hbase://{}/default", hbase.gateway(0).unwrap()));
    let mut buffered = thrift::Gateway::connect(hbase.gateway(0).unwrap(), false).unwrap();
    create(&mut buffered, "t");
    put(&mut buffered, "t", "row", "value").unwrap();
    let mut framed = thrift::Gateway::connect(hbase.gateway(1).unwrap(), true).unwrap();
    assert_eq!(get(&mut framed, "t", "row").unwrap(), ["row", "f", "q", "value"]);
    let mut first = thrift::Gateway::connect(hbase.gateway(2).unwrap(), false).unwrap();
    assert_eq!(first.call("getTableNames", vec![]).unwrap(), ["t"]);
    let plain = TcpStream::connect(hbase.gateway(3).unwrap()).unwrap();
    assert!(post(plain).unwrap().starts_with("HTTP/1.1 200 OK"));
    let encrypted = tls(&hbase, hbase.gateway(4).unwrap());
    assert!(post(encrypted).unwrap().starts_with("HTTP/1.1 200 OK"));

    let process = format!("/proc/{}", hbase.process_id().unwrap());
    let log = hbase.log_file();
    let ports = [hbase.gateway(0).unwrap(), hbase.control_address(), hbase.zookeeper_address()];
    drop(hbase);
    assert!(!fs::exists(process).unwrap());
    assert!(!fs::exists(log).unwrap());
    for port in ports {
        assert!(TcpStream::connect(port).is_err());
    }
}

#[test]
fn region_servers_come_and_go_and_regions_split_and_move() {
    let hbase = HBase::builder().start().unwrap();
    print_figures("3 region servers", &hbase);
    let mut gateway = thrift::Gateway::connect(hbase.gateway(0).unwrap(), false).unwrap();
    create(&mut gateway, "t");
    for row in ["a", "m", "z"] {
        put(&mut gateway, "t", row, "kept").unwrap();
    }
    hbase.split("t", b"m").unwrap();
    let regions = hbase.regions("t").unwrap();
    let bounds = |region: &Region| (region.start.clone(), region.end.clone());
    assert_eq!(regions.iter().map(bounds).collect::<Vec<_>>(), [(vec![], b"m".to_vec()), (b"m".to_vec(), vec![])]);

    let lost = &regions[0].server;
    hbase.abort_region_server(lost).unwrap();
    wait_until("the master has noticed", || !hbase.region_servers().unwrap().contains(lost));
    assert_eq!(hbase.region_servers().unwrap().len(), 2);
    assert_eq!(get(&mut gateway, "t", "a").unwrap(), ["a", "f", "q", "kept"]);

    let added = hbase.add_region_server().unwrap();
    assert!(hbase.region_servers().unwrap().contains(&added));
    hbase.move_region(&regions[1].name, &added).unwrap();
    assert_eq!(hbase.regions("t").unwrap()[1].server, added);
    hbase.flush("t").unwrap();
    hbase.compact("t").unwrap();
    hbase.balance().unwrap();

    hbase.disable("t").unwrap();
    assert!(get(&mut gateway, "t", "z").is_err());
    hbase.enable("t").unwrap();
    assert_eq!(get(&mut gateway, "t", "z").unwrap(), ["z", "f", "q", "kept"]);
}

#[test]
fn without_a_write_ahead_log_it_serves_and_commands_it_refuses_are_errors_with_the_reason() {
    let hbase = HBase::builder().region_servers(1).without_write_ahead_log().start().unwrap();
    let mut gateway = thrift::Gateway::connect(hbase.gateway(0).unwrap(), false).unwrap();
    create(&mut gateway, "t");
    put(&mut gateway, "t", "row", "value").unwrap();
    let error = hbase.regions("absent").unwrap_err().to_string();
    assert_eq!(error, "hbase refused `regions absent`: TableNotFoundException: absent");
    let error = hbase.abort_region_server("nobody").unwrap_err().to_string();
    assert!(error.ends_with("no such region server: nobody"), "{error}");
}

#[test]
fn a_gateway_of_its_own_is_killed_and_restarted_and_acknowledged_rows_survive_a_crash() {
    let gateways = [Gateway::thrift2().own_process(), Gateway::thrift2().compact()];
    let mut hbase = HBase::builder().region_servers(1).gateways(gateways).start().unwrap();
    print_figures("1 region server, a gateway of its own", &hbase);
    let address = hbase.gateway(0).unwrap();
    let mut gateway = thrift::Gateway::connect(address, false).unwrap();
    create(&mut gateway, "t");
    put(&mut gateway, "t", "row", "kept").unwrap();

    hbase.kill_gateway(0).unwrap();
    assert!(get(&mut gateway, "t", "row").is_err());
    hbase.check_running().unwrap();
    hbase.restart_gateway(0).unwrap();
    let mut gateway = thrift::Gateway::connect(address, false).unwrap();
    assert_eq!(get(&mut gateway, "t", "row").unwrap(), ["row", "f", "q", "kept"]);
    assert!(matches!(hbase.kill_gateway(1), Err(Error::Setting(_))));

    hbase.kill();
    assert!(get(&mut gateway, "t", "row").is_err());
    hbase.restart().unwrap();
    print_figures("the same after a crash", &hbase);
    let mut gateway = thrift::Gateway::connect(address, false).unwrap();
    assert_eq!(get(&mut gateway, "t", "row").unwrap(), ["row", "f", "q", "kept"]);
    hbase.stop().unwrap();
    assert_eq!(hbase.process_id(), None);
}

#[test]
fn a_start_that_fails_says_how() {
    let builder = HBase::builder().setting("hbase.rootdir", "nowhere://x/y");
    let error = builder.start().unwrap_err().to_string();
    assert!(error.contains("failed: it ended with exit status: 1"), "{error}");
}

#[test]
fn an_hbase_and_its_gateways_die_with_a_killed_process() {
    let start = || {
        let gateway = Gateway::thrift2().own_process();
        let hbase = HBase::builder().region_servers(1).gateway(gateway).start().unwrap();
        (vec![hbase.process_id().unwrap(), hbase.gateway_process_id(0).unwrap()], hbase)
    };
    victim::assert_dies_with_its_process("an_hbase_and_its_gateways_die_with_a_killed_process", "peristyle.", start);
}
