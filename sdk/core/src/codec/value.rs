//! A value's serialised bytes, as CQL sends them (protocol v4, section 6).
//!
//! The embedded engine stores cells so, and where two writes of one cell have the same timestamp, the one with the larger
//! bytes wins on every backend that promises an order at all.

use std::net::IpAddr;

use bytes::Bytes;
use num_bigint::BigInt;
use uuid::Uuid;

use super::corrupt;
use crate::error::Result;
use crate::model::{Date, Decimal, Time, Timestamp, Type, Value, Varint};

/// The day 1970-01-01 on the wire.
const EPOCH_DAY: u32 = 1 << 31;

/// Appends the value's bytes; [`Value::size`] of them.
///
/// ```
/// use peristyle_core::codec::value::encode_value;
/// use peristyle_core::model::{Decimal, Value};
///
/// let mut bytes = Vec::new();
/// encode_value(&Value::from(Decimal::new(10, 1)), &mut bytes);
/// assert_eq!(bytes, [0, 0, 0, 1, 10]);
/// ```
pub fn encode_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(value) => out.push(u8::from(*value)),
        Value::I8(value) => out.extend(value.to_be_bytes()),
        Value::I16(value) => out.extend(value.to_be_bytes()),
        Value::I32(value) => out.extend(value.to_be_bytes()),
        Value::I64(value) | Value::Counter(value) => out.extend(value.to_be_bytes()),
        Value::F32(value) => out.extend(value.to_be_bytes()),
        Value::F64(value) => out.extend(value.to_be_bytes()),
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
        Value::Blob(bytes) => out.extend_from_slice(bytes),
        Value::Timestamp(Timestamp(millis)) => out.extend(millis.to_be_bytes()),
        Value::Date(Date(days)) => out.extend((days.cast_unsigned() ^ EPOCH_DAY).to_be_bytes()),
        Value::Time(Time(nanos)) => out.extend(nanos.to_be_bytes()),
        Value::Uuid(uuid) | Value::TimeUuid(uuid) => out.extend(uuid.as_bytes()),
        Value::Inet(IpAddr::V4(address)) => out.extend(address.octets()),
        Value::Inet(IpAddr::V6(address)) => out.extend(address.octets()),
        Value::Decimal(decimal) => {
            out.extend(decimal.scale.to_be_bytes());
            out.extend(decimal.unscaled.to_signed_bytes_be());
        }
        Value::Varint(varint) => out.extend(varint.to_be_bytes()),
    }
}

/// Reads a value of this type. A blob shares the buffer, everything else is copied.
///
/// As Cassandra does, it takes any byte but 00 as true, and a varint with superfluous leading bytes.
///
/// # Errors
/// [`Corrupt`](crate::ErrorKind::Corrupt), naming type and length, for bytes that can't be such a value. The empty value that
/// CQL allows for most types counts as such for all but text and blob.
pub fn decode_value(ty: Type, bytes: Bytes) -> Result<Value> {
    Ok(match ty {
        Type::Bool => Value::Bool(fixed::<1>(ty, &bytes)? != [0]),
        Type::I8 => Value::I8(i8::from_be_bytes(fixed(ty, &bytes)?)),
        Type::I16 => Value::I16(i16::from_be_bytes(fixed(ty, &bytes)?)),
        Type::I32 => Value::I32(i32::from_be_bytes(fixed(ty, &bytes)?)),
        Type::I64 => Value::I64(i64::from_be_bytes(fixed(ty, &bytes)?)),
        Type::F32 => Value::F32(f32::from_be_bytes(fixed(ty, &bytes)?)),
        Type::F64 => Value::F64(f64::from_be_bytes(fixed(ty, &bytes)?)),
        Type::Text => Value::Text(text(bytes)?),
        Type::Blob => Value::Blob(bytes),
        Type::Timestamp => Value::Timestamp(Timestamp(i64::from_be_bytes(fixed(ty, &bytes)?))),
        Type::Date => Value::Date(Date((u32::from_be_bytes(fixed(ty, &bytes)?) ^ EPOCH_DAY).cast_signed())),
        Type::Time => Value::Time(time(&bytes)?),
        Type::Uuid => Value::Uuid(Uuid::from_bytes(fixed(ty, &bytes)?)),
        Type::TimeUuid => Value::TimeUuid(time_uuid(&bytes)?),
        Type::Inet => Value::Inet(inet(&bytes)?),
        Type::Decimal => Value::from(decimal(&bytes)?),
        Type::Varint if bytes.is_empty() => return Err(corrupt("a varint of 0 bytes; it takes at least 1")),
        Type::Varint => Value::Varint(Varint::from_be_bytes(&bytes)),
        Type::Counter => Value::Counter(i64::from_be_bytes(fixed(ty, &bytes)?)),
    })
}

fn fixed<const N: usize>(ty: Type, bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| corrupt(format!("a {ty} of {} bytes; it takes {N}", bytes.len())))
}

fn text(bytes: Bytes) -> Result<String> {
    let length = bytes.len();
    String::from_utf8(bytes.into()).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        corrupt(format!("a text of {length} bytes that is not UTF-8 from byte {place} on"))
    })
}

fn time(bytes: &[u8]) -> Result<Time> {
    let time = Time(i64::from_be_bytes(fixed(Type::Time, bytes)?));
    if time.is_valid() {
        Ok(time)
    } else {
        Err(corrupt(format!("a time of 8 bytes with {} ns, outside a day", time.0)))
    }
}

fn time_uuid(bytes: &[u8]) -> Result<Uuid> {
    let uuid = Uuid::from_bytes(fixed(Type::TimeUuid, bytes)?);
    match uuid.get_version_num() {
        1 => Ok(uuid),
        version => Err(corrupt(format!("a timeuuid of 16 bytes, {uuid}, of version {version} instead of 1"))),
    }
}

