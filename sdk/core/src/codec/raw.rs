//! Keys in the layout of `HBase`'s own `Bytes.toBytes`, for tables that other programs read and write.
//!
//! The values follow each other with nothing between them. Integers, floats and timestamps are big-endian, true is FF, a UUID
//! its 16 bytes, text is UTF-8. So negative numbers come after positive ones, and only the last column may be text or blob.

use bytes::Bytes;

use super::value::{decode_value, encode_value};
use super::{CHECK, check_end, check_key_value, corrupt, encode_columns};
use crate::error::{Error, Result};
use crate::model::{Column, ColumnKind, Order, TableSpec, Type, Value};

/// Checks that the table's primary key can be laid out so.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument), naming the column and the way out, for a descending column, for a
/// text or blob before the last one, and for types that `Bytes.toBytes` has no layout for.
///
/// ```
/// use peristyle_core::codec::raw::check_raw;
/// use peristyle_core::model::{TableSpec, Type};
///
/// let text_first = TableSpec::builder("t").partition("name", Type::Text).partition("id", Type::I64).build()?;
/// assert!(check_raw(&text_first).is_err());
/// # Ok::<(), peristyle_core::Error>(())
/// ```
pub fn check_raw(spec: &TableSpec) -> Result<()> {
    for (place, column) in spec.primary_key().iter().enumerate() {
        if column.kind == ColumnKind::Clustering(Order::Descending) {
            return Err(refused(column, "raw keys have no descending order; declare it ascending"));
        }
        match width(column.ty) {
            Width::None => return Err(no_layout(column)),
            Width::Any if place + 1 < spec.key_len() => {
                let fault = format!("in raw keys a {} can only be the last column; move it", column.ty);
                return Err(refused(column, &fault));
            }
            Width::Any | Width::Bytes(_) => {}
        }
    }
    Ok(())
}

fn no_layout(column: &Column) -> Error {
    refused(column, &format!("raw keys have no layout for {}; choose another type", column.ty))
}

fn refused(column: &Column, fault: &str) -> Error {
    Error::invalid(format!("key column {}: {fault}, or use the key encoding \"ordered\"", column.name))
}

enum Width {
    Bytes(usize),
    Any,
    None,
}

fn width(ty: Type) -> Width {
    match ty {
        Type::Bool | Type::I8 => Width::Bytes(1),
        Type::I16 => Width::Bytes(2),
        Type::I32 | Type::F32 => Width::Bytes(4),
        Type::I64 | Type::F64 | Type::Timestamp => Width::Bytes(8),
        Type::Uuid | Type::TimeUuid => Width::Bytes(16),
        Type::Text | Type::Blob => Width::Any,
        Type::Date | Type::Time | Type::Inet | Type::Decimal | Type::Varint | Type::Counter => Width::None,
    }
}

/// Appends these values; of fewer values than columns, the prefix that all keys with them share. The table must pass
/// [`check_raw`].
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a value that isn't of its column's type or has no layout, and for
/// more values than columns. `out` is then as it was.
///
/// ```
/// use peristyle_core::codec::raw::encode_raw;
/// use peristyle_core::model::{TableSpec, Type, Value};
///
/// let spec = TableSpec::builder("t").partition("live", Type::Bool).partition("id", Type::I16).build()?;
/// let mut key = Vec::new();
/// encode_raw(&[Value::from(true), Value::from(1_i16)], spec.primary_key(), &mut key)?;
/// assert_eq!(key, [0xff, 0x00, 0x01]);
/// # Ok::<(), peristyle_core::Error>(())
/// ```
pub fn encode_raw(values: &[Value], columns: &[Column], out: &mut Vec<u8>) -> Result<()> {
    encode_columns(values, columns, out, component)
}

fn component(column: &Column, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    check_key_value(column, value)?;
    match (width(column.ty), value) {
        (Width::None, _) => return Err(no_layout(column)),
        (_, Value::Bool(value)) => out.push(if *value { 0xff } else { 0x00 }),
        _ => encode_value(value, out),
    }
    Ok(())
}

