//! The CQL of each shape. Every name is quoted, every column is named, every value is bound.

use std::fmt::Write as _;

use peristyle_core::model::{Column, ColumnKind, Order, TableSpec};

use super::columns::ColumnSet;
use super::shape::{Edge, ScanStart, Selection, Shape, Slice};

/// Writes the statement of one shape for one table.
pub(crate) fn cql(shape: &Shape, keyspace: &str, spec: &TableSpec) -> String {
    let table = format!("\"{keyspace}\".\"{}\"", spec.name());
    let at = if spec.is_counter() { "" } else { " USING TIMESTAMP ?" };
    let key = equals(spec.primary_key());
    match shape {
        Shape::Put { columns, ttl } => {
            let ttl = if *ttl { " AND TTL ?" } else { "" };
            format!("UPDATE {table}{at}{ttl} SET {} WHERE {key}", assignments(columns, spec, "?"))
        }
        Shape::Marker { ttl } => {
            let ttl = if *ttl { " AND TTL ?" } else { "" };
            let (names, marks) = (names(spec.primary_key()), marks(spec.key_len()));
            format!("INSERT INTO {table} ({names}) VALUES ({marks}){at}{ttl}")
        }
        Shape::DeleteColumns { columns } => {
            format!("DELETE {} FROM {table}{at} WHERE {key}", chosen_names(columns, spec))
        }
        Shape::DeleteRow => format!("DELETE FROM {table}{at} WHERE {key}"),
        Shape::DeletePartition => format!("DELETE FROM {table}{at} WHERE {}", equals(spec.partition_key())),
        Shape::Increment { columns } => {
            let set: Vec<_> =
                chosen(columns, spec).map(|column| format!("\"{0}\" = \"{0}\" + ?", column.name)).collect();
            format!("UPDATE {table} SET {} WHERE {key}", set.join(", "))
        }
        Shape::PutIfAbsent { columns, ttl } => {
            let ttl = if *ttl { " USING TTL ?" } else { "" };
            let all: ColumnSet = (0..spec.key_len()).chain(columns.indexes()).collect();
            let marks = marks(all.indexes().len());
            format!("INSERT INTO {table} ({}) VALUES ({marks}) IF NOT EXISTS{ttl}", chosen_names(&all, spec))
        }
        Shape::PutIfEqual { columns, ttl, column } => conditional(&table, columns, *ttl, *column, "?", spec),
        Shape::PutIfColumnAbsent { columns, ttl, column } => conditional(&table, columns, *ttl, *column, "null", spec),
        Shape::Get(selection) => format!("SELECT {} FROM {table} WHERE {key}", selected(selection, spec)),
        Shape::GetMany(selection) => {
            let key = names(spec.primary_key());
            format!("SELECT {} FROM {table} WHERE {key} IN ?", selected(selection, spec))
        }
        Shape::Query(selection, slice) => {
            let range = slice_cql(*slice, spec);
            format!("SELECT {} FROM {table} WHERE {}{range}", selected(selection, spec), equals(spec.partition_key()))
        }
        Shape::Scan { selection, start, end } => {
            let range = scan_range(*start, *end, spec);
            format!("SELECT {} FROM {table}{range} LIMIT ?", selected(selection, spec))
        }
        Shape::SameToken => {
            let names = names(spec.partition_key());
            let marks = marks(spec.partition_len());
            format!("SELECT DISTINCT {names} FROM {table} WHERE token({names}) = token({marks})")
        }
    }
}

fn conditional(table: &str, columns: &ColumnSet, ttl: bool, column: usize, expected: &str, spec: &TableSpec) -> String {
    let ttl = if ttl { " USING TTL ?" } else { "" };
    let key = equals(spec.primary_key());
    let condition = assignments(&std::iter::once(column).collect(), spec, expected);
    format!("UPDATE {table}{ttl} SET {} WHERE {key} IF {condition}", assignments(columns, spec, "?"))
}

fn slice_cql(slice: Slice, spec: &TableSpec) -> String {
    let mut cql = String::new();
    for column in spec.clustering_key().iter().take(slice.equal) {
        let _ = write!(cql, " AND \"{}\" = ?", column.name);
    }
    if let Some(column) = spec.clustering_key().get(slice.equal) {
        for (edge, included, excluded) in [(slice.lower, ">=", ">"), (slice.upper, "<=", "<")] {
            let _ = match edge {
                Edge::Open => Ok(()),
                Edge::Included => write!(cql, " AND \"{}\" {included} ?", column.name),
                Edge::Excluded => write!(cql, " AND \"{}\" {excluded} ?", column.name),
            };
        }
    }
    if let (true, Some(first)) = (slice.reverse, spec.clustering_key().first()) {
        // The first column's direction turns the whole order.
        let turned = if first.kind == ColumnKind::Clustering(Order::Descending) { "ASC" } else { "DESC" };
        let _ = write!(cql, " ORDER BY \"{}\" {turned}", first.name);
    }
    cql + " LIMIT ?"
}

