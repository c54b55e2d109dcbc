//! Rows made from their index alone, at nearly no cost.

use std::sync::Arc;

use peristyle::model::{Date, Key, Row, TableSpec, Time, Timestamp, Ttl, Type, Value, WriteTime};
use peristyle::request::Mutation;
use uuid::Uuid;

use super::random::{Pool, below, mix};
use crate::stats::{real, real_len};

/// Ticks of 100 ns between the start of time uuids (1582) and 2024-01-01.
const UUID_EPOCH: u64 = 0x01ee_a838_b4cc_8000;

/// Rows that are looked at for their size.
const SAMPLE: u64 = 64;

/// How one column's value follows from the row's index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    /// The same in every row.
    Constant(String),
    /// A number: (index / divide) % modulo, or a random number below `modulo`, then × step + start.
    Number { random: bool, divide: u64, modulo: Option<u64>, step: i64, start: i64, prefix: String },
    /// Random bytes or letters.
    Random { length: usize },
}

/// How the rows of a table are made: row `i` is always the same row, on every run with the same seed.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    count: u64,
    seed: u64,
    key_len: usize,
    columns: Vec<(Type, Source)>,
    pool: Pool,
}

impl Rows {
    /// Rows of a table, `sources` in the order of its columns.
    pub(crate) fn new(spec: &TableSpec, sources: Vec<Source>, count: u64, seed: u64) -> Self {
        let length = |source: &Source| if let Source::Random { length } = source { *length } else { 0 };
        let longest = sources.iter().map(length).max().unwrap_or_default();
        let types = spec.columns().iter().map(|column| column.ty);
        Self {
            count,
            seed,
            key_len: spec.key_len(),
            columns: types.zip(sources).collect(),
            pool: Pool::new(seed, longest),
        }
    }

    /// How many rows are loaded, and read from.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The same rows, but so many of them.
    #[cfg(test)]
    pub(crate) fn with_count(self, count: u64) -> Self {
        Self { count, ..self }
    }

    /// The seed behind random choices.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The full primary key of a row.
    pub(crate) fn key(&self, index: u64) -> Key {
        Key::new(self.values(index, 0, self.key_len))
    }

    /// The first `len` columns of a row's key.
    pub(crate) fn key_prefix(&self, index: u64, len: usize) -> Key {
        Key::new(self.values(index, 0, len))
    }

    /// The whole row, as a write.
    pub(crate) fn put(&self, index: u64, time: WriteTime) -> Mutation {
        let values = self.values(index, self.key_len, self.columns.len());
        let values: Vec<_> =
            values.into_iter().enumerate().map(|(place, value)| (self.key_len + place, value)).collect();
        Mutation::put(self.key(index), time, values, Ttl::TableDefault)
    }

    /// The whole row, by name.
    pub(crate) fn row(&self, index: u64, spec: &TableSpec) -> Row {
        let values = self.values(index, 0, self.columns.len());
        spec.columns()
            .iter()
            .zip(values)
            .fold(Row::new(), |row, (column, value)| row.with(Arc::clone(&column.name), value))
    }

    /// Bytes of a row, keys and values, over some of them.
    pub(crate) fn mean_bytes(&self) -> f64 {
        let sizes = (0..SAMPLE).map(|place| self.put(below(mix(self.seed, place), self.count), WriteTime::MIN).size());
        real_len(sizes.sum()) / real(SAMPLE)
    }

    fn values(&self, index: u64, from: usize, to: usize) -> Vec<Value> {
        let columns = self.columns.iter().enumerate().take(to).skip(from);
        columns.map(|(place, (ty, source))| self.value(index, place, *ty, source)).collect()
    }

    fn value(&self, index: u64, place: usize, ty: Type, source: &Source) -> Value {
        let random = || mix(self.seed ^ mix(place as u64, 0), index);
        match source {
            Source::Constant(text) => constant(text, ty).unwrap_or_else(|_| Value::Text(text.clone())),
            Source::Random { length } if ty == Type::Blob => Value::Blob(self.pool.bytes(random(), *length)),
            Source::Random { length } => Value::Text(self.pool.text(random(), *length).to_owned()),
            Source::Number { random: chance, divide, modulo, step, start, prefix } => {
                let base = match (chance, modulo) {
                    (true, modulo) => below(random(), modulo.unwrap_or(u64::MAX)),
                    (false, Some(modulo)) => (index / divide) % modulo,
                    (false, None) => index / divide,
                };
                number(base.cast_signed().wrapping_mul(*step).wrapping_add(*start), ty, prefix, random)
            }
        }
    }

