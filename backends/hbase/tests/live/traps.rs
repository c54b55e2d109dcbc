//! One test for each trap.

use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use libtest_mimic::Trial;
use peristyle_core::client::Client;
use peristyle_core::model::{
    BlockEncoding, Compression, HBaseMapping, KeyEncoding, Order, PreSplit, Row, Salt, TableBuilder, TableSpec, Ttl,
    Type, Value,
};
use peristyle_core::request::ScanRange;
use peristyle_core::{ErrorKind, Outcome, TimeoutPhase};
use tokio::runtime::Runtime;

use super::failures::PATIENCE;
use super::{client, name};

macro_rules! trials {
    ($($case:ident),* $(,)?) => {
        pub(super) fn trials(runtime: &Arc<Runtime>, address: &str) -> Vec<Trial> {
            vec![$({
                let (runtime, address) = (Arc::clone(runtime), address.to_owned());
                Trial::test(concat!("traps::", stringify!($case)), move || {
                    runtime.block_on(async { $case(client(&address, "").await).await });
                    Ok(())
                })
            }),*]
        }
    };
}

trials! {
    a_presplit_table_has_its_64_regions_and_keys_of_ten_bytes,
    a_table_of_another_program_is_read_and_written_as_declared,
    buckets_are_scanned_in_key_order_like_an_unsalted_table,
    a_column_expires_at_its_second_with_either_timestamp,
    one_bad_row_of_a_batch_fails_alone,
    a_column_in_another_family_is_part_of_its_row,
    writes_of_one_row_in_one_millisecond_keep_their_order_in_a_shared_table,
    a_table_with_another_salt_is_refused,
    an_idle_connection_is_replaced_when_the_gateway_closed_it,
}

async fn with_table<F: Future<Output = ()>>(
    client: &Client,
    builder: TableBuilder,
    case: impl FnOnce(peristyle_core::table::Table) -> F,
) {
    let spec = builder.build().unwrap();
    client.create_table(&spec).await.unwrap();
    case(client.table(spec.clone()).await.unwrap()).await;
    client.drop_table(spec.name()).await.unwrap();
}

/// The table of an existing program: a long salted with the middle bytes of its CRC, split evenly.
pub(super) fn existing(name: &str) -> TableBuilder {
    let columns = [("title".to_owned(), "cf:value".to_owned())].into();
    TableSpec::builder(name).partition("id", Type::I64).column("title", Type::Text).salt(Salt::MIDDLE_BYTES).hbase(
        HBaseMapping {
            key_encoding: KeyEncoding::Raw,
            pre_split: Some(PreSplit::Uniform(64)),
            compression: Compression::Gz,
            block_encoding: BlockEncoding::FastDiff,
            columns,
            ..HBaseMapping::default()
        },
    )
}

/// The same table as a program sees it that knows nothing of salts: its row keys are bytes.
fn unsalted(name: &str) -> TableSpec {
    let columns = [("title".to_owned(), "cf:value".to_owned())].into();
    let mapping = HBaseMapping { key_encoding: KeyEncoding::Raw, columns, ..HBaseMapping::default() };
    let builder = TableSpec::builder(name).partition("row", Type::Blob).column("title", Type::Text);
    builder.hbase(mapping).build().unwrap()
}

async fn a_presplit_table_has_its_64_regions_and_keys_of_ten_bytes(client: Client) {
    with_table(&client, existing(&name("split")), |table| async move {
        let client = table.client();
        let ranges = client.topology().split(table.spec(), 64);
        let starts = ranges.iter().map(|range| match range {
            ScanRange::Keys { from, .. } => from.to_vec(),
            other => panic!("{other:?}"),
        });
        let starts: Vec<Vec<u8>> = starts.collect();
        let expected = (0..64_u64).map(|place| if place == 0 { vec![] } else { (place << 58).to_be_bytes().to_vec() });
        assert_eq!(starts, expected.collect::<Vec<_>>());
        for id in [0_i64, 1, 42, -1, i64::MAX, i64::MIN] {
            table.put(&Row::new().with("id", id).with("title", format!("t{id}"))).await.unwrap();
        }
        let rows: Vec<Row> = table.scan().parallel(NonZeroUsize::new(8).unwrap()).rows().try_collect().await.unwrap();
        assert_eq!(rows.len(), 6);
        // The row of key 1, byte for byte, through a declaration without the salt.
        let bytes = b"\x25\xef\0\0\0\0\0\0\0\x01".to_vec();
        let raw = peristyle_core::request::Read::Get {
            key: vec![Value::from(bytes)].into(),
            columns: peristyle_core::request::Projection::default(),
        };
        let request = peristyle_core::Request::read(unsalted(table.spec().name()).into(), raw);
        let row = client.call(request).await.unwrap().into_row().unwrap().unwrap();
        assert_eq!(row.values[1], Some(Value::from("t1")));
    })
    .await;
}

