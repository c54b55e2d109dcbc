use std::cmp::Ordering;

use num_bigint::BigInt;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::ErrorKind;
use crate::codec::value::encode_value;
use crate::model::{Decimal, Order, Time, Type, Varint};
use crate::testkit::arbitrary::{any_key_type, any_value};

const KINDS: [ColumnKind; 3] =
    [ColumnKind::Partition, ColumnKind::Clustering(Order::Ascending), ColumnKind::Clustering(Order::Descending)];

fn column(ty: Type, kind: ColumnKind) -> Column {
    Column { name: "c".into(), ty, kind }
}

fn key(values: &[Value], columns: &[Column]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key(values, columns, &mut out).unwrap();
    out
}

fn component(value: &Value, kind: ColumnKind) -> Vec<u8> {
    key(std::slice::from_ref(value), &[column(value.ty(), kind)])
}

fn wire(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode_value(value, &mut out);
    out
}

/// The order that the bytes of one column must have, told without them.
fn compare(a: &Value, b: &Value, kind: ColumnKind) -> Ordering {
    match kind {
        ColumnKind::Clustering(Order::Descending) => b.cluster_cmp(a),
        ColumnKind::Partition => a.cluster_cmp(b).then_with(|| match (a, b) {
            (Value::Decimal(a), Value::Decimal(b)) => a.scale.cmp(&b.scale),
            _ => wire(a).cmp(&wire(b)),
        }),
        _ => a.cluster_cmp(b),
    }
}

fn any_column() -> impl Strategy<Value = Column> {
    (any_key_type(), select(&KINDS[..])).prop_map(|(ty, kind)| column(ty, kind))
}

/// Columns, and two keys that share some of their values.
fn columns_and_keys() -> impl Strategy<Value = (Vec<Column>, Vec<Value>, Vec<Value>)> {
    vec(any_column(), 1..5).prop_flat_map(|columns| {
        let keys: Vec<_> = columns
            .iter()
            .map(|column| {
                let fresh = (any_value(column.ty), any_value(column.ty));
                prop_oneof![fresh, any_value(column.ty).prop_map(|value| (value.clone(), value))]
            })
            .collect();
        (Just(columns), keys).prop_map(|(columns, keys)| {
            let (a, b) = keys.into_iter().unzip();
            (columns, a, b)
        })
    })
}

fn few_bytes(length: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(select(vec![0x00, 0x01, 0xfe, 0xff]), 0..length)
}

#[test]
fn known_values_have_known_bytes() {
    let one = Value::from(Decimal::new(10, 1));
    let vectors: [(Value, &[u8]); 16] = [
        (Value::Bool(true), b"\x01"),
        (Value::I8(-1), b"\x7f"),
        (Value::I32(7), b"\x80\0\0\x07"),
        (Value::I64(i64::MIN), b"\0\0\0\0\0\0\0\0"),
        (Value::F32(f32::NEG_INFINITY), b"\0\x7f\xff\xff"),
        (Value::F64(-0.0), b"\x7f\xff\xff\xff\xff\xff\xff\xff"),
        (Value::F64(0.0), b"\x80\0\0\0\0\0\0\0"),
        (Value::F32(-f32::NAN), b"\xff\xc0\0\0"),
        (Value::from(""), b"\0\0"),
        (Value::from("a\0b"), b"a\0\xffb\0\0"),
        (Value::Inet([10, 0, 0, 1].into()), b"\x0a\0\xff\0\xff\x01\0\0"),
        (Value::Varint(Varint::from(0)), b"\x80\0\0\x01\0"),
        (Value::Varint(Varint::from(-129)), b"\x7f\xff\xff\xfe\xff\x7f"),
        (Value::from(Decimal::new(0, 5)), b"\x01"),
        (one.clone(), b"\x02\x80\0\0\0\0\0\0\0\x02\0"),
        (Value::from(Decimal::new(-150, 2)), b"\0\x7f\xff\xff\xff\xff\xff\xff\xff\xfd\xf9\xff"),
    ];
    for (value, bytes) in vectors {
        assert_eq!(component(&value, KINDS[1]), bytes, "{value}");
        let complement: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        assert_eq!(component(&value, KINDS[2]), complement, "{value} descending");
    }
    assert_eq!(component(&one, KINDS[0]), b"\x02\x80\0\0\0\0\0\0\0\x02\0\x80\0\0\x01");
}

