//! A table, declared once.

use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{HBaseMapping, Salt, Ttl, Type};
use crate::error::{Error, Result};

/// The order of a clustering column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Smallest first.
    #[default]
    Ascending,
    /// Largest first.
    Descending,
}

/// The part a column plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    /// A part of the partition key.
    Partition,
    /// A part of the clustering key.
    Clustering(Order),
    /// A value.
    Value,
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Column {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub ty: Type,
    /// The part it plays.
    pub kind: ColumnKind,
}

/// A table: its name, its columns in the order partition key, clustering key, values, and how it is stored.
///
/// ```
/// use peristyle_core::model::{Order, TableSpec, Type};
///
/// let spec = TableSpec::builder("property")
///     .partition("group", Type::Text)
///     .partition("name", Type::Text)
///     .clustering("date", Type::Timestamp, Order::Descending)
///     .column("value_string", Type::Text)
///     .build()?;
/// assert_eq!(spec.primary_key().len(), 3);
/// # Ok::<(), peristyle_core::Error>(())
/// ```
///
/// It reads from TOML too, in the shape that `tuner workloads` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TableData", into = "TableData")]
pub struct TableSpec {
    name: Arc<str>,
    columns: Vec<Column>,
    partition: usize,
    clustering: usize,
    default_ttl: Option<NonZeroU32>,
    salt: Option<Salt>,
    hbase: Option<HBaseMapping>,
}

impl TableSpec {
    /// Starts a declaration.
    pub fn builder(name: impl Into<Arc<str>>) -> TableBuilder {
        TableBuilder { name: name.into(), ..TableBuilder::default() }
    }

    /// The table's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Every column: partition key, clustering key, values. A column's index is its place here.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The columns of the partition key; never empty.
    pub fn partition_key(&self) -> &[Column] {
        self.columns.get(..self.partition).unwrap_or_default()
    }

    /// The columns of the clustering key.
    pub fn clustering_key(&self) -> &[Column] {
        self.columns.get(self.partition..self.key_len()).unwrap_or_default()
    }

    /// The columns of the full primary key.
    pub fn primary_key(&self) -> &[Column] {
        self.columns.get(..self.key_len()).unwrap_or_default()
    }

    /// The value columns. The first one's index is [`key_len`](Self::key_len).
    pub fn value_columns(&self) -> &[Column] {
        self.columns.get(self.key_len()..).unwrap_or_default()
    }

    /// How many columns the partition key has.
    pub fn partition_len(&self) -> usize {
        self.partition
    }

    /// How many columns the full primary key has.
    pub fn key_len(&self) -> usize {
        self.partition + self.clustering
    }

    /// The index of a column.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| &*column.name == name)
    }

    /// The index of a column.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) that lists the columns there are.
    pub fn require(&self, name: &str) -> Result<usize> {
        self.index_of(name).ok_or_else(|| {
            let known: Vec<&str> = self.columns.iter().map(|column| &*column.name).collect();
            Error::invalid(format!("table {} has no column {name:?}; it has {}", self.name, known.join(", ")))
        })
    }

    /// How long columns live when a write doesn't say; `None` is for ever.
    pub fn default_ttl(&self) -> Option<NonZeroU32> {
        self.default_ttl
    }

    /// How row keys are salted.
    pub fn salt(&self) -> Option<Salt> {
        self.salt
    }

    /// How the table lies on HBase, where that was said.
    pub fn hbase(&self) -> Option<&HBaseMapping> {
        self.hbase.as_ref()
    }

    /// Whether the value columns are counters.
    pub fn is_counter(&self) -> bool {
        self.value_columns().first().is_some_and(|column| column.ty == Type::Counter)
    }

    /// A number that differs, with near certainty, between tables whose keys or salt differ. Stable over restarts.
    pub fn layout_fingerprint(&self) -> u32 {
        let mut hasher = Crc(crc32fast::Hasher::new());
        self.name.hash(&mut hasher);
        for column in self.primary_key() {
            column.name.hash(&mut hasher);
            column.ty.name().hash(&mut hasher);
            format!("{:?}", column.kind).hash(&mut hasher);
        }
        format!("{:?}", self.salt).hash(&mut hasher);
        hasher.0.finalize()
    }
}

struct Crc(crc32fast::Hasher);

