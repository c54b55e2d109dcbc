//! Ranges of ordered keys.

use std::ops::Bound;

use super::ordered::{encode_key, prefix_end};
use crate::error::{Error, Result};
use crate::model::{Column, ColumnKind, Order, Value};

/// A range of keys: from an included start to an excluded end, or to the end of the table. An empty one has both at the same
/// key, and never the start behind the end.
pub type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The keys of the rows of one partition that equal `prefix` in the first clustering columns, and lie within `lower` and
/// `upper` in the next one. The bounds are by value, whatever the column's order; columns behind it are free.
///
/// `columns` are those of the full primary key.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a partition key that isn't whole, for more values than columns,
/// for bounds where no column is left, and as [`encode_key`].
///
/// ```
/// use std::ops::Bound;
/// use peristyle_core::codec::range::clustering_range;
/// use peristyle_core::model::{Order, TableSpec, Type, Value};
///
/// let spec = TableSpec::builder("t")
///     .partition("id", Type::I8)
///     .clustering("level", Type::I8, Order::Descending)
///     .build()?;
/// let partition = [Value::from(0_i8)];
/// let level = Value::from(1_i8);
/// let above = clustering_range(spec.primary_key(), &partition, &[], Bound::Excluded(&level), Bound::Unbounded)?;
/// assert_eq!(above, (Bound::Included(vec![0x80]), Bound::Excluded(vec![0x80, 0x7e])));
/// # Ok::<(), peristyle_core::Error>(())
/// ```
pub fn clustering_range(
    columns: &[Column],
    partition: &[Value],
    prefix: &[Value],
    lower: Bound<&Value>,
    upper: Bound<&Value>,
) -> Result<KeyRange> {
    let (keys, clustering) = columns.split_at(columns.partition_point(|column| column.kind == ColumnKind::Partition));
    if partition.len() != keys.len() {
        return Err(Error::invalid(format!("{} of {} values of the partition key", partition.len(), keys.len())));
    }
    let mut base = Vec::new();
    encode_key(partition, keys, &mut base)?;
    encode_key(prefix, clustering, &mut base)?;
    let Some(column) = clustering.get(prefix.len()) else {
        return unbounded(base, lower, upper);
    };
    let edge = |value: &Value| {
        let mut edge = base.clone();
        encode_key(std::slice::from_ref(value), std::slice::from_ref(column), &mut edge).map(|()| edge)
    };
    let (first, last) =
        if column.kind == ColumnKind::Clustering(Order::Descending) { (upper, lower) } else { (lower, upper) };
    let start = match first {
        Bound::Unbounded => Some(base.clone()),
        Bound::Included(value) => Some(edge(value)?),
        Bound::Excluded(value) => prefix_end(&edge(value)?),
    };
    let end = match last {
        Bound::Unbounded => prefix_end(&base),
        Bound::Included(value) => prefix_end(&edge(value)?),
        Bound::Excluded(value) => Some(edge(value)?),
    };
    Ok(match (start, end) {
        (Some(start), None) => (Bound::Included(start), Bound::Unbounded),
        (Some(start), Some(end)) if start < end => (Bound::Included(start), Bound::Excluded(end)),
        _ => (Bound::Included(base.clone()), Bound::Excluded(base)),
    })
}

fn unbounded(base: Vec<u8>, lower: Bound<&Value>, upper: Bound<&Value>) -> Result<KeyRange> {
    if (lower, upper) != (Bound::Unbounded, Bound::Unbounded) {
        return Err(Error::invalid(
            "bounds where every clustering column equals a value already; leave out the bounds",
        ));
    }
    let end = prefix_end(&base).map_or(Bound::Unbounded, Bound::Excluded);
    Ok((Bound::Included(base), end))
}

