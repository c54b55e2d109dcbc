//! Where a query goes on: the rows behind a key, as ranges that CQL can name.
//!
//! CQL compares one clustering column at a time, so "behind (a, b, c)" is asked in steps: the same a and b and beyond c, then
//! the same a and beyond b, then beyond a. "Beyond" follows each column's own order, so mixed orders need nothing more.

use std::cmp::Ordering;
use std::ops::Bound;

use peristyle_core::model::{Column, ColumnKind, Order, TableSpec, Value};
use peristyle_core::{Error, Result};

use crate::statement::{Edge, Slice};

/// A contiguous part of a partition: rows that equal `equal` in the first clustering columns and lie within the bounds in
/// the next one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Segment<'a> {
    pub(crate) equal: &'a [Value],
    pub(crate) lower: Bound<&'a Value>,
    pub(crate) upper: Bound<&'a Value>,
}

impl<'a> Segment<'a> {
    pub(crate) const ALL: Self = Self { equal: &[], lower: Bound::Unbounded, upper: Bound::Unbounded };

    pub(crate) fn slice(&self, reverse: bool) -> Slice {
        Slice { equal: self.equal.len(), lower: edge(self.lower), upper: edge(self.upper), reverse }
    }

    /// The values of its bounds, in the order in which they are bound.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = &'a Value> {
        [self.lower, self.upper].into_iter().filter_map(|bound| match bound {
            Bound::Included(value) | Bound::Excluded(value) => Some(value),
            Bound::Unbounded => None,
        })
    }

    /// The parts of it that lie behind the row with these clustering values, in the order of the query.
    pub(crate) fn behind(&self, after: &'a [Value], spec: &TableSpec, reverse: bool) -> Result<Vec<Self>> {
        let columns = spec.clustering_key();
        let fixed = self.equal.len();
        if after.len() != columns.len() || !same(self.equal, after) {
            let message =
                "the row to go on behind is not in the range that is read: give the last row of the page before";
            return Err(Error::invalid(message));
        }
        let (Some(column), Some(value)) = (columns.get(fixed), after.get(fixed)) else {
            // All columns are fixed: that one row was seen.
            return Ok(Vec::new());
        };
        match self.position(value, rising(column, reverse)) {
            Ordering::Less => return Ok(vec![self.clone()]),
            Ordering::Greater => return Ok(Vec::new()),
            Ordering::Equal => {}
        }
        let mut segments = Vec::with_capacity(columns.len() - fixed);
        for (place, (column, value)) in columns.iter().zip(after).enumerate().skip(fixed).rev() {
            let whole = if place == fixed { self } else { &Self::ALL };
            let equal = after.get(..place).unwrap_or_default();
            segments.push(if rising(column, reverse) {
                Self { equal, lower: Bound::Excluded(value), upper: whole.upper }
            } else {
                Self { equal, lower: whole.lower, upper: Bound::Excluded(value) }
            });
        }
        Ok(segments)
    }

    /// Where a value lies: before the range, within it, or behind it, in the direction of the query.
    fn position(&self, value: &Value, rising: bool) -> Ordering {
        let below = match self.lower {
            Bound::Included(lower) => value.cluster_cmp(lower) == Ordering::Less,
            Bound::Excluded(lower) => value.cluster_cmp(lower) != Ordering::Greater,
            Bound::Unbounded => false,
        };
        let above = match self.upper {
            Bound::Included(upper) => value.cluster_cmp(upper) == Ordering::Greater,
            Bound::Excluded(upper) => value.cluster_cmp(upper) != Ordering::Less,
            Bound::Unbounded => false,
        };
        match (below, above) {
            (false, false) => Ordering::Equal,
            // An empty range has nothing behind anything.
            (true, true) => Ordering::Greater,
            (below, _) => {
                if below == rising {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
        }
    }
}

/// Whether the values of a column rise in the direction of the query.
fn rising(column: &Column, reverse: bool) -> bool {
    (column.kind != ColumnKind::Clustering(Order::Descending)) != reverse
}

fn same(prefix: &[Value], values: &[Value]) -> bool {
    prefix.len() <= values.len() && prefix.iter().zip(values).all(|(a, b)| a.cluster_cmp(b) == Ordering::Equal)
}

fn edge(bound: Bound<&Value>) -> Edge {
    match bound {
        Bound::Included(_) => Edge::Included,
        Bound::Excluded(_) => Edge::Excluded,
        Bound::Unbounded => Edge::Open,
    }
}

#[cfg(test)]
mod tests;
