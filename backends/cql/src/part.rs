//! A mutation as statements.

use std::num::NonZeroU32;
use std::sync::Arc;

use peristyle_core::model::{TableSpec, Ttl, Value};
use peristyle_core::request::{Cell, CellWrite, Mutation, Wipe};
use peristyle_core::{Error, Result};
use scylla::errors::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::RowWriter;

use crate::codec::{Binder, bind};
use crate::statement::Shape;

/// One statement of a mutation, with its values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    /// `None` for a counter table, whose times the server gives.
    timestamp: Option<i64>,
    key: &'a [Value],
    kind: Kind<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Kind<'a> {
    Put { cells: Cells<'a>, ttl: Option<i32> },
    Marker { ttl: Option<i32> },
    DeleteColumns(&'a [Cell]),
    DeleteRow,
    DeletePartition,
}

/// The cells of one time to live.
#[derive(Debug, Clone, Copy)]
struct Cells<'a> {
    all: &'a [Cell],
    /// Those that live so long; `None` is all.
    ttl: Option<Ttl>,
    /// With the deletes.
    deletes: bool,
}

impl<'a> Cells<'a> {
    fn iter(self) -> impl Iterator<Item = &'a Cell> {
        self.all.iter().filter(move |cell| match &cell.write {
            CellWrite::Put(_, ttl) => self.ttl.is_none_or(|wanted| wanted == *ttl),
            CellWrite::Delete => self.deletes,
        })
    }
}

impl Part<'_> {
    pub(crate) fn shape(&self) -> Shape {
        match self.kind {
            Kind::Put { cells, ttl } => {
                Shape::Put { columns: cells.iter().map(|cell| cell.column).collect(), ttl: ttl.is_some() }
            }
            Kind::Marker { ttl } => Shape::Marker { ttl: ttl.is_some() },
            Kind::DeleteColumns(cells) => {
                Shape::DeleteColumns { columns: cells.iter().map(|cell| cell.column).collect() }
            }
            Kind::DeleteRow => Shape::DeleteRow,
            Kind::DeletePartition => Shape::DeletePartition,
        }
    }

    fn bind(&self, binder: &mut Binder<'_, '_, '_>) -> Result<(), SerializationError> {
        if let Kind::Marker { ttl } = self.kind {
            binder.values(self.key)?;
            self.timestamp.map_or(Ok(()), |micros| binder.bigint(micros))?;
            return ttl.map_or(Ok(()), |seconds| binder.int(seconds));
        }
        self.timestamp.map_or(Ok(()), |micros| binder.bigint(micros))?;
        if let Kind::Put { cells, ttl } = self.kind {
            ttl.map_or(Ok(()), |seconds| binder.int(seconds))?;
            cells.iter().try_for_each(|cell| match &cell.write {
                CellWrite::Put(value, _) => binder.value(value),
                CellWrite::Delete => binder.null(),
            })?;
        }
        binder.values(self.key)
    }
}

impl SerializeRow for Part<'_> {
    fn serialize(
        &self,
        context: &RowSerializationContext<'_>,
        writer: &mut RowWriter,
    ) -> Result<(), SerializationError> {
        bind(context, writer, |binder| self.bind(binder))
    }

    fn is_empty(&self) -> bool {
        false
    }
}

/// The only statement of a mutation, for the many that have one.
pub(crate) fn single<'a>(spec: &TableSpec, mutation: &'a Mutation) -> Option<Part<'a>> {
    let [first, rest @ ..] = &*mutation.cells else {
        return None;
    };
    let ttl = put_ttl(first)?;
    let plain = mutation.wipe == Wipe::Nothing && mutation.marker.is_none();
    let same = rest.iter().all(|cell| put_ttl(cell) == Some(ttl));
    (plain && same).then(|| Part {
        timestamp: (!spec.is_counter()).then(|| mutation.write_time.as_micros()),
        key: mutation.key.values(),
        kind: Kind::Put { cells: Cells { all: &mutation.cells, ttl: None, deletes: true }, ttl: seconds(ttl) },
    })
}