/// Reads the values of a whole key; the inverse of [`encode_raw`]. The table must pass [`check_raw`].
///
/// # Errors
/// [`Corrupt`](crate::ErrorKind::Corrupt), naming the column, for bytes that no values encode to.
pub fn decode_raw(bytes: &[u8], columns: &[Column]) -> Result<Vec<Value>> {
    let mut rest = bytes;
    let mut values = Vec::with_capacity(columns.len());
    for column in columns {
        let (head, tail) = split(rest, column)?;
        values.push(value(column, head)?);
        rest = tail;
    }
    check_end(rest, bytes).map(|()| values)
}

/// How many bytes of a key are those of the first columns, such as the partition key's.
///
/// # Errors
/// [`Corrupt`](crate::ErrorKind::Corrupt) for a key that is shorter.
pub fn raw_length(bytes: &[u8], columns: &[Column]) -> Result<usize> {
    let rest = columns.iter().try_fold(bytes, |rest, column| split(rest, column).map(|(_, tail)| tail))?;
    Ok(bytes.len() - rest.len())
}

fn split<'a>(bytes: &'a [u8], column: &Column) -> Result<(&'a [u8], &'a [u8])> {
    let length = match width(column.ty) {
        Width::Bytes(width) => width,
        Width::Any => bytes.len(),
        Width::None => return Err(no_layout(column)),
    };
    bytes.split_at_checked(length).ok_or_else(|| {
        let (name, ty, left) = (&column.name, column.ty, bytes.len());
        corrupt(format!("key column {name}: {left} bytes are left for a {ty} of {length}; {CHECK}"))
    })
}

