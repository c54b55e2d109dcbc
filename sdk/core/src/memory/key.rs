//! Typed keys in typed order.

use std::cmp::Ordering;

use crate::codec::value::encode_value;
use crate::model::{Column, ColumnKind, Order, Value};

/// One key column's value, ordered as its column is.
#[derive(Debug, Clone)]
pub(super) struct Part {
    value: Value,
    descending: bool,
    /// The serialised bytes of a partition column, whose values are told apart by them: 1.0 and 1.00 are two partitions.
    bytes: Option<Vec<u8>>,
}

impl Part {
    fn new(column: &Column, value: &Value) -> Self {
        let bytes = (column.kind == ColumnKind::Partition).then(|| {
            let mut bytes = Vec::new();
            encode_value(value, &mut bytes);
            bytes
        });
        Self { value: value.clone(), descending: column.kind == ColumnKind::Clustering(Order::Descending), bytes }
    }
}

impl Ord for Part {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.value.cluster_cmp(&other.value);
        let order = if self.descending { order.reverse() } else { order };
        order.then_with(|| self.bytes.cmp(&other.bytes))
    }
}

impl PartialOrd for Part {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Part {}

/// The parts of a key, or of its first columns, which sort before all keys that go on from there.
pub(super) fn parts(columns: &[Column], values: &[Value]) -> Vec<Part> {
    columns.iter().zip(values).map(|(column, value)| Part::new(column, value)).collect()
}