impl Hasher for Crc {
    fn finish(&self) -> u64 {
        u64::from(self.0.clone().finalize())
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}

/// Declares a table; made by [`TableSpec::builder`].
#[derive(Debug, Clone, Default)]
pub struct TableBuilder {
    name: Arc<str>,
    partition: Vec<Column>,
    clustering: Vec<Column>,
    values: Vec<Column>,
    default_ttl: Option<Duration>,
    salt: Option<Salt>,
    hbase: Option<HBaseMapping>,
}

impl TableBuilder {
    /// Adds a column to the partition key.
    #[must_use]
    pub fn partition(mut self, name: impl Into<Arc<str>>, ty: Type) -> Self {
        self.partition.push(Column { name: name.into(), ty, kind: ColumnKind::Partition });
        self
    }

    /// Adds a column to the clustering key.
    #[must_use]
    pub fn clustering(mut self, name: impl Into<Arc<str>>, ty: Type, order: Order) -> Self {
        self.clustering.push(Column { name: name.into(), ty, kind: ColumnKind::Clustering(order) });
        self
    }

    /// Adds a value column.
    #[must_use]
    pub fn column(mut self, name: impl Into<Arc<str>>, ty: Type) -> Self {
        self.values.push(Column { name: name.into(), ty, kind: ColumnKind::Value });
        self
    }

    /// How long columns live when a write doesn't say, in whole seconds, rounded up; default: for ever.
    #[must_use]
    pub fn default_ttl(mut self, ttl: Duration) -> Self {
        self.default_ttl = Some(ttl);
        self
    }

    /// Salts the row keys.
    #[must_use]
    pub fn salt(mut self, salt: Salt) -> Self {
        self.salt = Some(salt);
        self
    }

    /// Says how the table lies on HBase.
    #[must_use]
    pub fn hbase(mut self, mapping: HBaseMapping) -> Self {
        self.hbase = Some(mapping);
        self
    }

    /// Checks the declaration.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a missing partition key, a name that is empty, longer than
    /// 48 bytes or used twice, a counter in a key or beside other values, a counter table with a default time to live, and
    /// impossible salts.
    pub fn build(self) -> Result<TableSpec> {
        check_name("table", &self.name)?;
        let fail = |message: String| Err(Error::invalid(format!("table {}: {message}", self.name)));
        if self.partition.is_empty() {
            return fail("no partition key; declare at least one partition column".into());
        }
        let default_ttl = match self.default_ttl.map(Ttl::after).transpose()? {
            Some(Ttl::Seconds(seconds)) => Some(seconds),
            _ => None,
        };
        if let Some(salt) = self.salt {
            salt.validate()?;
        }
        let (partition, clustering) = (self.partition.len(), self.clustering.len());
        let columns: Vec<Column> = [self.partition, self.clustering, self.values].concat();
        let (keys, values) = columns.split_at(partition + clustering);
        for (place, column) in columns.iter().enumerate() {
            check_name("column", &column.name)?;
            if columns.iter().take(place).any(|earlier| earlier.name == column.name) {
                return fail(format!("column {} is declared twice", column.name));
            }
        }
        if let Some(column) = keys.iter().find(|column| column.ty == Type::Counter) {
            return fail(format!("column {} is a counter in the key; counters are values", column.name));
        }
        let counters = values.iter().filter(|column| column.ty == Type::Counter).count();
        if counters > 0 && counters < values.len() {
            return fail("counters beside other values; put counters in a table of their own".into());
        }
        if counters > 0 && default_ttl.is_some() {
            return fail("a counter table with a default time to live; counters can't expire".into());
        }
        Ok(TableSpec {
            name: self.name,
            columns,
            partition,
            clustering,
            default_ttl,
            salt: self.salt,
            hbase: self.hbase,
        })
    }
}

/// The portable rule: what Cassandra takes as a name, quoted.
fn check_name(what: &str, name: &str) -> Result<()> {
    let mut characters = name.chars();
    let starts = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    if starts && name.len() <= 48 && characters.all(|rest| rest.is_ascii_alphanumeric() || rest == '_') {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{what} name {name:?}: use 1 to 48 letters, digits and underscores, with no digit first"
    )))
}

/// The shape of a table in TOML.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableData {
    name: String,
    partition: Vec<ColumnData>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    clustering: Vec<ColumnData>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    columns: Vec<ColumnData>,
    /// Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default_ttl: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    salt: Option<Salt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hbase: Option<HBaseMapping>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnData {
    name: String,
    #[serde(rename = "type")]
    ty: Type,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<Order>,
}

