//! Values to and from the driver's frames, without a form in between.

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;

use peristyle_core::codec::value::decode_value;
use peristyle_core::model::{CellMeta, StoredRow, TableSpec, Type, Value, WriteTime};
use peristyle_core::{Error, ErrorKind, Result};
use scylla::deserialize::FrameSlice;
use scylla::deserialize::row::ColumnIterator;
use scylla::errors::SerializationError;
use scylla::frame::response::result::{ColumnSpec, ColumnType, NativeType};
use scylla::response::query_result::QueryRowsResult;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::{CellOverflowError, CellWriter, RowWriter};

use crate::error::corrupt;
use crate::statement::Slot;

/// The values of a statement, as a closure that binds them in order.
pub(crate) struct Bound<F>(pub(crate) F);

impl<F> SerializeRow for Bound<F>
where
    F: Fn(&mut Binder<'_, '_, '_>) -> Result<(), SerializationError>,
{
    fn serialize(
        &self,
        context: &RowSerializationContext<'_>,
        writer: &mut RowWriter,
    ) -> Result<(), SerializationError> {
        bind(context, writer, &self.0)
    }

    fn is_empty(&self) -> bool {
        false
    }
}

/// Runs a binding, and checks that it bound every marker of the statement.
pub(crate) fn bind(
    context: &RowSerializationContext<'_>,
    writer: &mut RowWriter,
    values: impl FnOnce(&mut Binder<'_, '_, '_>) -> Result<(), SerializationError>,
) -> Result<(), SerializationError> {
    let mut binder = Binder { columns: context.columns().iter(), writer };
    values(&mut binder)?;
    match binder.columns.next() {
        None => Ok(()),
        Some(column) => Err(wrong(format!("no value for {}", column.name()))),
    }
}

/// Binds values to the markers of a statement, one after the other.
pub(crate) struct Binder<'a, 'buffer, 'context> {
    columns: std::slice::Iter<'context, ColumnSpec<'context>>,
    writer: &'a mut RowWriter<'buffer>,
}

impl Binder<'_, '_, '_> {
    pub(crate) fn value(&mut self, value: &Value) -> Result<(), SerializationError> {
        let column = self.column()?;
        if !takes(column.typ(), value.ty()) {
            return Err(wrong(format!("column {} takes no {}", column.name(), value.ty())));
        }
        write(value, self.writer.make_cell_writer()).map_err(SerializationError::new)
    }

    pub(crate) fn values(&mut self, values: &[Value]) -> Result<(), SerializationError> {
        values.iter().try_for_each(|value| self.value(value))
    }

    pub(crate) fn bigint(&mut self, number: i64) -> Result<(), SerializationError> {
        self.bytes(&number.to_be_bytes())
    }

    pub(crate) fn int(&mut self, number: i32) -> Result<(), SerializationError> {
        self.bytes(&number.to_be_bytes())
    }

    /// A tombstone.
    pub(crate) fn null(&mut self) -> Result<(), SerializationError> {
        self.column()?;
        self.writer.make_cell_writer().set_null();
        Ok(())
    }

    /// A list, for `IN ?`.
    pub(crate) fn list<'v>(
        &mut self,
        values: impl Iterator<Item = &'v Value> + Clone,
    ) -> Result<(), SerializationError> {
        self.column()?;
        let length = i32::try_from(values.clone().count()).map_err(SerializationError::new)?;
        let mut list = self.writer.make_cell_writer().into_value_builder();
        list.append_bytes(&length.to_be_bytes());
        for value in values {
            write(value, list.make_sub_writer()).map_err(SerializationError::new)?;
        }
        list.finish().map(drop).map_err(SerializationError::new)
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), SerializationError> {
        self.column()?;
        self.writer.make_cell_writer().set_value(bytes).map(drop).map_err(SerializationError::new)
    }

    fn column(&mut self) -> Result<&ColumnSpec<'_>, SerializationError> {
        self.columns.next().ok_or_else(|| wrong("more values than the statement has markers".to_owned()))
    }
}