fn scan_range(start: ScanStart, end: bool, spec: &TableSpec) -> String {
    let token = format!("token({})", names(spec.partition_key()));
    let mut conditions = Vec::new();
    match start {
        ScanStart::First => {}
        ScanStart::AfterToken => conditions.push(format!("{token} > ?")),
        ScanStart::AfterKey => conditions.push(format!("{token} > token({})", marks(spec.partition_len()))),
    }
    if end {
        conditions.push(format!("{token} <= ?"));
    }
    if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) }
}

/// The columns that a read names, in the order of [`slots`](super::slots).
fn selected(selection: &Selection, spec: &TableSpec) -> String {
    let mut parts = Vec::from_iter(selection.key.then(|| names(spec.primary_key())));
    for column in chosen(&selection.columns, spec) {
        parts.push(format!("\"{}\"", column.name));
        if selection.write_time {
            parts.push(format!("WRITETIME(\"{}\")", column.name));
        }
        if selection.ttl {
            parts.push(format!("TTL(\"{}\")", column.name));
        }
    }
    parts.join(", ")
}

fn chosen<'a>(columns: &ColumnSet, spec: &'a TableSpec) -> impl Iterator<Item = &'a Column> {
    columns.indexes().into_iter().filter_map(|index| spec.columns().get(index))
}

fn chosen_names(columns: &ColumnSet, spec: &TableSpec) -> String {
    let names: Vec<_> = chosen(columns, spec).map(|column| format!("\"{}\"", column.name)).collect();
    names.join(", ")
}

fn assignments(columns: &ColumnSet, spec: &TableSpec, value: &str) -> String {
    let set: Vec<_> = chosen(columns, spec).map(|column| format!("\"{}\" = {value}", column.name)).collect();
    set.join(", ")
}

fn names(columns: &[Column]) -> String {
    let names: Vec<_> = columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
    names.join(", ")
}

fn equals(columns: &[Column]) -> String {
    let conditions: Vec<_> = columns.iter().map(|column| format!("\"{}\" = ?", column.name)).collect();
    conditions.join(" AND ")
}

fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

#[cfg(test)]
mod tests {
    use peristyle_core::model::Type;

    use super::*;

    fn spec() -> TableSpec {
        TableSpec::builder("T")
            .partition("p", Type::Text)
            .partition("q", Type::I64)
            .clustering("c", Type::Timestamp, Order::Descending)
            .clustering("d", Type::I32, Order::Ascending)
            .column("v", Type::Text)
            .column("w", Type::Blob)
            .build()
            .unwrap()
    }

    fn set(indexes: &[usize]) -> ColumnSet {
        indexes.iter().copied().collect()
    }

    fn selection(columns: &[usize], write_time: bool, ttl: bool) -> Selection {
        Selection { key: true, columns: set(columns), write_time, ttl }
    }

    fn check(shape: &Shape, expected: &str) {
        assert_eq!(cql(shape, "Ks", &spec()), expected);
    }

    const KEY: &str = "\"p\" = ? AND \"q\" = ? AND \"c\" = ? AND \"d\" = ?";

    #[test]
    fn writes_carry_their_timestamp_and_puts_leave_no_marker() {
        check(
            &Shape::Put { columns: set(&[4, 5]), ttl: true },
            &format!("UPDATE \"Ks\".\"T\" USING TIMESTAMP ? AND TTL ? SET \"v\" = ?, \"w\" = ? WHERE {KEY}"),
        );
        check(
            &Shape::Put { columns: set(&[5]), ttl: false },
            &format!("UPDATE \"Ks\".\"T\" USING TIMESTAMP ? SET \"w\" = ? WHERE {KEY}"),
        );
        check(
            &Shape::Marker { ttl: true },
            "INSERT INTO \"Ks\".\"T\" (\"p\", \"q\", \"c\", \"d\") VALUES (?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?",
        );
    }