fn value(column: &Column, bytes: &[u8]) -> Result<Value> {
    match (column.ty, bytes) {
        (Type::Bool, [0x00]) => Ok(Value::Bool(false)),
        (Type::Bool, [0xff]) => Ok(Value::Bool(true)),
        (Type::Bool, _) => Err(corrupt(format!("key column {}: a bool is neither 00 nor FF; {CHECK}", column.name))),
        (ty, bytes) => decode_value(ty, Bytes::copy_from_slice(bytes))
            .map_err(|error| corrupt(format!("key column {}: {}; {CHECK}", column.name, error.message()))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::ErrorKind;
    use crate::model::Timestamp;
    use crate::testkit::arbitrary::any_value;

    const FIXED: [Type; 10] = [
        Type::Bool,
        Type::I8,
        Type::I16,
        Type::I32,
        Type::I64,
        Type::F32,
        Type::F64,
        Type::Timestamp,
        Type::Uuid,
        Type::TimeUuid,
    ];
    const UNKNOWN: [Type; 6] = [Type::Date, Type::Time, Type::Inet, Type::Decimal, Type::Varint, Type::Counter];

    fn columns(types: &[Type]) -> Vec<Column> {
        types.iter().map(|ty| Column { name: ty.name().into(), ty: *ty, kind: ColumnKind::Partition }).collect()
    }

    fn encoded(values: &[Value], columns: &[Column]) -> Vec<u8> {
        let mut out = Vec::new();
        encode_raw(values, columns, &mut out).unwrap();
        out
    }

    fn any_types() -> impl Strategy<Value = Vec<Type>> {
        (vec(select(&FIXED[..]), 0..4), select(vec![Type::I64, Type::Text, Type::Blob])).prop_map(
            |(mut types, last)| {
                types.push(last);
                types
            },
        )
    }

    fn any_key() -> impl Strategy<Value = (Vec<Column>, Vec<Value>)> {
        any_types().prop_flat_map(|types| {
            let values: Vec<_> = types.iter().map(|ty| any_value(*ty)).collect();
            (Just(columns(&types)), values)
        })
    }

    #[test]
    fn keys_are_those_of_bytes_to_bytes() {
        let uuid: uuid::Uuid = "00112233-4455-1677-8899-aabbccddeeff".parse().unwrap();
        let vectors: [(Value, &[u8]); 10] = [
            (Value::Bool(true), b"\xff"),
            (Value::Bool(false), b"\0"),
            (Value::I8(-1), b"\xff"),
            (Value::I16(1), b"\0\x01"),
            (Value::I32(-2), b"\xff\xff\xff\xfe"),
            (Value::I64(1), b"\0\0\0\0\0\0\0\x01"),
            (Value::F32(1.0), b"\x3f\x80\0\0"),
            (Value::Timestamp(Timestamp(256)), b"\0\0\0\0\0\0\x01\0"),
            (Value::TimeUuid(uuid), b"\0\x11\x22\x33\x44\x55\x16\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff"),
            (Value::from("é"), b"\xc3\xa9"),
        ];
        for (value, bytes) in vectors {
            assert_eq!(encoded(std::slice::from_ref(&value), &columns(&[value.ty()])), bytes, "{value}");
        }
    }

    #[test]
    fn keys_that_have_no_such_layout_are_refused_with_a_way_out() {
        let builder = || TableSpec::builder("t").partition("p", Type::I64);
        let wrong = [
            (builder().clustering("c", Type::I64, Order::Descending), "declare it ascending"),
            (builder().partition("c", Type::Text).partition("d", Type::I8), "move it"),
            (builder().partition("c", Type::Blob).clustering("d", Type::Blob, Order::Ascending), "move it"),
            (builder().partition("c", Type::Inet), "choose another type"),
        ];
        for (builder, advice) in wrong {
            let error = check_raw(&builder.build().unwrap()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            let message = error.to_string();
            assert!(message.contains("key column c") && message.contains(advice), "{message}");
        }
        assert!(check_raw(&builder().clustering("c", Type::Text, Order::Ascending).build().unwrap()).is_ok());
        for ty in FIXED {
            assert!(check_raw(&TableSpec::builder("t").partition("p", ty).build().unwrap()).is_ok(), "{ty}");
        }
    }

    #[test]
    fn bytes_that_are_no_key_are_corrupt() {
        let wrong: [(&[Type], &[u8]); 5] = [
            (&[Type::Bool], b"\x01"),
            (&[Type::I64], b"\0"),
            (&[Type::I8], b"\0\0"),
            (&[Type::Text], b"\xff"),
            (&[Type::TimeUuid], &[0; 16]),
        ];
        for (types, bytes) in wrong {
            let error = decode_raw(bytes, &columns(types)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(error.to_string().contains("check that"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn keys_come_back((columns, values) in any_key()) {
            let bytes = encoded(&values, &columns);
            let decoded = decode_raw(&bytes, &columns).unwrap();
            prop_assert_eq!(encoded(&decoded, &columns), bytes);
            prop_assert_eq!(format!("{decoded:?}"), format!("{values:?}"));
        }

        #[test]
        fn the_length_of_the_first_columns_is_that_of_their_bytes((columns, values) in any_key(), cut in 0_usize..5) {
            let cut = cut.min(columns.len());
            let (whole, part) = (encoded(&values, &columns), encoded(&values[..cut], &columns));
            prop_assert!(whole.starts_with(&part));
            prop_assert_eq!(raw_length(&whole, &columns[..cut]).unwrap(), part.len());
        }

        #[test]
        fn values_without_a_layout_are_refused(value in select(&UNKNOWN[..]).prop_flat_map(any_value)) {
            let mut out = vec![7];
            let values = [Value::Bool(true), value];
            let error = encode_raw(&values, &columns(&[Type::Bool, values[1].ty()]), &mut out).unwrap_err();
            prop_assert_eq!((error.kind(), out), (ErrorKind::InvalidArgument, vec![7]));
        }

        #[test]
        fn bytes_of_any_kind_never_panic(types in vec(select(&Type::ALL[..]), 0..4), bytes in vec(any::<u8>(), 0..40)) {
            if let Ok(values) = decode_raw(&bytes, &columns(&types)) {
                prop_assert_eq!(values.len(), types.len());
            }
        }
    }
}