    /// A clustering value this far behind the one given, for the end of a range.
    pub(crate) fn behind(value: &Value, span: u64) -> Option<Value> {
        let span = i64::try_from(span).ok()?;
        Some(match value {
            Value::I32(number) => Value::I32(number.saturating_add(i32::try_from(span).unwrap_or(i32::MAX))),
            Value::I64(number) => Value::I64(number.saturating_add(span)),
            Value::Timestamp(time) => Value::Timestamp(Timestamp(time.0.saturating_add(span))),
            Value::Date(day) => Value::Date(Date(day.0.saturating_add(i32::try_from(span).unwrap_or(i32::MAX)))),
            _ => return None,
        })
    }
}

/// A constant of a column's type.
pub(super) fn constant(text: &str, ty: Type) -> Result<Value, String> {
    let wrong = |_| format!("{text:?} is not of type {ty}");
    match ty {
        Type::Text => Ok(Value::Text(text.to_owned())),
        Type::Blob => Ok(Value::Blob(text.as_bytes().to_vec().into())),
        Type::Bool => text.parse().map(Value::Bool).map_err(|_| format!("{text:?} is not of type {ty}")),
        Type::Uuid => text.parse().map(Value::Uuid).map_err(|_| format!("{text:?} is not of type {ty}")),
        Type::F32 | Type::F64 => match text.parse::<f64>() {
            Ok(real) if ty == Type::F64 => Ok(Value::F64(real)),
            #[expect(clippy::cast_possible_truncation, reason = "the column has single precision")]
            Ok(real) => Ok(Value::F32(real as f32)),
            Err(_) => Err(format!("{text:?} is not of type {ty}")),
        },
        _ if is_numbered(ty) => text.parse::<i64>().map(|value| number(value, ty, "", || 0)).map_err(wrong),
        _ => Err(format!("constants of type {ty} are not supported")),
    }
}

/// Whether a column of this type can be made from a number.
pub(super) fn is_numbered(ty: Type) -> bool {
    !matches!(ty, Type::Counter | Type::Inet | Type::Decimal | Type::Varint)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small column types wrap around")]
fn number(number: i64, ty: Type, prefix: &str, random: impl Fn() -> u64) -> Value {
    match ty {
        Type::Bool => Value::Bool(number % 2 != 0),
        Type::I8 => Value::I8(number as i8),
        Type::I16 => Value::I16(number as i16),
        Type::I32 => Value::I32(number as i32),
        Type::F32 => Value::F32(number as f32),
        Type::F64 => Value::F64(number as f64),
        Type::Text => Value::Text(if prefix.is_empty() { number.to_string() } else { format!("{prefix}{number}") }),
        Type::Blob => Value::Blob(number.to_be_bytes().to_vec().into()),
        Type::Timestamp => Value::Timestamp(Timestamp(number)),
        Type::Date => Value::Date(Date(number as i32)),
        Type::Time => Value::Time(Time(number.rem_euclid(Time::MAX.0 + 1))),
        Type::Uuid => Value::Uuid(Uuid::from_u64_pair(random(), number.cast_unsigned())),
        Type::TimeUuid => Value::TimeUuid(time_uuid(number.cast_unsigned())),
        _ => Value::I64(number),
    }
}

/// The time uuid of a number: numbers in order give uuids in order.
pub(crate) fn time_uuid(number: u64) -> Uuid {
    let ticks = UUID_EPOCH.wrapping_add(number);
    let low = (ticks & 0xffff_ffff) << 32;
    let middle = ((ticks >> 32) & 0xffff) << 16;
    let high = (ticks >> 48) & 0x0fff;
    Uuid::from_u64_pair(low | middle | 0x1000 | high, 0x8000_0000_0000_0001)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_uuids_have_version_one_and_their_order() {
        let (first, second) = (time_uuid(1), time_uuid(0x1_0000_0000));
        assert_eq!((first.get_version_num(), second.get_version_num()), (1, 1));
        let order = Value::TimeUuid(first).cluster_cmp(&Value::TimeUuid(second));
        assert_eq!(order, std::cmp::Ordering::Less);
    }

    #[test]
    fn a_row_is_the_same_row_every_time() {
        let spec = TableSpec::builder("t")
            .partition("p", Type::Text)
            .clustering("c", Type::TimeUuid, peristyle::model::Order::Ascending)
            .column("v", Type::Blob)
            .build()
            .unwrap();
        let numbers = |random, modulo: Option<u64>, prefix: &str| Source::Number {
            random,
            divide: 1,
            modulo,
            step: 1,
            start: 0,
            prefix: prefix.into(),
        };
        let sources = vec![numbers(true, Some(10), "p_"), numbers(false, None, ""), Source::Random { length: 30 }];
        let rows = Rows::new(&spec, sources, 100, 5);
        let time = WriteTime::MIN;
        assert_eq!(rows.put(7, time), rows.put(7, time));
        assert_ne!(rows.put(7, time), rows.put(8, time));
        assert_eq!(rows.key(7), rows.put(7, time).key);
        let Some(Value::Text(partition)) = rows.key(7).values().first().cloned() else { panic!("no text") };
        assert!(partition.starts_with("p_") && partition.len() == 3, "{partition}");
    }
}
