//! Random values for property tests, with the values where codecs and orders break drawn often.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use num_bigint::BigInt;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;

use crate::model::{Date, Decimal, Time, Timestamp, Type, Value, Varint};

/// Any value of this type that a server would take.
///
/// ```
/// use peristyle_core::model::Type;
/// use peristyle_core::testkit::arbitrary::any_value;
/// use proptest::prelude::*;
///
/// proptest!(|(value in any_value(Type::Text))| {
///     prop_assert_eq!(value.ty(), Type::Text);
/// });
/// ```
pub fn any_value(ty: Type) -> BoxedStrategy<Value> {
    match ty {
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::I8 => any::<i8>().prop_map(Value::I8).boxed(),
        Type::I16 => edged(vec![0, 1, -1, i16::MIN, i16::MAX]).prop_map(Value::I16).boxed(),
        Type::I32 => any_i32().prop_map(Value::I32).boxed(),
        Type::I64 => any_i64().prop_map(Value::I64).boxed(),
        Type::F32 => any_f32().prop_map(Value::F32).boxed(),
        Type::F64 => any_f64().prop_map(Value::F64).boxed(),
        Type::Text => any_text().prop_map(Value::Text).boxed(),
        Type::Blob => any_blob().prop_map(Value::Blob).boxed(),
        Type::Timestamp => any_i64().prop_map(|millis| Value::Timestamp(Timestamp(millis))).boxed(),
        Type::Date => any_i32().prop_map(|days| Value::Date(Date(days))).boxed(),
        Type::Time => any_time().prop_map(Value::Time).boxed(),
        Type::Uuid => any_uuid().prop_map(Value::Uuid).boxed(),
        Type::TimeUuid => any_uuid().prop_map(|uuid| Value::TimeUuid(with_version(uuid, 1))).boxed(),
        Type::Inet => any_inet().prop_map(Value::Inet).boxed(),
        Type::Decimal => any_decimal().prop_map(Value::from).boxed(),
        Type::Varint => any_bigint().prop_map(|number| Value::Varint(Varint(number))).boxed(),
        Type::Counter => any_i64().prop_map(Value::Counter).boxed(),
    }
}

/// A type that a key column may have: any but [`Type::Counter`].
pub fn any_key_type() -> impl Strategy<Value = Type> {
    select(Type::ALL.into_iter().filter(|ty| *ty != Type::Counter).collect::<Vec<_>>())
}

fn edged<T: Arbitrary + Clone + 'static>(edges: Vec<T>) -> impl Strategy<Value = T> {
    prop_oneof![select(edges), any::<T>()]
}

fn any_i32() -> impl Strategy<Value = i32> {
    edged(vec![0, 1, -1, 127, 128, 255, 256, i32::MIN, i32::MAX])
}

fn any_i64() -> impl Strategy<Value = i64> {
    edged(vec![0, 1, -1, 127, 128, 255, 256, i64::MIN, i64::MAX])
}

fn any_f32() -> impl Strategy<Value = f32> {
    let nans = [f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001), f32::from_bits(0xffff_ffff)];
    let edges = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::MIN, f32::MAX, f32::MIN_POSITIVE];
    prop_oneof![select([nans.as_slice(), &edges].concat()), any::<u32>().prop_map(f32::from_bits)]
}

fn any_f64() -> impl Strategy<Value = f64> {
    let nans = [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001), f64::from_bits(u64::MAX)];
    let edges = [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::MIN, f64::MAX, f64::MIN_POSITIVE];
    prop_oneof![select([nans.as_slice(), &edges].concat()), any::<u64>().prop_map(f64::from_bits)]
}

fn any_text() -> impl Strategy<Value = String> {
    let edges =
        vec!["", "\0", "\0\0", "a", "a\0", "a\0b", "ab", "b", "~", "\u{7f}", "\u{80}", "é", "\u{ffff}", "\u{1f600}"];
    prop_oneof![
        select(edges).prop_map(str::to_owned),
        vec(select(vec!['\0', '\u{1}', 'a', 'ÿ']), 0..6).prop_map(String::from_iter),
        any::<String>(),
    ]
}

fn any_blob() -> impl Strategy<Value = Bytes> {
    let edges = vec(select(vec![0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff]), 0..5);
    prop_oneof![edges, vec(any::<u8>(), 0..40)].prop_map(Bytes::from)
}

fn any_time() -> impl Strategy<Value = Time> {
    prop_oneof![select(vec![0, 1, Time::MAX.0]), 0..=Time::MAX.0].prop_map(Time)
}

fn any_uuid() -> impl Strategy<Value = Uuid> {
    let few = vec(select(vec![0x00, 0x01, 0x7f, 0x80, 0xff]), 16)
        .prop_map(|bytes| Uuid::from_slice(&bytes).unwrap_or_default());
    let random = prop_oneof![few, any::<u128>().prop_map(Uuid::from_u128)];
    (random, 0_u8..16).prop_map(|(uuid, version)| with_version(uuid, version))
}

fn with_version(uuid: Uuid, version: u8) -> Uuid {
    Uuid::from_u128((uuid.as_u128() & !(0xf << 76)) | (u128::from(version) << 76))
}

fn any_inet() -> impl Strategy<Value = IpAddr> {
    let edges =
        ["0.0.0.0", "::", "::1", "::ffff:10.0.0.1", "10.0.0.1", "a00:1::", "a00::1", "fe80::1", "255.255.255.255"];
    prop_oneof![
        select(edges.iter().filter_map(|text| text.parse().ok()).collect::<Vec<IpAddr>>()),
        any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).into()),
        any::<u128>().prop_map(|bits| Ipv6Addr::from_bits(bits).into()),
    ]
}

/// Small, around the powers of two where the length of two's complement changes, powers of ten, and long.
fn any_bigint() -> impl Strategy<Value = BigInt> {
    prop_oneof![
        (-130_i64..130).prop_map(BigInt::from),
        (0_u32..20, -1_i64..=1, any::<bool>()).prop_map(|(bytes, near, negative)| {
            let power = BigInt::from(2).pow(8 * bytes + 7) + near;
            if negative { -power } else { power }
        }),
        (0_u32..40, -9_i64..=9).prop_map(|(power, digit)| BigInt::from(10).pow(power) * digit),
        vec(any::<u8>(), 0..48).prop_map(|bytes| BigInt::from_signed_bytes_be(&bytes)),
    ]
}

fn any_decimal() -> impl Strategy<Value = Decimal> {
    let scale = prop_oneof![4 => -3_i32..=3, 1 => select(vec![i32::MIN, i32::MIN + 1, i32::MAX]), 1 => -200_i32..200];
    let equal =
        select(vec!["1", "1.0", "1.00", "-1.5", "-1.50", "0", "0.0", "10", "1E1", "100E-1", "1E-100", "-1E100"]);
    prop_oneof![
        3 => (any_bigint(), scale).prop_map(|(unscaled, scale)| Decimal::new(unscaled, scale)),
        1 => equal.prop_map(|text| text.parse().unwrap_or_default()),
    ]
}