    #[test]
    fn deletes_carry_their_timestamp() {
        check(
            &Shape::DeleteColumns { columns: set(&[4]) },
            &format!("DELETE \"v\" FROM \"Ks\".\"T\" USING TIMESTAMP ? WHERE {KEY}"),
        );
        check(&Shape::DeleteRow, &format!("DELETE FROM \"Ks\".\"T\" USING TIMESTAMP ? WHERE {KEY}"));
        check(&Shape::DeletePartition, "DELETE FROM \"Ks\".\"T\" USING TIMESTAMP ? WHERE \"p\" = ? AND \"q\" = ?");
    }

    #[test]
    fn counters_and_conditions_have_no_timestamp() {
        let counters =
            TableSpec::builder("n").partition("id", Type::I64).column("hits", Type::Counter).build().unwrap();
        let text = |shape| cql(&shape, "ks", &counters);
        assert_eq!(
            text(Shape::Increment { columns: set(&[1]) }),
            "UPDATE \"ks\".\"n\" SET \"hits\" = \"hits\" + ? WHERE \"id\" = ?"
        );
        assert_eq!(text(Shape::DeleteRow), "DELETE FROM \"ks\".\"n\" WHERE \"id\" = ?");
        check(
            &Shape::PutIfAbsent { columns: set(&[4]), ttl: true },
            "INSERT INTO \"Ks\".\"T\" (\"p\", \"q\", \"c\", \"d\", \"v\") VALUES (?, ?, ?, ?, ?) IF NOT EXISTS USING TTL ?",
        );
        check(
            &Shape::PutIfEqual { columns: set(&[4]), ttl: false, column: 5 },
            &format!("UPDATE \"Ks\".\"T\" SET \"v\" = ? WHERE {KEY} IF \"w\" = ?"),
        );
        check(
            &Shape::PutIfColumnAbsent { columns: set(&[4]), ttl: true, column: 4 },
            &format!("UPDATE \"Ks\".\"T\" USING TTL ? SET \"v\" = ? WHERE {KEY} IF \"v\" = null"),
        );
    }

    #[test]
    fn reads_name_their_columns() {
        check(
            &Shape::Get(selection(&[5], true, true)),
            &format!(
                "SELECT \"p\", \"q\", \"c\", \"d\", \"w\", WRITETIME(\"w\"), TTL(\"w\") FROM \"Ks\".\"T\" WHERE {KEY}"
            ),
        );
        let values = Selection { key: false, ..selection(&[4, 5], false, false) };
        check(&Shape::Get(values), &format!("SELECT \"v\", \"w\" FROM \"Ks\".\"T\" WHERE {KEY}"));
        let ids = TableSpec::builder("i").partition("id", Type::I64).column("v", Type::Text).build().unwrap();
        assert_eq!(
            cql(&Shape::GetMany(selection(&[1], false, false)), "ks", &ids),
            "SELECT \"id\", \"v\" FROM \"ks\".\"i\" WHERE \"id\" IN ?"
        );
    }

    #[test]
    fn a_reversed_query_turns_the_first_column() {
        let slice = Slice { equal: 1, lower: Edge::Included, upper: Edge::Excluded, reverse: true };
        check(
            &Shape::Query(selection(&[], false, false), slice),
            "SELECT \"p\", \"q\", \"c\", \"d\" FROM \"Ks\".\"T\" WHERE \"p\" = ? AND \"q\" = ? AND \"c\" = ? \
             AND \"d\" >= ? AND \"d\" < ? ORDER BY \"c\" ASC LIMIT ?",
        );
        let slice = Slice { equal: 0, lower: Edge::Open, upper: Edge::Included, reverse: false };
        check(
            &Shape::Query(selection(&[4], false, false), slice),
            "SELECT \"p\", \"q\", \"c\", \"d\", \"v\" FROM \"Ks\".\"T\" WHERE \"p\" = ? AND \"q\" = ? AND \"c\" <= ? LIMIT ?",
        );
    }

    #[test]
    fn a_scan_goes_by_token() {
        let scan = |start, end| Shape::Scan { selection: selection(&[], false, false), start, end };
        let head = "SELECT \"p\", \"q\", \"c\", \"d\" FROM \"Ks\".\"T\"";
        check(&scan(ScanStart::First, false), &format!("{head} LIMIT ?"));
        check(
            &scan(ScanStart::AfterToken, true),
            &format!("{head} WHERE token(\"p\", \"q\") > ? AND token(\"p\", \"q\") <= ? LIMIT ?"),
        );
        check(&scan(ScanStart::AfterKey, false), &format!("{head} WHERE token(\"p\", \"q\") > token(?, ?) LIMIT ?"));
        check(
            &Shape::SameToken,
            "SELECT DISTINCT \"p\", \"q\" FROM \"Ks\".\"T\" WHERE token(\"p\", \"q\") = token(?, ?)",
        );
    }
}
