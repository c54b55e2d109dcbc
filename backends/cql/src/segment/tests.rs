use peristyle_core::model::Type;
use proptest::prelude::*;

use super::*;

fn spec(orders: &[Order]) -> TableSpec {
    let mut builder = TableSpec::builder("t").partition("id", Type::I64);
    for (place, order) in orders.iter().enumerate() {
        builder = builder.clustering(format!("c{place}"), Type::I64, *order);
    }
    builder.build().unwrap()
}

fn values(numbers: &[i64]) -> Vec<Value> {
    numbers.iter().copied().map(Value::from).collect()
}

/// Whether a row is in a segment, as a server decides it.
fn contains(segment: &Segment<'_>, row: &[Value]) -> bool {
    let Some(value) = row.get(segment.equal.len()) else { return same(segment.equal, row) };
    let lower = match segment.lower {
        Bound::Included(lower) => value.cluster_cmp(lower) != Ordering::Less,
        Bound::Excluded(lower) => value.cluster_cmp(lower) == Ordering::Greater,
        Bound::Unbounded => true,
    };
    let upper = match segment.upper {
        Bound::Included(upper) => value.cluster_cmp(upper) != Ordering::Greater,
        Bound::Excluded(upper) => value.cluster_cmp(upper) == Ordering::Less,
        Bound::Unbounded => true,
    };
    same(segment.equal, row) && lower && upper
}

/// All rows of three columns with values 0 to 3, in the order of the table.
fn model(orders: &[Order], reverse: bool) -> Vec<Vec<Value>> {
    let mut rows: Vec<Vec<i64>> = vec![vec![]];
    for _ in orders {
        rows = rows.iter().flat_map(|row| (0..4).map(|value| [row.as_slice(), &[value]].concat())).collect();
    }
    rows.sort_by(|a, b| {
        let mut columns = a.iter().zip(b).zip(orders);
        let first = columns.find(|((a, b), _)| a != b);
        let order = first.map_or(
            Ordering::Equal,
            |((a, b), order)| {
                if *order == Order::Descending { b.cmp(a) } else { a.cmp(b) }
            },
        );
        if reverse { order.reverse() } else { order }
    });
    rows.iter().map(|row| values(row)).collect()
}

/// What a server answers: the rows of each segment in turn.
fn read<'a>(segments: &[Segment<'_>], rows: &'a [Vec<Value>]) -> Vec<&'a Vec<Value>> {
    segments.iter().flat_map(|segment| rows.iter().filter(|row| contains(segment, row))).collect()
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Ascending), Just(Order::Descending)]
}

fn bound() -> impl Strategy<Value = Bound<i64>> {
    prop_oneof![Just(Bound::Unbounded), (-1_i64..5).prop_map(Bound::Included), (-1_i64..5).prop_map(Bound::Excluded)]
}

proptest! {
    #[test]
    fn going_on_behind_every_row_gives_the_rest_in_order(
        orders in proptest::collection::vec(order(), 1..=3),
        reverse: bool,
        fixed in 0_usize..=3,
        prefix in proptest::collection::vec(0_i64..4, 3),
        lower in bound(),
        upper in bound(),
    ) {
        let spec = spec(&orders);
        let fixed = fixed.min(orders.len());
        let prefix = values(&prefix[..fixed]);
        let (lower, upper) = (lower.map(Value::from), upper.map(Value::from));
        let mut segment = Segment { equal: &prefix, lower: lower.as_ref(), upper: upper.as_ref() };
        if fixed == orders.len() {
            (segment.lower, segment.upper) = (Bound::Unbounded, Bound::Unbounded);
        }
        let rows = model(&orders, reverse);
        let whole = read(std::slice::from_ref(&segment), &rows);
        for (seen, row) in whole.iter().enumerate() {
            let segments = segment.behind(row, &spec, reverse).unwrap();
            prop_assert_eq!(read(&segments, &rows), &whole[seen + 1..], "behind {:?}", row);
        }
    }

    #[test]
    fn a_row_outside_the_bounds_divides_what_is_before_and_behind_it(
        order in order(),
        reverse: bool,
        lower in bound(),
        upper in bound(),
        after in -2_i64..6,
    ) {
        let spec = spec(&[order]);
        let (lower, upper) = (lower.map(Value::from), upper.map(Value::from));
        let segment = Segment { equal: &[], lower: lower.as_ref(), upper: upper.as_ref() };
        let rows = model(&[order], reverse);
        let behind = |row: &[Value]| {
            let rising = (order == Order::Ascending) != reverse;
            let ahead = row[0].cluster_cmp(&Value::from(after));
            ahead == if rising { Ordering::Greater } else { Ordering::Less }
        };
        let after = values(&[after]);
        let expected: Vec<_> = read(std::slice::from_ref(&segment), &rows).into_iter().filter(|row| behind(row)).collect();
        prop_assert_eq!(read(&segment.behind(&after, &spec, reverse).unwrap(), &rows), expected);
    }
}

#[test]
fn a_row_of_another_prefix_or_too_short_a_key_is_refused() {
    let spec = spec(&[Order::Ascending, Order::Ascending]);
    let prefix = values(&[1]);
    let segment = Segment { equal: &prefix, lower: Bound::Unbounded, upper: Bound::Unbounded };
    for after in [values(&[2, 0]), values(&[1]), values(&[1, 2, 3])] {
        assert!(segment.behind(&after, &spec, false).is_err(), "{after:?}");
    }
}