/// The statements of a mutation: together they are one atomic unit, because they are of one partition. The cells are
/// [in order](sort_cells).
pub(crate) fn parts<'a>(spec: &TableSpec, mutation: &'a Mutation) -> Vec<Part<'a>> {
    let timestamp = |time: peristyle_core::model::WriteTime| (!spec.is_counter()).then(|| time.as_micros());
    let key = mutation.key.values();
    let part = |kind| Part { timestamp: timestamp(mutation.write_time), key, kind };
    let wipe = |kind| Part { timestamp: timestamp(mutation.wipe_time()), key, kind };
    let mut parts = Vec::with_capacity(1);
    match mutation.wipe {
        Wipe::Nothing => {}
        Wipe::Row => parts.push(wipe(Kind::DeleteRow)),
        Wipe::Partition => parts.push(wipe(Kind::DeletePartition)),
    }
    if let Some(ttl) = mutation.marker {
        parts.push(part(Kind::Marker { ttl: seconds(ttl) }));
    }
    let all = &*mutation.cells;
    let mut ttls = all.iter().filter_map(put_ttl);
    let Some(first) = ttls.next() else {
        parts.extend((!all.is_empty()).then(|| part(Kind::DeleteColumns(all))));
        return parts;
    };
    if ttls.all(|ttl| ttl == first) {
        parts.push(part(Kind::Put { cells: Cells { all, ttl: None, deletes: true }, ttl: seconds(first) }));
        return parts;
    }
    let mut seen = Vec::new();
    for ttl in all.iter().filter_map(put_ttl) {
        if !seen.contains(&ttl) {
            let cells = Cells { all, ttl: Some(ttl), deletes: seen.is_empty() };
            parts.push(part(Kind::Put { cells, ttl: seconds(ttl) }));
            seen.push(ttl);
        }
    }
    parts
}

fn put_ttl(cell: &Cell) -> Option<Ttl> {
    match &cell.write {
        CellWrite::Put(_, ttl) => Some(*ttl),
        CellWrite::Delete => None,
    }
}

/// The TTL to bind: 0 overrides a default of the live table, even one that the declaration doesn't know.
pub(crate) fn seconds(ttl: Ttl) -> Option<i32> {
    match ttl {
        Ttl::TableDefault => None,
        Ttl::Never => Some(0),
        Ttl::Seconds(seconds) => Some(i32::try_from(seconds.get()).unwrap_or(i32::MAX)),
    }
}

/// Brings the cells into the order of the columns, which is the order in which statements bind them. Of cells of one column
/// the last counts.
pub(crate) fn sort_cells(cells: &mut Arc<[Cell]>) {
    if cells.is_sorted_by(|a, b| a.column < b.column) {
        return;
    }
    let mut sorted: Vec<Cell> = cells.iter().rev().cloned().collect();
    sorted.sort_by_key(|cell| cell.column);
    sorted.dedup_by_key(|cell| cell.column);
    *cells = sorted.into();
}

/// Refuses what would expire later than the server can say.
pub(crate) fn check_expiry(
    spec: &TableSpec,
    mutation: &Mutation,
    max_expiry: i64,
    now: impl Fn() -> i64,
) -> Result<()> {
    let puts = mutation.cells.iter().filter_map(put_ttl).chain(mutation.marker);
    let Some(longest) = puts.filter_map(|ttl| ttl.resolve(spec.default_ttl())).max() else {
        return Ok(());
    };
    check_seconds(longest, max_expiry, now())
}

/// Refuses a time to live that would end later than the server can say.
pub(crate) fn check_seconds(ttl: NonZeroU32, max_expiry: i64, now: i64) -> Result<()> {
    if ttl.get() > Ttl::MAX_SECONDS {
        return Err(Error::invalid(format!("time to live {ttl} s is over 20 years ({} s)", Ttl::MAX_SECONDS)));
    }
    if now + i64::from(ttl.get()) <= max_expiry {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "time to live {ttl} s ends after second {max_expiry} since 1970, the last that the server can say: give at most {} s, \
         or max_expiry=4294967294 for a server that takes it",
        (max_expiry - now).max(0)
    )))
}

#[cfg(test)]
mod tests {
    use peristyle_core::model::{Key, Type, WriteTime};

    use super::*;

    fn spec() -> TableSpec {
        let table = TableSpec::builder("t").partition("id", Type::I64);
        table.column("a", Type::I64).column("b", Type::I64).column("c", Type::I64).build().unwrap()
    }

    fn at(micros: i64) -> WriteTime {
        WriteTime::from_micros(micros).unwrap()
    }

    fn put(column: usize, ttl: Ttl) -> Cell {
        Cell { column, write: CellWrite::Put(Value::from(1_i64), ttl) }
    }

    fn for_seconds(seconds: u32) -> Ttl {
        Ttl::Seconds(NonZeroU32::new(seconds).unwrap())
    }

    fn key() -> Key {
        Key::new(vec![Value::from(1_i64)])
    }

