use std::sync::Arc;

use futures::TryStreamExt;
use futures::executor::block_on;
use proptest::prelude::*;

use super::SaltLayer;
use super::layout::{Layouts, declared};
use crate::Capability;
use crate::backend::{Backend, Owner, ResponseFuture, Topology};
use crate::capability::Capabilities;
use crate::client::Client;
use crate::clock::Clock;
use crate::error::ErrorKind;
use crate::memory::MemoryBackend;
use crate::model::{Key, Order, Row, Salt, TableSpec, Type, Value};
use crate::model::{Ttl, WriteTime};
use crate::request::Request;
use crate::request::{Mutation, Projection, Read, Write};
use crate::testkit::{Case, Fixture, cases};

fn spec(salt: Salt) -> Arc<TableSpec> {
    let table = TableSpec::builder("t").partition("a", Type::I64).partition("b", Type::Text);
    let table = table.clustering("c", Type::I32, Order::Descending).column("v", Type::I64).salt(salt);
    Arc::new(table.build().unwrap())
}

fn names(spec: &TableSpec) -> Vec<String> {
    spec.primary_key().iter().map(|column| format!("{} {} {:?}", column.name, column.ty, column.kind)).collect()
}

#[test]
fn the_salt_leads_the_stored_key_and_its_column_tells_it() {
    let stored = Arc::clone(&Layouts::new(false).of(&spec(Salt::Buckets(16))).unwrap().stored);
    let expected = [
        "bucket_of_16_by_2 i16 Partition",
        "a i64 Clustering(Ascending)",
        "b text Clustering(Ascending)",
        "c i32 Clustering(Descending)",
    ];
    assert_eq!(names(&stored), expected);
    let stored = Arc::clone(&Layouts::new(true).of(&spec(Salt::MIDDLE_BYTES)).unwrap().stored);
    let expected =
        ["crc32_bytes_2_from_1 blob Partition", "a i64 Partition", "b text Partition", "c i32 Clustering(Descending)"];
    assert_eq!(names(&stored), expected);
}

#[test]
fn a_stored_table_tells_its_declaration_and_others_are_left_alone() {
    for salt in [Salt::Buckets(1), Salt::Buckets(256), Salt::MIDDLE_BYTES, Salt::Prefix { first: 0, length: 4 }] {
        for one_byte in [true, false] {
            let stored = Arc::clone(&Layouts::new(one_byte).of(&spec(salt)).unwrap().stored);
            assert_eq!(declared(&stored).as_ref(), Some(&*spec(salt)));
        }
    }
    for name in
        ["id", "bucket_of_4", "bucket_of_4_by_9", "bucket_of_0_by_1", "crc32_bytes_2_from_1", "bucket_of_4_by_1"]
    {
        let table = TableSpec::builder("t").partition(name, Type::I64).clustering("a", Type::I64, Order::Ascending);
        assert_eq!(declared(&table.build().unwrap()), None, "{name}");
    }
}

/// The bytes and the bucket of the golden vectors: CRC32 of the long 1 has the middle bytes 25 EF.
#[test]
fn a_key_gets_the_salt_of_its_encoded_partition_key() {
    let table = |salt| {
        let mapping = crate::model::HBaseMapping { key_encoding: crate::model::KeyEncoding::Raw, ..Default::default() };
        Arc::new(TableSpec::builder("t").partition("id", Type::I64).salt(salt).hbase(mapping).build().unwrap())
    };
    let salted = |salt, one_byte| {
        let layout = Layouts::new(one_byte).of(&table(salt)).unwrap();
        let mut read = Read::Get { key: Key::new(vec![Value::I64(1)]), columns: Projection::default() };
        layout.read(&mut read).unwrap();
        let Read::Get { key, .. } = read else { panic!("{read:?}") };
        key.values().to_vec()
    };
    assert_eq!(salted(Salt::MIDDLE_BYTES, false), [Value::from(vec![0x25_u8, 0xef]), Value::I64(1)]);
    let bucket = crc32fast::hash(&1_i64.to_be_bytes()) % 200;
    assert_eq!(salted(Salt::Buckets(200), false)[0], Value::I16(i16::try_from(bucket).unwrap()));
    let byte = u8::try_from(bucket).unwrap();
    assert_eq!(salted(Salt::Buckets(200), true)[0], Value::I8(i8::from_be_bytes([byte ^ 0x80])));
}

#[test]
fn a_write_goes_to_the_stored_columns() {
    let layout = Layouts::new(false).of(&spec(Salt::Buckets(4))).unwrap();
    let key = Key::new(vec![Value::I64(1), Value::from("x"), Value::I32(2)]);
    let put = Mutation::put(key, WriteTime::MIN, [(3, Value::I64(7))], Ttl::Never);
    let mut write = Write::Apply(put);
    layout.write(&mut write).unwrap();
    let Write::Apply(put) = write else { panic!("{write:?}") };
    assert_eq!((put.key.values().len(), put.cells[0].column), (4, 4));
}