#[test]
fn uuids_put_version_and_time_first() {
    let uuid = "01234567-89ab-1cde-8011-223344556677".parse().unwrap();
    let bytes = component(&Value::Uuid(uuid), KINDS[1]);
    assert_eq!(bytes, b"\x01\x1c\xde\x89\xab\x01\x23\x45\x67\x80\x11\x22\x33\x44\x55\x66\x77");
    let bytes = component(&Value::TimeUuid(uuid), KINDS[1]);
    assert_eq!(bytes, b"\x0c\xde\x89\xab\x01\x23\x45\x67\x00\x91\xa2\xb3\xc4\xd5\xe6\xf7");
    let other = "01234567-89ab-4cde-8011-223344556677".parse().unwrap();
    let bytes = component(&Value::Uuid(other), KINDS[1]);
    assert_eq!(bytes, b"\x04\x01\x23\x45\x67\x89\xab\x4c\xde\x80\x11\x22\x33\x44\x55\x66\x77");
}

#[test]
fn prefixes_end_where_the_next_key_begins() {
    let vectors: [(&[u8], Option<&[u8]>); 7] = [
        (b"", None),
        (b"\x61", Some(b"\x62")),
        (b"\x61\xff", Some(b"\x62")),
        (b"\x03\xaa\xff", Some(b"\x03\xab")),
        (b"\x00", Some(b"\x01")),
        (b"\xff", None),
        (b"\xff\xff", None),
    ];
    for (prefix, end) in vectors {
        assert_eq!(prefix_end(prefix).as_deref(), end, "{prefix:?}");
    }
}