/// The same range behind a prefix, such as a salt: an open end becomes the end of the prefix.
///
/// ```
/// use std::ops::Bound;
/// use peristyle_core::codec::range::behind;
///
/// let all = (Bound::Included(vec![]), Bound::Unbounded);
/// assert_eq!(behind(&[7], &all), (Bound::Included(vec![7]), Bound::Excluded(vec![8])));
/// ```
pub fn behind(prefix: &[u8], (start, end): &KeyRange) -> KeyRange {
    let joined = |key: &Vec<u8>| [prefix, key].concat();
    let start = match start.as_ref() {
        Bound::Unbounded => Bound::Included(prefix.to_vec()),
        bound => bound.map(joined),
    };
    let end = match end.as_ref() {
        Bound::Unbounded => prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded),
        bound => bound.map(joined),
    };
    (start, end)
}

/// Whether no key can lie in the range, so that nothing needs to be asked: `HBase` takes equal bounds as one row.
pub fn is_empty((start, end): &KeyRange) -> bool {
    match (start, end) {
        (Bound::Included(start), Bound::Excluded(end)) => start >= end,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::ops::RangeBounds;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    use super::*;
    use crate::ErrorKind;
    use crate::model::{TableSpec, Type};
    use crate::testkit::arbitrary::{any_key_type, any_value};

    fn spec() -> TableSpec {
        let builder = TableSpec::builder("t").partition("p", Type::I8);
        let builder = builder.clustering("a", Type::I8, Order::Ascending).clustering("b", Type::I8, Order::Descending);
        builder.build().unwrap()
    }

    fn range(prefix: &[i8], lower: Bound<i8>, upper: Bound<i8>) -> Result<KeyRange> {
        let prefix: Vec<Value> = prefix.iter().copied().map(Value::from).collect();
        let (lower, upper) = (lower.map(Value::from), upper.map(Value::from));
        clustering_range(spec().primary_key(), &[Value::I8(127)], &prefix, lower.as_ref(), upper.as_ref())
    }

    #[test]
    fn the_last_keys_of_all_have_no_end() {
        let open = (Bound::Included(vec![0xff, 0xff]), Bound::Unbounded);
        assert_eq!(range(&[127], Bound::Unbounded, Bound::Unbounded).unwrap(), open);
        assert_eq!(range(&[], Bound::Included(127), Bound::Unbounded).unwrap(), open);
        let one = (Bound::Included(vec![0xff, 0xff, 0xff]), Bound::Unbounded);
        assert_eq!(range(&[127, -128], Bound::Unbounded, Bound::Unbounded).unwrap(), one);
    }

    #[test]
    fn an_impossible_range_is_empty_and_not_inverted() {
        for (lower, upper) in [
            (Bound::Excluded(127), Bound::Unbounded),
            (Bound::Included(3), Bound::Included(2)),
            (Bound::Excluded(3), Bound::Excluded(3)),
            (Bound::Excluded(3), Bound::Included(3)),
        ] {
            let range = range(&[], lower, upper).unwrap();
            assert!(is_empty(&range), "{lower:?} {upper:?}");
            assert!(is_empty(&behind(&[7], &range)));
            // It would panic if the start were behind the end.
            assert_eq!(std::collections::BTreeSet::from([vec![0xff_u8]]).range(range).count(), 0);
        }
    }

    #[test]
    fn a_salted_range_ends_with_its_salt() {
        let open = (Bound::Included(vec![0xff]), Bound::Unbounded);
        assert_eq!(behind(&[7], &open), (Bound::Included(vec![7, 0xff]), Bound::Excluded(vec![8])));
        assert_eq!(behind(&[255], &open), (Bound::Included(vec![255, 0xff]), Bound::Unbounded));
        let closed = (Bound::Included(vec![1]), Bound::Excluded(vec![2]));
        assert_eq!(behind(&[7], &closed), (Bound::Included(vec![7, 1]), Bound::Excluded(vec![7, 2])));
    }

    #[test]
    fn half_a_partition_key_and_bounds_of_no_column_are_refused() {
        let errors = [
            range(&[1, 2], Bound::Included(3), Bound::Unbounded).unwrap_err(),
            range(&[1, 2, 3], Bound::Unbounded, Bound::Unbounded).unwrap_err(),
            clustering_range(spec().primary_key(), &[], &[], Bound::Unbounded, Bound::Unbounded).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        }
    }

    /// A table and rows that share many values, drawn from a few for each column.
    fn any_rows() -> impl Strategy<Value = (Vec<Column>, Vec<Vec<Value>>)> {
        let order = select(vec![Order::Ascending, Order::Descending]);
        let types = (vec(any_key_type(), 1..3), vec((any_key_type(), order), 1..4));
        let columns = types.prop_map(|(partition, clustering)| {
            let partition = partition.into_iter().map(|ty| (ty, ColumnKind::Partition));
            let clustering = clustering.into_iter().map(|(ty, order)| (ty, ColumnKind::Clustering(order)));
            let all = partition.chain(clustering);
            all.map(|(ty, kind)| Column { name: "c".into(), ty, kind }).collect::<Vec<_>>()
        });
        columns.prop_flat_map(|columns| {
            let few: Vec<_> = columns.iter().map(|column| vec(any_value(column.ty), 3)).collect();
            let rows = vec(vec(any::<Index>(), columns.len()), 1..30);
            (Just(columns), few, rows).prop_map(|(columns, few, rows)| {
                let row = |row: Vec<Index>| row.iter().zip(&few).map(|(index, few)| index.get(few).clone()).collect();
                (columns, rows.into_iter().map(row).collect())
            })
        })
    }

    fn bound(kind: u8, value: &Value) -> Bound<&Value> {
        match kind {
            0 => Bound::Unbounded,
            1 => Bound::Included(value),
            _ => Bound::Excluded(value),
        }
    }

    fn key(values: &[Value], columns: &[Column]) -> Vec<u8> {
        let mut out = Vec::new();
        encode_key(values, columns, &mut out).unwrap();
        out
    }

    fn within(value: &Value, lower: Bound<&Value>, upper: Bound<&Value>) -> bool {
        let above = match lower {
            Bound::Unbounded => true,
            Bound::Included(bound) => value.cluster_cmp(bound).is_ge(),
            Bound::Excluded(bound) => value.cluster_cmp(bound).is_gt(),
        };
        above
            && match upper {
                Bound::Unbounded => true,
                Bound::Included(bound) => value.cluster_cmp(bound).is_le(),
                Bound::Excluded(bound) => value.cluster_cmp(bound).is_lt(),
            }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]

        #[test]
        fn the_rows_in_range_are_those_that_a_filter_finds(
            (columns, rows) in any_rows(),
            chosen: [Index; 3],
            equal: Index,
            kinds in (0_u8..3, 0_u8..3),
        ) {
            let split = columns.iter().filter(|column| column.kind == ColumnKind::Partition).count();
            let place = split + equal.index(columns.len() - split);
            let [base, low, high] = chosen.map(|index| index.get(&rows));
            let (partition, prefix) = base[..place].split_at(split);
            let (lower, upper) = (bound(kinds.0, &low[place]), bound(kinds.1, &high[place]));
            let range = clustering_range(&columns, partition, prefix, lower, upper).unwrap();
            for row in &rows {
                let same_partition = key(&row[..split], &columns) == key(partition, &columns);
                let equal = row[split..place].iter().zip(prefix).all(|(a, b)| a.cluster_cmp(b) == Ordering::Equal);
                let expected = same_partition && equal && within(&row[place], lower, upper);
                let bytes = key(row, &columns);
                prop_assert_eq!(range.contains(&bytes), expected, "{:?}", row);
                let salted = behind(&[0xff, 7], &range);
                prop_assert_eq!(salted.contains(&[&[0xff, 7], &bytes[..]].concat()), expected);
            }
        }
    }
}