/// Writes the bytes that [`encode_value`](peristyle_core::codec::value::encode_value) appends, straight into the frame.
fn write(value: &Value, cell: CellWriter<'_>) -> Result<(), CellOverflowError> {
    match value {
        Value::Bool(value) => cell.set_value(&[u8::from(*value)]),
        Value::I8(value) => cell.set_value(&value.to_be_bytes()),
        Value::I16(value) => cell.set_value(&value.to_be_bytes()),
        Value::I32(value) => cell.set_value(&value.to_be_bytes()),
        Value::I64(value) | Value::Counter(value) => cell.set_value(&value.to_be_bytes()),
        Value::F32(value) => cell.set_value(&value.to_be_bytes()),
        Value::F64(value) => cell.set_value(&value.to_be_bytes()),
        Value::Text(text) => cell.set_value(text.as_bytes()),
        Value::Blob(bytes) => cell.set_value(bytes),
        Value::Timestamp(timestamp) => cell.set_value(&timestamp.0.to_be_bytes()),
        Value::Time(time) => cell.set_value(&time.0.to_be_bytes()),
        Value::Uuid(uuid) | Value::TimeUuid(uuid) => cell.set_value(uuid.as_bytes()),
        Value::Inet(IpAddr::V4(address)) => cell.set_value(&address.octets()),
        Value::Inet(IpAddr::V6(address)) => cell.set_value(&address.octets()),
        other => {
            let mut bytes = Vec::with_capacity(other.size());
            peristyle_core::codec::value::encode_value(other, &mut bytes);
            cell.set_value(&bytes)
        }
    }
    .map(drop)
}

/// Whether a column of the server's type holds values of ours, byte for byte.
pub(crate) fn takes(column: &ColumnType<'_>, ty: Type) -> bool {
    let ColumnType::Native(found) = column else { return false };
    *found == native(ty) || (ty == Type::Text && *found == NativeType::Ascii)
}

fn native(ty: Type) -> NativeType {
    match ty {
        Type::Bool => NativeType::Boolean,
        Type::I8 => NativeType::TinyInt,
        Type::I16 => NativeType::SmallInt,
        Type::I32 => NativeType::Int,
        Type::I64 => NativeType::BigInt,
        Type::F32 => NativeType::Float,
        Type::F64 => NativeType::Double,
        Type::Text => NativeType::Text,
        Type::Blob => NativeType::Blob,
        Type::Timestamp => NativeType::Timestamp,
        Type::Date => NativeType::Date,
        Type::Time => NativeType::Time,
        Type::Uuid => NativeType::Uuid,
        Type::TimeUuid => NativeType::Timeuuid,
        Type::Inet => NativeType::Inet,
        Type::Decimal => NativeType::Decimal,
        Type::Varint => NativeType::Varint,
        Type::Counter => NativeType::Counter,
    }
}

/// The rows of an answer, as they are read.
///
/// The answer's own description of its columns is checked, so a table that was dropped and made anew with other types is a
/// [`SchemaMismatch`](ErrorKind::SchemaMismatch) and never a wrong value.
pub(crate) fn read_rows<'a>(
    answer: &'a QueryRowsResult,
    slots: &'a [Slot],
    spec: &'a TableSpec,
) -> Result<impl Iterator<Item = Result<StoredRow>> + use<'a>> {
    check_columns(answer.column_specs().as_slice(), slots, spec)?;
    let rows = answer.rows::<ColumnIterator<'_, '_>>().map_err(|error| corrupt(&error))?;
    Ok(rows.map(move |row| read_row(row.map_err(|error| corrupt(&error))?, slots, spec)))
}

