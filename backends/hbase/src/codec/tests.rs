use std::sync::Arc;

use peristyle_core::ErrorKind;
use peristyle_core::model::{HBaseMapping, Key, KeyEncoding, Order, Salt, TableBuilder, TableSpec, Type, Value};
use peristyle_core::request::{Projection, Scan, ScanOrder, ScanRange};
use proptest::prelude::*;

use super::key::decode_row_key;
use super::*;

fn layout(builder: TableBuilder) -> Layout {
    Layout::new(Arc::new(builder.build().unwrap()), &Arc::from("default")).unwrap()
}

fn refused(builder: TableBuilder) -> String {
    let error = Layout::new(Arc::new(builder.build().unwrap()), &Arc::from("iot")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    error.to_string()
}

fn longs(mapping: HBaseMapping) -> TableBuilder {
    TableSpec::builder("t").partition("id", Type::I64).column("title", Type::Text).hbase(mapping)
}

fn raw() -> HBaseMapping {
    HBaseMapping { key_encoding: KeyEncoding::Raw, ..HBaseMapping::default() }
}

/// Computed with zlib: bytes 5 and 6 of the CRC as a long, then the key.
#[test]
fn row_keys_of_existing_tables_are_made_byte_for_byte() {
    let layout = layout(longs(raw()).salt(Salt::MIDDLE_BYTES));
    let vectors: [(i64, [u8; 10]); 3] = [
        (1, [0x25, 0xef, 0, 0, 0, 0, 0, 0, 0, 1]),
        (1_000_000, [0xed, 0xf4, 0, 0, 0, 0, 0, 0x0f, 0x42, 0x40]),
        (-1, [0x44, 0xdf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
    ];
    for (id, row) in vectors {
        let key = Key::new(vec![Value::from(id)]);
        assert_eq!(encode_row_key(&layout, key.values()).unwrap(), row);
        assert_eq!(decode_row_key(&layout, &row, None).unwrap(), key);
    }
    let error = decode_row_key(&layout, &[0x25, 0xee, 0, 0, 0, 0, 0, 0, 0, 1], None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "another salt");
}

#[test]
fn impossible_mappings_are_refused_and_name_the_fault() {
    let columns = |cell: &str| [("title".to_owned(), cell.to_owned())].into();
    let with = |mapping: HBaseMapping| refused(longs(mapping));
    assert!(with(HBaseMapping { namespace: "other".into(), ..HBaseMapping::default() }).contains("connect to other"));
    assert!(with(HBaseMapping { family: "a/b".into(), ..HBaseMapping::default() }).contains("\"a/b\""));
    assert!(with(HBaseMapping { columns: columns(":x"), ..HBaseMapping::default() }).contains("column family"));
    let unknown = [("name".to_owned(), "cf:x".to_owned())].into();
    assert!(with(HBaseMapping { columns: unknown, ..HBaseMapping::default() }).contains("\"name\""));
    let twice = HBaseMapping { columns: columns("cf:b"), ..HBaseMapping::default() };
    assert!(refused(longs(twice).column("b", Type::I64)).contains("two columns"));
    assert!(refused(longs(raw()).clustering("c", Type::I64, Order::Descending)).contains("descending"));
}

#[test]
fn empty_and_too_long_row_keys_are_refused() {
    let layout = layout(TableSpec::builder("t").partition("id", Type::Blob).hbase(raw()));
    let key = |length: usize| encode_row_key(&layout, &[Value::from(vec![1_u8; length])]);
    assert_eq!(key(0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    // 32 767, less the table's name and 16 bytes for the key of a region.
    assert!(key(32_750).is_ok());
    assert_eq!(key(32_751).unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn a_reverse_scan_stops_just_below_its_start() {
    assert_eq!(just_below(b""), b"");
    assert_eq!(just_below(b"a\0"), b"a");
    assert_eq!(just_below(b"b"), b"a\xff\xff\xff\xff\xff\xff\xff\xff\xff");
}

#[test]
fn the_last_bucket_is_scanned_to_its_end() {
    let layout = layout(longs(HBaseMapping::default()).salt(Salt::Buckets(256)));
    let mut scan =
        Scan { range: ScanRange::All, order: ScanOrder::Key, after: None, limit: 1, columns: Projection::default() };
    let spans = scan_spans(&layout, &scan).unwrap();
    assert_eq!(spans.len(), 256);
    assert_eq!(spans[7], Span { start: vec![7], end: Some(vec![8]) });
    assert_eq!(spans[255], Span { start: vec![255], end: None });
    scan.after = Some(Key::new(vec![Value::from(5_i64)]));
    let spans = scan_spans(&layout, &scan).unwrap();
    assert_eq!(spans[7].start, b"\x07\x80\0\0\0\0\0\0\x05\0", "all buckets go on behind one key");
}

proptest! {
    #[test]
    fn nothing_lies_between_a_row_and_what_is_behind_it(row: Vec<u8>, other: Vec<u8>) {
        let mut forward = Span { start: Vec::new(), end: None };
        forward.behind(&row, false);
        prop_assert_eq!(other >= forward.start, other > row);
        let mut reverse = Span { start: Vec::new(), end: None };
        reverse.behind(&row, true);
        prop_assert_eq!(reverse.end.is_some_and(|end| other < end), other < row);
        prop_assert!(row.is_empty() || just_below(&row) < row);
    }

    #[test]
    fn row_keys_of_any_kind_never_panic(row: Vec<u8>, original: Option<Vec<u8>>) {
        let builder = TableSpec::builder("t").partition("a", Type::Decimal).clustering("b", Type::Text, Order::Descending);
        let _ = decode_row_key(&layout(builder.salt(Salt::Buckets(3))), &row, original.as_deref());
    }
}