async fn a_table_of_another_program_is_read_and_written_as_declared(client: Client) {
    // A table that this library made is another program's when its declaration doesn't fit.
    let spec = existing(&name("foreign")).build().unwrap();
    with_table(&client, existing(spec.name()), |table| async move {
        let row = |id: i64| Row::new().with("id", id).with("title", "x");
        table.put_all((0..100).map(row)).await.unwrap().into_result().unwrap();
        let found = table.get_all::<Row>(0..100_i64).await.unwrap();
        assert_eq!(found, (0..100).map(|id| Some(row(id))).collect::<Vec<_>>());
        let refused = table.scan().key_order().page::<Row>(None).await.unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Unsupported(_)), "{refused}");
    })
    .await;
}

async fn buckets_are_scanned_in_key_order_like_an_unsalted_table(client: Client) {
    for buckets in [1_u16, 3, 256] {
        let builder = TableSpec::builder(name(&format!("buckets{buckets}"))).partition("id", Type::I64);
        let builder = builder.clustering("c", Type::I32, Order::Descending).column("v", Type::I32);
        let split = HBaseMapping { pre_split: Some(PreSplit::Buckets), ..HBaseMapping::default() };
        with_table(&client, builder.salt(Salt::Buckets(buckets)).hbase(split), |table| async move {
            let row =
                |place: i32| Row::new().with("id", i64::from(place / 3 - 15)).with("c", place % 3).with("v", place);
            table.put_all((0..90).map(row)).await.unwrap().into_result().unwrap();
            let mut expected: Vec<Row> = (0..90).map(row).collect();
            let order = |row: &Row| {
                let number = |name| i64::try_from(row.get(name).unwrap().clone()).unwrap();
                let c = i32::try_from(row.get("c").unwrap().clone()).unwrap();
                (number("id"), -c)
            };
            expected.sort_by_key(order);
            for page_size in [1, 7, 1000] {
                let rows: Vec<Row> = table.scan().key_order().page_size(page_size).rows().try_collect().await.unwrap();
                assert_eq!(rows, expected, "{buckets} buckets, pages of {page_size}");
            }
            let rows: Vec<Row> = table.scan().key_order().limit(10).rows().try_collect().await.unwrap();
            assert_eq!(rows, expected[..10], "{buckets} buckets");
            let any: Vec<Row> =
                table.scan().parallel(NonZeroUsize::new(4).unwrap()).rows().try_collect().await.unwrap();
            assert_eq!(any.len(), 90);
            let reversed: Vec<Row> = table.query(2).reverse().rows().try_collect().await.unwrap();
            assert_eq!(reversed.len(), 3);
        })
        .await;
    }
}

async fn a_column_expires_at_its_second_with_either_timestamp(client: Client) {
    for (key_encoding, what) in [(KeyEncoding::Ordered, "micros"), (KeyEncoding::Raw, "millis")] {
        let builder = TableSpec::builder(name(what)).partition("id", Type::I64).column("v", Type::I64);
        let mapping = HBaseMapping { key_encoding, ..HBaseMapping::default() };
        with_table(&client, builder.hbase(mapping), |table| async move {
            let row = |v: i64| Row::new().with("id", 1_i64).with("v", v);
            table.put(&row(1)).await.unwrap();
            let (start, ttl) = (Instant::now(), Duration::from_secs(3));
            table.put(&row(2)).ttl(ttl).await.unwrap();
            table.put_all([row(3).with("id", 2_i64)]).ttl(ttl).await.unwrap().into_result().unwrap();
            let found = table.get(1).await.unwrap();
            // A busy machine may have taken that long; the second that has begun counts in full.
            assert!(found == Some(row(2)) || start.elapsed() >= Duration::from_secs(2), "{what}: {found:?}");
            tokio::time::sleep(ttl + Duration::from_millis(100)).await;
            assert_eq!(table.get_all::<Row>([1_i64, 2]).await.unwrap(), [None, None], "{what}");
        })
        .await;
    }
}

