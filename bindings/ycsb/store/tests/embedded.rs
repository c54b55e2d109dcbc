//! The operations, on the embedded engine.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use peristyle::ErrorKind;
use peristyle::model::StoredRow;
use peristyle_ycsb::{Fields, Record, Settings, Status, Store, Writer};

async fn writer(pairs: &[(&'static str, &'static str)]) -> (Store, Writer) {
    let settings = Settings::new(|name| {
        let given = pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        given.or((name == "peristyle.create").then_some("true"))
    });
    let settings = settings.unwrap();
    let store = Store::open(peristyle::connect("embedded:").await.unwrap(), &settings).await.unwrap();
    (store, Writer::new(&settings))
}

async fn store(pairs: &[(&'static str, &'static str)]) -> Store {
    writer(pairs).await.0
}

fn record(text: &'static str) -> Record {
    (0..10).map(|field| (field, Bytes::from_static(text.as_bytes()))).collect()
}

fn first(store: &Store, row: &StoredRow) -> (usize, String) {
    let (field, value) = store.values(row).next().unwrap();
    (field, String::from_utf8(value.to_vec()).unwrap())
}

#[tokio::test]
async fn what_is_written_is_read_by_field_and_as_a_whole_until_it_is_deleted() {
    let store = store(&[]).await;
    store.write("user1", record("ü\u{0}𝄞")).await.unwrap();
    store.write("user1", vec![(3, Bytes::from_static(b"new"))]).await.unwrap();
    let row = store.read("user1", Fields::default()).await.unwrap().unwrap();
    assert_eq!((store.values(&row).count(), first(&store, &row)), (10, (0, "ü\u{0}𝄞".into())));
    let row = store.read("user1", store.choose([3])).await.unwrap().unwrap();
    assert_eq!((store.values(&row).count(), first(&store, &row)), (1, (3, "new".into())));
    store.delete("user1").await.unwrap();
    assert!(store.read("user1", Fields::default()).await.unwrap().is_none());
}

#[tokio::test]
async fn scans_start_at_the_key_and_go_on_in_key_order_with_buckets_and_without() {
    for buckets in ["0", "7"] {
        let store = store(&[("peristyle.buckets", buckets)]).await;
        let values: Vec<String> = (0..50).map(|number| format!("user{number:02}")).collect();
        let records = values.iter().map(|key| (key.clone(), vec![(0, Bytes::from(key.clone()))])).collect();
        assert!(store.write_all(records).await.unwrap().iter().all(Result::is_ok));
        for (start, count, expected) in [("user10", 5, 10..15), ("user101", 3, 11..14), ("user48", 9, 48..50)] {
            let rows = store.scan(start, count, Fields::default()).await.unwrap();
            let found: Vec<String> = rows.iter().map(|row| first(&store, row).1).collect();
            assert_eq!(found, values[expected], "{start}, {buckets} buckets");
        }
        assert!(store.scans_in_key_order());
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_are_kept_in_blobs_and_refused_by_text_columns() {
    let bytes = || vec![(0, Bytes::from_static(&[0xff, 0, 0x80]))];
    let blobs = store(&[("peristyle.fieldtype", "blob")]).await;
    blobs.write("user1", bytes()).await.unwrap();
    let row = blobs.read("user1", Fields::default()).await.unwrap().unwrap();
    assert_eq!(blobs.values(&row).next(), Some((0, &[0xff, 0, 0x80][..])));
    let error = store(&[]).await.write("user1", bytes()).await.unwrap_err();
    assert_eq!(Status::from(&error), Status::BadRequest);
    assert!(error.to_string().contains("peristyle.fieldtype=blob"), "{error}");
}

#[tokio::test]
async fn a_table_without_the_fields_is_refused_with_the_properties_to_check() {
    let client = store(&[("fieldcount", "2")]).await.client().clone();
    let error = Store::open(client, &Settings::new(|_| None).unwrap()).await.unwrap_err().to_string();
    assert!(error.contains("field2") && error.contains("fieldcount"), "{error}");
}

#[tokio::test]
async fn batched_inserts_are_written_when_the_batch_is_full_or_flushed_and_failures_are_counted() {
    let (store, mut writer) = writer(&[("peristyle.batchsize", "3")]).await;
    let mut statuses = Vec::new();
    for number in 0..4 {
        statuses.push(writer.insert(&store, &format!("user{number}"), record("x")).await);
    }
    assert_eq!(statuses, [Status::BatchedOk, Status::BatchedOk, Status::Ok, Status::BatchedOk]);
    assert!(store.read("user3", Fields::default()).await.unwrap().is_none());
    assert_eq!(writer.flush(&store).await, Status::Ok);
    assert!(store.read("user3", Fields::default()).await.unwrap().is_some());
    store.client().close().await.unwrap();
    for _ in 0..2 {
        assert_eq!(writer.insert(&store, "user5", record("x")).await, Status::BatchedOk);
    }
    assert_eq!(writer.insert(&store, "user6", record("x")).await, Status::ServiceUnavailable);
    assert_eq!((writer.sent(), writer.failed()), (7, 3));
    assert_eq!(writer.take_failure().unwrap().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn writes_that_nobody_waits_for_are_all_there_after_a_flush_the_last_of_a_record_on_top() {
    for batch in ["1", "4"] {
        let asynchronous =
            [("peristyle.async", "true"), ("peristyle.async.inflight", "3"), ("peristyle.batchsize", batch)];
        let (store, mut writer) = writer(&asynchronous).await;
        for number in 0..50 {
            let status = writer.insert(&store, &format!("user{number}"), record("x")).await;
            assert_eq!(status, Status::BatchedOk);
        }
        for text in ["first", "second", "last"] {
            assert_eq!(
                writer.update(&store, "user7", vec![(2, Bytes::from_static(text.as_bytes()))]).await,
                Status::BatchedOk
            );
        }
        assert_eq!(writer.flush(&store).await, Status::Ok);
        assert_eq!((writer.sent(), writer.failed()), (53, 0));
        assert_eq!(store.scan("", 100, Fields::default()).await.unwrap().len(), 50);
        let row = store.read("user7", store.choose([2])).await.unwrap().unwrap();
        assert_eq!(first(&store, &row), (2, "last".into()));
    }
}

#[tokio::test]
async fn writes_that_nobody_waits_for_are_counted_when_they_fail() {
    let (store, mut writer) = writer(&[("peristyle.async", "true"), ("peristyle.async.inflight", "2")]).await;
    writer.insert(&store, "user1", record("x")).await;
    writer.insert(&store, "", record("x")).await;
    assert_eq!(writer.flush(&store).await, Status::BadRequest);
    store.client().close().await.unwrap();
    for _ in 0..5 {
        writer.update(&store, "user1", record("y")).await;
    }
    assert_eq!(writer.flush(&store).await, Status::ServiceUnavailable);
    assert_eq!((writer.sent(), writer.failed()), (7, 6));
}
