//! A real HBase and its gateways, started, crashed and commanded. Never skipped: it is fetched if
//! need be.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panic")]

mod thrift;

use std::fs;
use std::io;
use std::net::TcpStream;

use peristyle_servers::{Gateway, HBase};

use thrift::Value::{List, Struct, Text};

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

#[test]
fn an_hbase_serves_every_gateway_and_is_gone_with_its_folder_when_dropped() {
    let gateways = [Gateway::thrift2(), Gateway::thrift2().framed(), Gateway::thrift1(), Gateway::thrift2().http()];
    let hbase = HBase::builder().region_servers(1).gateways(gateways).start().unwrap();
    println!("1 region server: {:?}, {:?} MiB", hbase.start_time(), hbase.resident_bytes().map(|bytes| bytes >> 20));
    assert_eq!(hbase.uri(), format!("hbase://{}/default", hbase.gateway(0).unwrap()));
    let mut buffered = thrift::Gateway::connect(hbase.gateway(0).unwrap(), false).unwrap();
    create(&mut buffered, "t");
    put(&mut buffered, "t", "row", "value").unwrap();
    let mut framed = thrift::Gateway::connect(hbase.gateway(1).unwrap(), true).unwrap();
    assert_eq!(get(&mut framed, "t", "row").unwrap(), ["row", "f", "q", "value"]);
    let mut first = thrift::Gateway::connect(hbase.gateway(2).unwrap(), false).unwrap();
    assert_eq!(first.call("getTableNames", vec![]).unwrap(), ["t"]);

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
