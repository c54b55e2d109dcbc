//! Gateways of every kind, several of them, and what is left when one of them or all else is gone.

use std::future::IntoFuture;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use libtest_mimic::Trial;
use peristyle_core::client::Client;
use peristyle_core::model::{HBaseMapping, PreSplit, Row, Salt, TableBuilder, TableSpec, Type};
use peristyle_core::table::Table;
use peristyle_core::{ErrorKind, TimeoutPhase};
use peristyle_hbase::{HBaseBackend, HBaseConfig};
use peristyle_servers::{Gateway, HBase};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use super::failures::{Load, PATIENCE, row};
use super::traps::is_trouble;
use super::{client, name};

pub(super) fn trials(runtime: &Arc<Runtime>) -> Vec<Trial> {
    let runtime = Arc::clone(runtime);
    vec![Trial::test("gateways::each_kind_serves_and_another_takes_over", move || {
        let own = || Gateway::thrift2().own_process();
        let (one, two) = (Gateway::thrift1(), Gateway::thrift2());
        let others = [two.clone().http(), two.clone().https(), one.clone().http(), two.compact(), one.compact()];
        let mut hbase = HBase::builder().gateways([own(), own()]).gateways(others).start().unwrap();
        runtime.block_on(each_kind_serves(&hbase));
        runtime.block_on(rows_go_through_the_gateway_of_their_region(&hbase));
        another_takes_over(&runtime, &mut hbase);
        hbase_is_down_behind_its_gateway(&runtime, &mut hbase);
        Ok(())
    })]
}

/// A table with a region for each of three buckets.
fn split(name: &str) -> TableBuilder {
    let mapping = HBaseMapping { pre_split: Some(PreSplit::Buckets), ..HBaseMapping::default() };
    let builder = TableSpec::builder(name).partition("id", Type::I64).column("v", Type::I64);
    builder.salt(Salt::Buckets(3)).hbase(mapping)
}

async fn opened(client: &Client, spec: TableSpec) -> Table {
    client.create_table(&spec).await.unwrap();
    client.table(spec).await.unwrap()
}

async fn each_kind_serves(hbase: &HBase) {
    let authority = hbase.certificates().unwrap().authority().display();
    let kinds = [
        (2, "transport=http".to_owned()),
        (3, format!("transport=http&tls=true&tls_ca={authority}")),
        (4, "transport=http&api=thrift1".to_owned()),
        (5, "protocol=compact".to_owned()),
        (6, "protocol=compact&api=thrift1".to_owned()),
    ];
    for (place, parameters) in kinds {
        let client = client(&hbase.gateway(place).unwrap().to_string(), &parameters).await;
        let builder = split(&name(&format!("kind{place}")));
        let is_thrift1 = parameters.contains("thrift1");
        let builder = if is_thrift1 { builder.hbase(HBaseMapping::default()) } else { builder };
        let table = opened(&client, builder.build().unwrap()).await;
        table.put_all((0..1_000).map(row)).await.unwrap().into_result().unwrap();
        let found: Vec<Option<Row>> = table.get_all(0..1_001_i64).await.unwrap();
        assert!(found.iter().zip(0..1_000).all(|(found, id)| *found == Some(row(id))), "{parameters}");
        assert_eq!(found.last(), Some(&None));
        // A reply of several parts, in chunks.
        let wide = Row::new().with("id", 2_000_i64).with("v", 1_i64);
        table.put(&wide).await.unwrap();
        assert_eq!(table.get(2_000).await.unwrap(), Some(wide));
        client.drop_table(table.spec().name()).await.unwrap();
    }
    let address = hbase.gateway(3).unwrap();
    for (parameters, what) in [("transport=http&tls=true", "another authority"), ("transport=http", "no encryption")] {
        let config = HBaseConfig::from_uri(&format!("hbase://{address}/default?{parameters}")).unwrap();
        let start = Instant::now();
        let error = HBaseBackend::connect(config).await.unwrap_err();
        assert!(is_trouble(error.kind()) && start.elapsed() < PATIENCE, "{what}: {error:?}");
    }
}

/// A door to a gateway that counts who comes in.
async fn door(gateway: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut inside, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut outside = TcpStream::connect(gateway).await.unwrap();
                // Either side may close it.
                let _ = copy_bidirectional(&mut inside, &mut outside).await;
            });
        }
    });
    (address, count)
}