#[test]
fn values_that_no_key_has_are_refused_and_leave_the_buffer_as_it_was() {
    let wrong = [
        (Type::Text, Value::from(1_i32)),
        (Type::Counter, Value::Counter(1)),
        (Type::Time, Value::Time(Time(-1))),
        (Type::TimeUuid, Value::TimeUuid(::uuid::Uuid::nil())),
    ];
    for (ty, value) in wrong {
        let columns = [column(Type::Bool, KINDS[0]), column(ty, KINDS[1])];
        let mut out = vec![7];
        let error = encode_key(&[Value::Bool(true), value], &columns, &mut out).unwrap_err();
        assert_eq!((error.kind(), out), (ErrorKind::InvalidArgument, vec![7]), "{error}");
    }
    let many = encode_key(&[Value::Bool(true)], &[], &mut Vec::new()).unwrap_err();
    assert_eq!(many.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn the_longest_numbers_come_back_and_longer_ones_are_refused() {
    let longest: BigInt = (BigInt::from(1) << (MAX_NUMBER_BITS - 1)) - 1;
    for value in [Value::Varint(Varint(longest.clone())), Value::from(Decimal::new(-longest.clone(), i32::MIN))] {
        for kind in KINDS {
            let columns = [column(value.ty(), kind)];
            assert_eq!(decode_key(&component(&value, kind), &columns).unwrap(), std::slice::from_ref(&value));
        }
    }
    let round = Value::from(Decimal::new(BigInt::from(10).pow(157_000), 0));
    assert_eq!(decode_key(&component(&round, KINDS[0]), &[column(Type::Decimal, KINDS[0])]).unwrap(), [round]);
    let longer: BigInt = longest * 2 + 1;
    for value in [Value::Varint(Varint(longer.clone())), Value::from(Decimal::new(longer, 0))] {
        let error =
            encode_key(std::slice::from_ref(&value), &[column(value.ty(), KINDS[0])], &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    }
}

#[test]
fn a_fault_names_the_column_and_what_to_check() {
    let columns = [column(Type::I8, KINDS[0]), Column { name: "date".into(), ..column(Type::Date, KINDS[2]) }];
    let error = decode_key(&[1, 2, 3], &columns).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let message = error.to_string();
    assert!(message.starts_with("key column date, from byte 1 of 3: it ends too early; check"), "{message}");
    let behind = decode_key(&[1, 2], &columns[..1]).unwrap_err().to_string();
    assert!(behind.starts_with("1 of 2 key bytes lie behind"), "{behind}");
}

#[test]
fn forms_that_no_value_has_are_corrupt() {
    let forms: [(Type, ColumnKind, &[u8]); 16] = [
        (Type::Decimal, KINDS[0], b"\x02\x80\0\0\0\0\0\0\0\x02\0\xff\xff\xff\xff"),
        (Type::Bool, KINDS[1], b"\x02"),
        (Type::F32, KINDS[1], b"\xff\xc0\0\x01"),
        (Type::F64, KINDS[1], b"\0\0\0\0\0\0\0\0"),
        (Type::F32, KINDS[0], b"\xff\xc0\0\0\0\0\0\0"),
        (Type::Text, KINDS[1], b"a\0\x01"),
        (Type::Text, KINDS[1], b"\xff\0\0"),
        (Type::Time, KINDS[1], b"\xff\xff\xff\xff\xff\xff\xff\xff"),
        (Type::Inet, KINDS[1], b"abc\0\0"),
        (Type::TimeUuid, KINDS[1], &[0x10; 16]),
        (Type::Uuid, KINDS[1], &[0x04; 17]),
        (Type::Varint, KINDS[1], b"\x80\0\0\x02\0\x01"),
        (Type::Varint, KINDS[1], b"\x7f\xff\xff\xff\x01"),
        (Type::Decimal, KINDS[1], b"\x02\x80\0\0\0\0\0\0\0\0"),
        (Type::Decimal, KINDS[1], b"\x02\xff\xff\xff\xff\xff\xff\xff\xff\x02\0"),
        (Type::Decimal, KINDS[1], b"\x02\x80\0\0\0\0\0\0\0\x0c\0"),
    ];
    for (ty, kind, bytes) in forms {
        let error = decode_key(bytes, &[column(ty, kind)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{ty} {bytes:?}");
    }
}

#[test]
fn one_row_but_two_partitions_have_decimals_and_nans_of_several_forms() {
    let pairs = [
        (Value::from(Decimal::new(10, 1)), Value::from(Decimal::new(100, 2))),
        (Value::from(Decimal::new(0, 0)), Value::from(Decimal::new(0, 3))),
        (Value::F64(f64::NAN), Value::F64(-f64::NAN)),
        (Value::F32(f32::NAN), Value::F32(f32::from_bits(0x7f80_0001))),
    ];
    for (a, b) in pairs {
        assert_eq!(component(&a, KINDS[1]), component(&b, KINDS[1]), "{a} {b}");
        assert_eq!(component(&a, KINDS[2]), component(&b, KINDS[2]), "{a} {b}");
        assert_ne!(component(&a, KINDS[0]), component(&b, KINDS[0]), "{a} {b}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn the_order_of_bytes_is_the_order_of_tuples((columns, a, b) in columns_and_keys()) {
        let tuples = columns.iter().zip(a.iter().zip(&b));
        let expected = tuples.map(|(column, (a, b))| compare(a, b, column.kind)).find(|order| order.is_ne());
        let (key_a, key_b) = (key(&a, &columns), key(&b, &columns));
        prop_assert_eq!(key_a.cmp(&key_b), expected.unwrap_or(Ordering::Equal));
        prop_assert!(key_a == key_b || !key_a.starts_with(&key_b), "one is a prefix of the other");
    }

    #[test]
    fn the_order_of_bytes_is_the_order_of_values(
        (kind, (a, b)) in (select(&KINDS[..]), any_key_type().prop_flat_map(|ty| (any_value(ty), any_value(ty)))),
    ) {
        prop_assert_eq!(component(&a, kind).cmp(&component(&b, kind)), compare(&a, &b, kind));
    }

    #[test]
    fn keys_come_back_but_for_declared_losses((columns, values, _) in columns_and_keys()) {
        let bytes = key(&values, &columns);
        let decoded = decode_key(&bytes, &columns).unwrap();
        prop_assert_eq!(key(&decoded, &columns), bytes);
        for (column, (value, decoded)) in columns.iter().zip(values.iter().zip(&decoded)) {
            prop_assert_eq!(value.cluster_cmp(decoded), Ordering::Equal);
            prop_assert_eq!(wire(value) != wire(decoded), is_lossy(value, column), "{} {}", value, decoded);
        }
    }

    #[test]
    fn the_first_columns_are_a_prefix((columns, values, _) in columns_and_keys(), cut in 0_usize..5) {
        let cut = cut.min(values.len());
        let (whole, part) = (key(&values, &columns), key(&values[..cut], &columns));
        prop_assert!(whole.starts_with(&part));
        let (decoded, rest) = decode_prefix(&whole, &columns[..cut]).unwrap();
        prop_assert_eq!(key(&decoded, &columns), part.clone());
        prop_assert_eq!([&part[..], rest].concat(), whole);
    }

    #[test]
    fn a_prefix_ends_behind_its_last_key(prefix in few_bytes(5), other in few_bytes(7)) {
        let below = prefix_end(&prefix).is_none_or(|end| other < end);
        prop_assert_eq!(other.starts_with(&prefix), other >= prefix && below);
    }

    #[test]
    fn bytes_of_any_kind_never_panic(
        columns in vec(any_column(), 1..4),
        bytes in vec(prop_oneof![select(vec![0_u8, 1, 2, 0x7f, 0x80, 0xff]), any::<u8>()], 0..40),
    ) {
        if let Ok(values) = decode_key(&bytes, &columns) {
            prop_assert_eq!(key(&values, &columns), bytes);
        }
    }

    #[test]
    fn a_key_with_one_byte_changed_is_refused_or_another((columns, values, _) in columns_and_keys(), at: usize, to: u8) {
        let mut bytes = key(&values, &columns);
        let at = at % bytes.len();
        bytes[at] = to;
        if let Ok(decoded) = decode_key(&bytes, &columns) {
            prop_assert_eq!(key(&decoded, &columns), bytes);
        }
    }
}