/// Checks that an answer has the columns that are expected; a write has none to check.
pub(crate) fn check_columns(columns: &[ColumnSpec<'_>], slots: &[Slot], spec: &TableSpec) -> Result<()> {
    if slots.is_empty() {
        return Ok(());
    }
    if columns.len() != slots.len() {
        let message = format!("{} came back with {} columns instead of {}", spec.name(), columns.len(), slots.len());
        return Err(Error::new(ErrorKind::SchemaMismatch, message));
    }
    columns.iter().zip(slots).try_for_each(|(column, slot)| match slot {
        Slot::Value(_, ty) => check_column(column, *ty),
        Slot::WriteTime(_) | Slot::Ttl(_) => Ok(()),
    })
}

/// Checks that the columns a statement writes or compares are of the declared types.
pub(crate) fn check_variables(variables: &[ColumnSpec<'_>], spec: &TableSpec) -> Result<()> {
    variables.iter().try_for_each(|variable| match spec.index_of(variable.name()) {
        Some(index) => spec.columns().get(index).map_or(Ok(()), |column| check_column(variable, column.ty)),
        None => Ok(()),
    })
}

fn check_column(live: &ColumnSpec<'_>, declared: Type) -> Result<()> {
    if takes(live.typ(), declared) {
        return Ok(());
    }
    let live_type = match live.typ() {
        ColumnType::Native(native) => format!("{native:?}").to_lowercase(),
        _ => "no scalar".to_owned(),
    };
    let message = format!(
        "column {} is {live_type} in the live table and {declared} in the declared one: declare it as it is",
        live.name()
    );
    Err(Error::new(ErrorKind::SchemaMismatch, message))
}

fn read_row(row: ColumnIterator<'_, '_>, slots: &[Slot], spec: &TableSpec) -> Result<StoredRow> {
    let width = spec.columns().len();
    let has_meta = slots.iter().any(|slot| !matches!(slot, Slot::Value(..)));
    let mut read = StoredRow { values: Vec::with_capacity(width), meta: Vec::new() };
    read.values.resize_with(width, || None);
    read.meta.resize(if has_meta { width } else { 0 }, CellMeta::default());
    for (cell, slot) in row.zip(slots) {
        let Some(bytes) = cell.map_err(|error| corrupt(&error))?.slice else {
            continue;
        };
        read_cell(*slot, bytes, &mut read)?;
    }
    Ok(read)
}

fn read_cell(slot: Slot, bytes: FrameSlice<'_>, row: &mut StoredRow) -> Result<()> {
    match slot {
        Slot::Value(index, ty) => {
            if let Some(place) = row.values.get_mut(index) {
                *place = read_value(ty, bytes)?;
            }
        }
        Slot::WriteTime(index) => {
            if let Some(meta) = row.meta.get_mut(index) {
                let micros = <[u8; 8]>::try_from(bytes.as_slice()).map(i64::from_be_bytes);
                meta.write_time = micros.ok().and_then(|micros| WriteTime::from_micros(micros).ok());
            }
        }
        Slot::Ttl(index) => {
            if let Some(meta) = row.meta.get_mut(index) {
                let seconds = <[u8; 4]>::try_from(bytes.as_slice()).map(u32::from_be_bytes);
                meta.ttl = seconds.ok().and_then(NonZeroU32::new);
            }
        }
    }
    Ok(())
}

/// A present value. CQL allows an empty value of most types; of those that have no empty value of ours it counts as absent.
pub(crate) fn read_value(ty: Type, bytes: FrameSlice<'_>) -> Result<Option<Value>> {
    if bytes.is_empty() && !matches!(ty, Type::Text | Type::Blob) {
        return Ok(None);
    }
    decode_value(ty, bytes.to_bytes()).map(Some)
}

fn wrong(message: String) -> SerializationError {
    SerializationError::new(WrongValue(message))
}

/// A value that doesn't fit the statement it is bound to.
#[derive(Debug)]
struct WrongValue(String);

impl fmt::Display for WrongValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongValue {}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use peristyle_core::codec::value::encode_value;
    use peristyle_core::testkit::arbitrary::any_value;
    use proptest::prelude::*;
    use proptest::sample::select;
    use scylla::frame::response::result::TableSpec as CqlTable;

    use super::*;

    fn bound(ty: Type, values: &[Value]) -> Result<Vec<u8>, SerializationError> {
        let table = CqlTable::borrowed("ks", "t");
        let column = ColumnSpec::borrowed("c", ColumnType::Native(native(ty)), table);
        let mut buffer = Vec::new();
        let columns = [column];
        let context = RowSerializationContext::from_specs(&columns);
        bind(&context, &mut RowWriter::new(&mut buffer), |binder| binder.values(values))?;
        Ok(buffer)
    }

    proptest! {
        #[test]
        fn every_value_goes_into_the_frame_as_its_bytes_and_comes_back(
            value in select(&Type::ALL[..]).prop_flat_map(any_value),
        ) {
            let mut bytes = Vec::new();
            encode_value(&value, &mut bytes);
            let frame = bound(value.ty(), std::slice::from_ref(&value)).unwrap();
            let (length, content) = frame.split_at(4);
            prop_assert_eq!(length, i32::try_from(bytes.len()).unwrap().to_be_bytes());
            prop_assert_eq!(content, &bytes);

            let cell = Bytes::from(bytes.clone());
            let read = read_value(value.ty(), FrameSlice::new(&cell)).unwrap().unwrap();
            let mut again = Vec::new();
            encode_value(&read, &mut again);
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn a_value_of_another_type_or_a_wrong_number_of_them_is_refused() {
        let text = |values: &[Value]| bound(Type::Text, values).unwrap_err().to_string();
        assert!(text(&[Value::from(1_i64)]).contains("takes no i64"), "{}", text(&[Value::from(1_i64)]));
        assert!(text(&[]).contains("no value for c"));
        assert!(text(&[Value::from("a"), Value::from("b")]).contains("more values"));
    }

    #[test]
    fn an_empty_cell_is_absent_unless_its_type_has_an_empty_value() {
        let empty = |ty| read_value(ty, FrameSlice::new_empty()).unwrap();
        assert_eq!(empty(Type::I32), None);
        assert_eq!(empty(Type::Decimal), None);
        assert_eq!(empty(Type::Text), Some(Value::from("")));
        assert_eq!(empty(Type::Blob), Some(Value::Blob(Bytes::new())));
    }
}