fn inet(bytes: &[u8]) -> Result<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Ok(IpAddr::from(octets));
    }
    let octets: [u8; 16] =
        bytes.try_into().map_err(|_| corrupt(format!("an inet of {} bytes; it takes 4 or 16", bytes.len())))?;
    Ok(IpAddr::from(octets))
}

fn decimal(bytes: &[u8]) -> Result<Decimal> {
    match bytes.split_first_chunk() {
        Some((scale, unscaled)) if !unscaled.is_empty() => {
            Ok(Decimal::new(BigInt::from_signed_bytes_be(unscaled), i32::from_be_bytes(*scale)))
        }
        _ => Err(corrupt(format!("a decimal of {} bytes; it takes at least 5", bytes.len()))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::ErrorKind;
    use crate::testkit::arbitrary::any_value;

    fn encoded(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        encode_value(value, &mut out);
        out
    }

    #[test]
    fn known_values_have_the_bytes_that_cassandra_stores() {
        let uuid = "6ba7b810-9dad-11d1-80b4-00c04fd430c8".parse().unwrap();
        let vectors: [(Value, &[u8]); 20] = [
            (Value::Bool(true), b"\x01"),
            (Value::I8(-1), b"\xff"),
            (Value::I16(-2), b"\xff\xfe"),
            (Value::I32(7), b"\0\0\0\x07"),
            (Value::I64(-42), b"\xff\xff\xff\xff\xff\xff\xff\xd6"),
            (Value::Counter(1), b"\0\0\0\0\0\0\0\x01"),
            (Value::F32(f32::NAN), b"\x7f\xc0\0\0"),
            (Value::F64(-0.0), b"\x80\0\0\0\0\0\0\0"),
            (Value::from("é漢"), b"\xc3\xa9\xe6\xbc\xa2"),
            (Value::from(vec![0, 255]), b"\0\xff"),
            (Value::Timestamp(Timestamp(-1)), b"\xff\xff\xff\xff\xff\xff\xff\xff"),
            (Value::Date(Date(0)), b"\x80\0\0\0"),
            (Value::Date(Date(i32::MIN)), b"\0\0\0\0"),
            (Value::Time(Time::MAX), b"\0\0\x4e\x94\x91\x4e\xff\xff"),
            (Value::TimeUuid(uuid), b"\x6b\xa7\xb8\x10\x9d\xad\x11\xd1\x80\xb4\0\xc0\x4f\xd4\x30\xc8"),
            (Value::Inet([10, 0, 0, 1].into()), b"\x0a\0\0\x01"),
            (Value::from(Decimal::new(100, 2)), b"\0\0\0\x02\x64"),
            (Value::from(Decimal::new(-15, -1)), b"\xff\xff\xff\xff\xf1"),
            (Value::Varint(Varint::from(128)), b"\0\x80"),
            (Value::Varint(Varint::from(-129)), b"\xff\x7f"),
        ];
        for (value, bytes) in vectors {
            assert_eq!(encoded(&value), bytes, "{value}");
        }
    }

    #[test]
    fn bytes_that_are_no_value_are_corrupt_and_the_message_names_type_and_length() {
        let wrong: [(Type, &[u8]); 13] = [
            (Type::Bool, b""),
            (Type::I32, b"\0\0\0"),
            (Type::I64, b"\0\0\0\0\0\0\0\0\0"),
            (Type::F32, b""),
            (Type::Text, b"a\xff"),
            (Type::Date, b"\0"),
            (Type::Time, b"\xff\xff\xff\xff\xff\xff\xff\xff"),
            (Type::Uuid, b"\0"),
            (Type::TimeUuid, &[0x40; 16]),
            (Type::Inet, b"\0\0\0\0\0"),
            (Type::Decimal, b"\0\0\0\0"),
            (Type::Varint, b""),
            (Type::Counter, b"\0"),
        ];
        for (ty, bytes) in wrong {
            let error = decode_value(ty, Bytes::from_static(bytes)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            let message = error.to_string();
            assert!(message.contains(ty.name()) && message.contains(&format!("of {} bytes", bytes.len())), "{message}");
        }
    }

    #[test]
    fn a_blob_shares_the_buffer_it_was_read_from() {
        let buffer = Bytes::from(vec![7; 64]);
        let Value::Blob(blob) = decode_value(Type::Blob, buffer.clone()).unwrap() else { panic!("not a blob") };
        assert_eq!(blob.as_ptr(), buffer.as_ptr());
    }

    #[test]
    fn superfluous_bytes_of_a_varint_and_any_true_are_read() {
        let varint = decode_value(Type::Varint, Bytes::from_static(b"\0\x01")).unwrap();
        assert_eq!(varint, Value::Varint(Varint::from(1)));
        assert_eq!(decode_value(Type::Bool, Bytes::from_static(b"\x02")).unwrap(), Value::Bool(true));
    }

    proptest! {
        #[test]
        fn every_value_comes_back_bit_by_bit(value in select(&Type::ALL[..]).prop_flat_map(any_value)) {
            let bytes = encoded(&value);
            prop_assert_eq!(bytes.len(), value.size());
            let decoded = decode_value(value.ty(), bytes.clone().into()).unwrap();
            prop_assert_eq!(decoded.ty(), value.ty());
            prop_assert_eq!(encoded(&decoded), bytes);
        }

        #[test]
        fn bytes_of_any_kind_never_panic(ty in select(&Type::ALL[..]), bytes in vec(any::<u8>(), 0..20)) {
            if let Ok(value) = decode_value(ty, bytes.into()) {
                prop_assert_eq!(value.ty(), ty);
            }
        }
    }
}