async fn one_bad_row_of_a_batch_fails_alone(client: Client) {
    let table_name = name("family");
    let builder = TableSpec::builder(table_name.as_str()).partition("id", Type::I64).column("v", Type::I64);
    with_table(&client, builder, |table| async move {
        // A declaration with a column in a family that the live table lacks.
        let columns = [("w".to_owned(), "absent:w".to_owned())].into();
        let wider = TableSpec::builder(table_name.as_str())
            .partition("id", Type::I64)
            .column("v", Type::I64)
            .column("w", Type::I64)
            .hbase(HBaseMapping { columns, ..HBaseMapping::default() })
            .build()
            .unwrap();
        let mutation = |id: i64| {
            let column = if id % 7 == 5 { 2 } else { 1 };
            let (key, time) = (vec![Value::from(id)].into(), table.client().next_write_time());
            peristyle_core::request::Mutation::put(key, time, vec![(column, Value::from(id))], Ttl::default())
        };
        let write = peristyle_core::request::Write::ApplyAll((0..20).map(mutation).collect());
        let answer = table.client().call(peristyle_core::Request::write(wider.into(), write)).await;
        let outcomes = answer.unwrap().into_outcomes().unwrap();
        for (id, outcome) in (0_i64..).zip(outcomes) {
            match outcome {
                Ok(()) => assert_ne!(id % 7, 5),
                Err(error) => {
                    assert_eq!((error.kind(), error.outcome(), id % 7), (ErrorKind::NotFound, Outcome::NotApplied, 5));
                }
            }
            assert_eq!(table.get::<Row>(id).await.unwrap().is_some(), id % 7 != 5, "{id}");
        }
    })
    .await;
}

async fn a_column_in_another_family_is_part_of_its_row(client: Client) {
    let columns = [("b".to_owned(), "wide:x".to_owned())].into();
    let builder = TableSpec::builder(name("families")).partition("id", Type::I64).column("a", Type::I64);
    let mapping = HBaseMapping { columns, ..HBaseMapping::default() };
    with_table(&client, builder.column("b", Type::Text).hbase(mapping), |table| async move {
        let row = Row::new().with("id", 1_i64).with("a", 1_i64).with("b", "y");
        table.put(&row).await.unwrap();
        assert_eq!(table.get(1).await.unwrap(), Some(row));
        table.put(&Row::new().with("id", 1_i64).with("a", 2_i64)).replace().await.unwrap();
        assert_eq!(table.get(1).await.unwrap(), Some(Row::new().with("id", 1_i64).with("a", 2_i64)));
        table.delete(1).await.unwrap();
        assert_eq!(table.get::<Row>(1).await.unwrap(), None);
    })
    .await;
}

async fn writes_of_one_row_in_one_millisecond_keep_their_order_in_a_shared_table(client: Client) {
    let builder = TableSpec::builder(name("instant")).partition("id", Type::I64).column("v", Type::I64);
    let mapping = HBaseMapping { key_encoding: KeyEncoding::Raw, ..HBaseMapping::default() };
    with_table(&client, builder.hbase(mapping), |table| async move {
        let row = |id: i64, v: i64| Row::new().with("id", id).with("v", v);
        for id in 0..100 {
            table.put(&row(id, 1)).await.unwrap();
            table.delete(id).await.unwrap();
            table.put(&row(id, 2)).await.unwrap();
            table.put(&row(id, 3)).replace().await.unwrap();
            assert_eq!(table.get(id).await.unwrap(), Some(row(id, 3)));
            assert!(table.compare_and_put(&row(id, 4)).if_equals("v", &3).await.unwrap().applied);
            assert_eq!(table.get(id).await.unwrap(), Some(row(id, 4)));
        }
    })
    .await;
}

async fn a_table_with_another_salt_is_refused(client: Client) {
    let table_name = name("salts");
    let builder = || TableSpec::builder(table_name.as_str()).partition("id", Type::I64).column("v", Type::I64);
    with_table(&client, builder().salt(Salt::Buckets(4)), |table| async move {
        for other in [builder().build().unwrap(), builder().salt(Salt::Buckets(5)).build().unwrap()] {
            let error = table.client().table(other).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{error}");
        }
    })
    .await;
}

async fn an_idle_connection_is_replaced_when_the_gateway_closed_it(shared: Client) {
    let address = std::env::var("PERISTYLE_HBASE_THRIFT2").unwrap();
    let patient = client(&address, "idle_timeout=10m&pool=1").await;
    let builder = TableSpec::builder(name("idle")).partition("id", Type::I64).column("v", Type::I64);
    with_table(&shared, builder, |table| async move {
        let patient = patient.table((**table.spec()).clone()).await.unwrap();
        let row = Row::new().with("id", 1_i64).with("v", 1_i64);
        patient.put(&row).await.unwrap();
        tokio::time::sleep(Duration::from_secs(61)).await;
        let start = Instant::now();
        patient.put(&row).await.unwrap();
        table.put(&row).await.unwrap();
        assert!(start.elapsed() < PATIENCE);
    })
    .await;
}

/// That an error is one of those that a gateway in trouble may give.
pub(super) fn is_trouble(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Unavailable
            | ErrorKind::Overloaded
            | ErrorKind::ConnectionLost
            | ErrorKind::Timeout(TimeoutPhase::Attempt | TimeoutPhase::Connect | TimeoutPhase::Deadline)
    )
}