async fn rows_go_through_the_gateway_of_their_region(hbase: &HBase) {
    let spec = split(&name("places")).build().unwrap();
    let plain = client(&hbase.gateway(0).unwrap().to_string(), "").await;
    plain.create_table(&spec).await.unwrap();
    let regions = hbase.regions(&format!("default:{}", spec.name())).unwrap();
    let servers = hbase.region_servers().unwrap();
    for (region, server) in regions.iter().zip(&servers) {
        hbase.move_region(&region.name, server).unwrap();
    }
    let (first, others) = (door(hbase.gateway(0).unwrap()).await, door(hbase.gateway(1).unwrap()).await);
    // Servers are named host,port,start.
    let server = |name: &String| name.splitn(3, ',').take(2).collect::<Vec<_>>().join(":");
    let places: Vec<String> = servers
        .iter()
        .zip([first.0, others.0, others.0])
        .map(|(name, gateway)| format!("{}={gateway}", server(name)))
        .collect();
    let hosts = format!("{},{}", first.0, others.0);
    let client = client(&hosts, &format!("pool=1&colocated={}", places.join(","))).await;
    let table = client.table(spec).await.unwrap();
    let in_first = |id: &i64| {
        let key = peristyle_core::codec::ordered::encode_key;
        let mut bytes = Vec::new();
        key(&[(*id).into()], table.spec().partition_key(), &mut bytes).unwrap();
        peristyle_core::codec::salt::bucket(3, &bytes) == 0
    };
    let (near, far): (Vec<i64>, Vec<i64>) = (0..300).partition(in_first);
    table.put_all((0..300).map(row)).await.unwrap().into_result().unwrap();
    let counts = || [&first.1, &others.1].map(|count| count.load(Ordering::SeqCst));
    assert_eq!(counts(), [1, 1], "each gateway has its rows, over the one connection of its pool");
    for (ids, gateway) in [(near, 0), (far, 1)] {
        assert!(ids.len() > 50);
        let found: Vec<Option<Row>> = table.get_all(ids).await.unwrap();
        assert!(found.iter().all(Option::is_some), "through gateway {gateway}");
    }
    assert_eq!(counts(), [1, 1]);
}

fn both(hbase: &HBase) -> String {
    format!("{},{}", hbase.gateway(0).unwrap(), hbase.gateway(1).unwrap())
}

fn another_takes_over(runtime: &Runtime, hbase: &mut HBase) {
    let spec = split(&name("takeover")).build().unwrap();
    let client = runtime.block_on(client(&both(hbase), "request_timeout=5s&pool=8"));
    let table = runtime.block_on(opened(&client, spec));
    let load = Load::start(runtime, &table, 0);
    load.wait(200);
    hbase.kill_gateway(0).unwrap();
    load.wait(load.acknowledged() + 500);
    hbase.restart_gateway(0).unwrap();
    hbase.kill_gateway(1).unwrap();
    load.wait(load.acknowledged() + 500);
    load.finish(runtime, &table, "one of two gateways killed, then the other");
    hbase.restart_gateway(1).unwrap();
}

fn hbase_is_down_behind_its_gateway(runtime: &Runtime, hbase: &mut HBase) {
    let spec = split(&name("behind")).build().unwrap();
    let client = runtime.block_on(client(&both(hbase), "request_timeout=3s"));
    let table = runtime.block_on(opened(&client, spec));
    runtime.block_on(table.put(&row(1)).into_future()).unwrap();
    hbase.kill_cluster();
    let timed = |what: &str, outcome: peristyle_core::Result<()>, start: Instant| {
        let error = outcome.unwrap_err();
        assert!(is_trouble(error.kind()), "{what}: {error:?}");
        assert_ne!(error.kind(), ErrorKind::Timeout(TimeoutPhase::Connect), "{what}: the gateway is there");
        assert!(start.elapsed() < PATIENCE, "{what}: {:?}", start.elapsed());
        println!("{what} with HBase down, its gateway up: {:?}, {error}", start.elapsed());
    };
    let start = Instant::now();
    timed("get", runtime.block_on(table.get::<Row>(1).into_future()).map(drop), start);
    let start = Instant::now();
    timed("put", runtime.block_on(table.put(&row(2)).into_future()), start);
    let start = Instant::now();
    let report = runtime.block_on(table.put_all([row(3), row(4)]).into_future());
    timed("put_all", report.and_then(peristyle_core::table::PutAllReport::into_result), start);
    let start = Instant::now();
    timed("scan", runtime.block_on(table.scan().page::<Row>(None)).map(drop), start);
}