    fn shapes(mutation: &Mutation) -> Vec<(Shape, Option<i64>)> {
        parts(&spec(), mutation).iter().map(|part| (part.shape(), part.timestamp)).collect()
    }

    fn columns(indexes: &[usize]) -> crate::statement::ColumnSet {
        indexes.iter().copied().collect()
    }

    #[test]
    fn a_plain_put_is_one_statement() {
        let values = vec![(1, Value::from(1_i64)), (3, Value::from(2_i64))];
        let mut mutation = Mutation::put(key(), at(9), values, Ttl::TableDefault);
        let expected = Shape::Put { columns: columns(&[1, 3]), ttl: false };
        assert_eq!(shapes(&mutation), [(expected.clone(), Some(9))]);
        assert_eq!(single(&spec(), &mutation).unwrap().shape(), expected);
        mutation.cells = mutation.cells.iter().cloned().chain([put(2, Ttl::Never)]).collect();
        assert!(single(&spec(), &mutation).is_none());
    }

    #[test]
    fn a_replace_wipes_one_microsecond_before_it_puts() {
        let mutation = Mutation::put(key(), at(9), vec![(1, Value::from(1_i64))], Ttl::Never).replacing();
        let expected = [(Shape::DeleteRow, Some(8)), (Shape::Put { columns: columns(&[1]), ttl: true }, Some(9))];
        assert_eq!(shapes(&mutation), expected);
        assert_eq!(shapes(&Mutation::delete_row(key(), at(9))), [(Shape::DeleteRow, Some(9))]);
        assert_eq!(shapes(&Mutation::delete_partition(key(), at(9))), [(Shape::DeletePartition, Some(9))]);
    }

    #[test]
    fn columns_that_only_go_are_deleted_and_others_are_set_to_null() {
        let mut mutation = Mutation::delete_columns(key(), at(9), [1, 2]);
        assert_eq!(shapes(&mutation), [(Shape::DeleteColumns { columns: columns(&[1, 2]) }, Some(9))]);
        mutation.cells = mutation.cells.iter().cloned().chain([put(3, Ttl::TableDefault)]).collect();
        assert_eq!(shapes(&mutation), [(Shape::Put { columns: columns(&[1, 2, 3]), ttl: false }, Some(9))]);
    }

    #[test]
    fn each_time_to_live_is_a_statement_and_deletes_go_with_the_first() {
        let delete = Cell { column: 2, write: CellWrite::Delete };
        let cells = [put(1, for_seconds(5)), delete, put(3, Ttl::TableDefault)].into();
        let mutation = Mutation { key: key(), write_time: at(9), wipe: Wipe::Nothing, marker: Some(Ttl::Never), cells };
        let expected = [
            (Shape::Marker { ttl: true }, Some(9)),
            (Shape::Put { columns: columns(&[1, 2]), ttl: true }, Some(9)),
            (Shape::Put { columns: columns(&[3]), ttl: false }, Some(9)),
        ];
        assert_eq!(shapes(&mutation), expected);
    }

    #[test]
    fn a_mutation_without_effect_has_no_statement() {
        assert_eq!(shapes(&Mutation::delete_columns(key(), at(9), [])), []);
    }

    #[test]
    fn cells_are_bound_in_the_order_of_columns_and_the_last_of_a_column_counts() {
        let cells = [put(3, Ttl::Never), put(1, Ttl::Never), put(3, Ttl::TableDefault), put(2, Ttl::Never)];
        let mut cells = cells.into();
        sort_cells(&mut cells);
        let expected = [put(1, Ttl::Never), put(2, Ttl::Never), put(3, Ttl::TableDefault)];
        assert_eq!(*cells, expected);
    }

    #[test]
    fn what_expires_after_2038_is_refused_with_what_would_do() {
        let mut mutation = Mutation::put(key(), at(9), vec![(1, Value::from(1_i64))], for_seconds(100));
        let check = |mutation: &Mutation, now| check_expiry(&spec(), mutation, 2_147_483_646, || now);
        assert!(check(&mutation, 2_147_483_546).is_ok());
        let message = check(&mutation, 2_147_483_547).unwrap_err().to_string();
        assert!(message.contains("at most 99 s"), "{message}");
        mutation.cells = [put(1, for_seconds(630_720_001))].into();
        assert!(check(&mutation, 0).unwrap_err().to_string().contains("20 years"));
        mutation.cells = [put(1, Ttl::Never)].into();
        assert!(check(&mutation, i64::MAX).is_ok());
    }
}