impl TryFrom<TableData> for TableSpec {
    type Error = Error;

    fn try_from(data: TableData) -> Result<Self> {
        let unordered = data.partition.iter().chain(&data.columns).find(|column| column.order.is_some());
        if let Some(column) = unordered {
            return Err(Error::invalid(format!("column {}: only clustering columns have an order", column.name)));
        }
        let mut builder = Self::builder(data.name);
        for column in data.partition {
            builder = builder.partition(column.name, column.ty);
        }
        for column in data.clustering {
            builder = builder.clustering(column.name, column.ty, column.order.unwrap_or_default());
        }
        for column in data.columns {
            builder = builder.column(column.name, column.ty);
        }
        builder.default_ttl = data.default_ttl.map(Duration::from_secs);
        builder.salt = data.salt;
        builder.hbase = data.hbase;
        builder.build()
    }
}

impl From<TableSpec> for TableData {
    fn from(spec: TableSpec) -> Self {
        let data = |columns: &[Column]| {
            let data = |column: &Column| ColumnData {
                name: column.name.to_string(),
                ty: column.ty,
                order: match column.kind {
                    ColumnKind::Clustering(Order::Descending) => Some(Order::Descending),
                    _ => None,
                },
            };
            columns.iter().map(data).collect()
        };
        Self {
            name: spec.name.to_string(),
            partition: data(spec.partition_key()),
            clustering: data(spec.clustering_key()),
            columns: data(spec.value_columns()),
            default_ttl: spec.default_ttl.map(|seconds| u64::from(seconds.get())),
            salt: spec.salt,
            hbase: spec.hbase,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(builder: TableBuilder) -> String {
        builder.build().unwrap_err().to_string()
    }

    #[test]
    fn a_table_round_trips_through_toml() {
        let spec = TableSpec::builder("property")
            .partition("group", Type::Text)
            .clustering("date", Type::Timestamp, Order::Descending)
            .clustering("part", Type::I32, Order::Ascending)
            .column("value", Type::Blob)
            .default_ttl(Duration::from_secs(60))
            .salt(Salt::Buckets(16))
            .hbase(HBaseMapping { pre_split: Some(super::super::PreSplit::Buckets), ..HBaseMapping::default() })
            .build()
            .unwrap();
        let text = toml::to_string(&spec).unwrap();
        assert_eq!(toml::from_str::<TableSpec>(&text).unwrap(), spec, "{text}");
    }

    #[test]
    fn impossible_declarations_name_the_fault() {
        let base = || TableSpec::builder("t").partition("id", Type::I64);
        assert!(declared(TableSpec::builder("t").column("v", Type::I8)).contains("no partition key"));
        assert!(declared(base().column("id", Type::I8)).contains("declared twice"));
        assert!(declared(base().clustering("c", Type::Counter, Order::Ascending)).contains("counter in the key"));
        assert!(declared(base().column("n", Type::Counter).column("v", Type::I8)).contains("counters beside"));
        assert!(declared(base().column("1st", Type::I8)).contains("\"1st\""));
        assert!(declared(TableSpec::builder("é").partition("id", Type::I64)).contains("table name"));
        assert!(declared(base().salt(Salt::Buckets(0))).contains("salt"));
    }

    #[test]
    fn a_malformed_table_in_toml_names_the_field() {
        let text = "name = 't'\npartition = [{ name = 'id', type = 'i65' }]";
        let message = toml::from_str::<TableSpec>(text).unwrap_err().to_string();
        assert!(message.contains("i65"), "{message}");
        let text = "name = 't'\npartition = [{ name = 'id', type = 'i64' }]\ncolums = []";
        assert!(toml::from_str::<TableSpec>(text).unwrap_err().to_string().contains("colums"));
    }

    #[test]
    fn the_fingerprint_follows_the_key_and_not_the_values() {
        let base = || TableSpec::builder("t").partition("id", Type::I64);
        let plain = base().build().unwrap().layout_fingerprint();
        assert_eq!(base().column("v", Type::I8).build().unwrap().layout_fingerprint(), plain);
        assert_ne!(base().salt(Salt::Buckets(4)).build().unwrap().layout_fingerprint(), plain);
    }
}