/// Cases that declare a table a second time, without its salt.
const REDECLARE: [&str; 2] =
    ["a_table_that_differs_is_refused", "a_declaration_may_have_fewer_columns_in_another_order"];

/// Every case of the contract, with every table salted.
#[tokio::test]
async fn the_contract_holds_with_every_table_salted() {
    for (salt, lacks) in
        [(Salt::Buckets(3), Capability::PartitionDelete), (Salt::MIDDLE_BYTES, Capability::OrderedScan)]
    {
        let clock = Clock::manual(Clock::system().micros());
        let client = Client::builder(MemoryBackend::with_clock(clock.clone())).clock(clock.clone()).build();
        let fixture = Fixture::with_clock(client, clock).salted(salt);
        let fits = |case: &Case| fixture.client().require(case.needs).is_ok() && !case.needs.contains(&lacks);
        for case in cases().filter(|case| fits(case) && !REDECLARE.contains(&case.name)) {
            println!("{salt:?}: {}", case.name);
            (case.run)(&fixture).await;
        }
    }
}

#[tokio::test]
async fn what_a_salt_rules_out_is_refused() {
    let client = Client::builder(MemoryBackend::new()).build();
    for (name, salt) in [("b", Salt::Buckets(3)), ("p", Salt::MIDDLE_BYTES)] {
        let table =
            TableSpec::builder(name).partition("id", Type::I64).column("v", Type::I64).salt(salt).build().unwrap();
        client.create_table(&table).await.unwrap();
        let table = client.table(table).await.unwrap();
        let error = match salt {
            Salt::Buckets(_) => table.delete_partition(1).await.unwrap_err(),
            Salt::Prefix { .. } => table.scan().key_order().page::<Row>(None).await.unwrap_err(),
        };
        assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
    }
}

/// Two rows whose partition keys are in one bucket have one owner, for the bucket is what is stored.
#[test]
fn rows_of_one_bucket_have_one_owner() {
    let (backend, layer) =
        (Arc::new(ByKey(MemoryBackend::new())), SaltLayer { layouts: Some(Arc::new(Layouts::new(false))) });
    let topology = layer.topology(backend);
    let table = Arc::new(TableSpec::builder("t").partition("id", Type::I64).salt(Salt::Buckets(2)).build().unwrap());
    let owners = |topology: &dyn Topology| {
        (0..50_i64)
            .map(|id| topology.owner_id(&table, &[Value::I64(id)]))
            .collect::<std::collections::BTreeSet<_>>()
            .len()
    };
    assert_eq!(owners(&topology), 50, "nothing is known yet");
    layer.layouts.as_ref().unwrap().of(&table).unwrap();
    assert_eq!(owners(&topology), 2);
}

/// Every partition has an owner of its own.
#[derive(Debug)]
struct ByKey(MemoryBackend);

impl Backend for ByKey {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn call(&self, request: Request) -> ResponseFuture {
        self.0.call(request)
    }

    fn topology(&self) -> &dyn Topology {
        self
    }

    fn native(&self) -> &dyn std::any::Any {
        self.0.native()
    }

    fn close(&self) -> futures::future::BoxFuture<'static, crate::Result<()>> {
        self.0.close()
    }
}

impl Topology for ByKey {
    fn owner(&self, _: &TableSpec, partition_key: &[Value]) -> Option<Owner> {
        Some(Owner { node: format!("{partition_key:?}").into(), shard: None, region: None, local: false })
    }

    fn split(&self, _: &TableSpec, _: usize) -> Vec<crate::request::ScanRange> {
        vec![crate::request::ScanRange::All]
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_scan_in_key_order_is_that_of_the_table_without_salt(
        keys: std::collections::BTreeSet<(i64, i8)>,
        buckets in 1_u16..=256,
        page in 1_usize..40,
    ) {
        let scan = |salt: Option<Salt>| {
            let keys = keys.clone();
            async move {
                let client = Client::builder(MemoryBackend::new()).build();
                let table = TableSpec::builder("t").partition("a", Type::I64).clustering("c", Type::I8, Order::Descending);
                let table = salt.into_iter().fold(table.column("v", Type::I64), crate::model::TableBuilder::salt);
                let spec = table.build().unwrap();
                client.create_table(&spec).await.unwrap();
                let table = client.table(spec).await.unwrap();
                let rows = keys.iter().map(|(a, c)| Row::new().with("a", *a).with("c", *c).with("v", 1_i64));
                table.put_all(rows).await.unwrap().into_result().unwrap();
                table.scan().key_order().page_size(page).rows::<Row>().try_collect::<Vec<Row>>().await.unwrap()
            }
        };
        prop_assert_eq!(block_on(scan(Some(Salt::Buckets(buckets)))), block_on(scan(None)));
    }
}
