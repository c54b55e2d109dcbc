//! Values bound in a buffer that is used again.

use std::cell::RefCell;

use scylla::errors::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::RowWriter;
use scylla_cql_core::serialize::row::SerializedValues;

/// A buffer that grew beyond this for one large row is not kept.
const KEPT_BYTES: usize = 64 << 10;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Values that reach the driver's buffer in one piece. That buffer starts empty, and to grow it value by value costs more than
/// to write a row of usual size twice.
pub(crate) struct InOnePiece<V>(pub(crate) V);

impl<V: SerializeRow> SerializeRow for InOnePiece<V> {
    fn serialize(
        &self,
        context: &RowSerializationContext<'_>,
        writer: &mut RowWriter,
    ) -> Result<(), SerializationError> {
        BUFFER.with_borrow_mut(|buffer| {
            write_counted(&self.0, context, buffer)?;
            let values = SerializedValues::new_from_frame(&mut buffer.as_slice()).map_err(SerializationError::new)?;
            writer.append_serialize_row(&values);
            buffer.clear();
            buffer.shrink_to(KEPT_BYTES);
            Ok(())
        })
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Writes the values as they are in a frame: their number as a `[short]`, then each with its length.
fn write_counted(
    values: &impl SerializeRow,
    context: &RowSerializationContext<'_>,
    buffer: &mut Vec<u8>,
) -> Result<(), SerializationError> {
    const COUNT: usize = size_of::<u16>();
    buffer.clear();
    buffer.resize(COUNT, 0);
    let mut row = RowWriter::new(buffer);
    values.serialize(context, &mut row)?;
    let count = u16::try_from(row.value_count()).map_err(SerializationError::new)?;
    if let Some(place) = buffer.first_chunk_mut::<COUNT>() {
        *place = count.to_be_bytes();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use scylla::frame::response::result::{ColumnSpec, ColumnType, NativeType, TableSpec};

    use super::*;

    type Row<'a> = (i64, &'a [u8], Option<i64>);

    fn bound(row: impl SerializeRow) -> Result<SerializedValues, SerializationError> {
        let columns = [("a", NativeType::BigInt), ("b", NativeType::Blob), ("c", NativeType::BigInt)];
        let columns = columns.map(|(name, native)| {
            ColumnSpec::borrowed(name, ColumnType::Native(native), TableSpec::borrowed("keyspace", "table"))
        });
        SerializedValues::from_serializable(&RowSerializationContext::from_specs(&columns), &row)
    }

    #[test]
    fn values_are_the_same_in_one_piece_and_one_by_one() {
        let large = vec![7; 2 * KEPT_BYTES];
        let rows: [Row<'_>; 4] =
            [(1, b"", None), (-1, &large, Some(2)), (i64::MIN, b"value", None), (0, b"v", Some(0))];
        for row in rows {
            assert_eq!(bound(InOnePiece(row)).unwrap(), bound(row).unwrap());
        }
        assert!(BUFFER.with_borrow(Vec::capacity) <= KEPT_BYTES);
    }

    #[test]
    fn what_a_failed_row_left_is_not_sent_with_the_next() {
        assert!(bound(InOnePiece((1_i64, b"value".as_slice(), "no number"))).is_err());
        let row: Row<'_> = (1, b"next", None);
        assert_eq!(bound(InOnePiece(row)).unwrap(), bound(row).unwrap());
    }
}
