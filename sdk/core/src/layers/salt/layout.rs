//! How a salted table is stored, and back.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

use crate::codec::ordered::encode_key;
use crate::codec::raw::encode_raw;
use crate::codec::salt::{bucket, salt_prefix};
use crate::declared::DeclaredColumns;
use crate::error::{Error, Result};
use crate::model::{Column, ColumnKind, Key, KeyEncoding, Order, Salt, TableBuilder, TableSpec, Type, Value};
use crate::request::{Read, Write};
use crate::response::Response;

/// The most layouts kept. A program has one for each table; one that declares without end must not fill the memory.
const MAX_LAYOUTS: usize = 256;

/// The layouts of a client's salted tables, by the address of the declaration, which the layout keeps alive.
#[derive(Debug)]
pub(super) struct Layouts {
    one_byte: bool,
    known: RwLock<HashMap<usize, Arc<Layout>>>,
}

impl Layouts {
    pub(super) fn new(one_byte: bool) -> Self {
        Self { one_byte, known: RwLock::default() }
    }

    /// The layout of a declaration that was asked for before.
    pub(super) fn known(&self, table: &TableSpec) -> Option<Arc<Layout>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&std::ptr::from_ref(table).addr()).cloned()
    }

    /// The layout of a table with a salt.
    pub(super) fn of(&self, table: &Arc<TableSpec>) -> Result<Arc<Layout>> {
        if let Some(layout) = self.known(table) {
            return Ok(layout);
        }
        let layout = Arc::new(Layout::new(Arc::clone(table), self.one_byte)?);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_LAYOUTS {
            known.clear();
        }
        known.insert(Arc::as_ptr(table).addr(), Arc::clone(&layout));
        Ok(layout)
    }
}

/// A table as it is declared and as it is stored: with the salt as the first column.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) declared: Arc<TableSpec>,
    pub(super) stored: Arc<TableSpec>,
    salt: Salt,
    columns: DeclaredColumns,
}

impl Layout {
    fn new(declared: Arc<TableSpec>, one_byte: bool) -> Result<Self> {
        let Some(salt) = declared.salt() else {
            return Err(Error::invalid(format!("table {} has no salt", declared.name())));
        };
        let stored = Arc::new(stored(&declared, salt, one_byte)?);
        let columns = DeclaredColumns::behind(1, &declared);
        Ok(Self { declared, stored, salt, columns })
    }

    /// The buckets, where the table is salted in buckets.
    pub(super) fn buckets(&self) -> Option<u16> {
        match self.salt {
            Salt::Buckets(buckets) => Some(buckets),
            Salt::Prefix { .. } => None,
        }
    }

    /// The value of the salt column for a bucket.
    pub(super) fn bucket_value(&self, bucket: u16) -> Value {
        match self.stored.columns().first().map(|column| column.ty) {
            // The least byte is the least value.
            Some(Type::I8) => Value::I8(i8::from_be_bytes([bucket.to_be_bytes()[1] ^ 0x80])),
            _ => Value::I16(i16::try_from(bucket).unwrap_or(i16::MAX)),
        }
    }

    /// The salt of a key, of which the first values are those of the partition key.
    fn salt_value(&self, values: &[Value]) -> Result<Value> {
        let partition = values.get(..self.declared.partition_len()).unwrap_or(values);
        let columns = self.declared.partition_key();
        let mut encoded = Vec::with_capacity(32);
        match self.declared.hbase().map(|mapping| mapping.key_encoding).unwrap_or_default() {
            KeyEncoding::Ordered => encode_key(partition, columns, &mut encoded)?,
            KeyEncoding::Raw => encode_raw(partition, columns, &mut encoded)?,
        }
        Ok(match self.salt {
            Salt::Buckets(buckets) => self.bucket_value(bucket(buckets, &encoded)),
            Salt::Prefix { .. } => Value::Blob(Bytes::copy_from_slice(&salt_prefix(self.salt, &encoded))),
        })
    }

    /// A key of the stored table, from one that is the partition key at least.
    pub(super) fn salted(&self, key: &Key) -> Result<Key> {
        let mut values = Vec::with_capacity(key.values().len() + 1);
        values.push(self.salt_value(key.values())?);
        values.extend_from_slice(key.values());
        Ok(Key::new(values))
    }

    /// The key of the row `key` behind a salt that may not be its own.
    pub(super) fn behind(salt: &Value, key: &Key) -> Key {
        std::iter::once(salt).chain(key.values()).cloned().collect()
    }

    /// A write of the stored table.
    pub(super) fn write(&self, write: &mut Write) -> Result<()> {
        match write {
            Write::Apply(mutation) | Write::CompareAndPut { mutation, .. } => {
                mutation.key = self.salted(&mutation.key)?;
            }
            Write::ApplyAll(mutations) => {
                mutations.iter_mut().try_for_each(|it| self.salted(&it.key).map(|key| it.key = key))?;
            }
            Write::Increment { key, .. } => *key = self.salted(key)?,
        }
        self.columns.write(write);
        Ok(())
    }

    /// A read of the stored table, but for a scan in key order.
    pub(super) fn read(&self, read: &mut Read) -> Result<()> {
        let salted = |key: &Option<Key>| key.as_ref().map(|key| self.salted(key)).transpose();
        match read {
            Read::Get { key, .. } => *key = self.salted(key)?,
            Read::GetAll { keys, .. } => keys.iter_mut().try_for_each(|key| self.salted(key).map(|it| *key = it))?,
            Read::Query(query) => {
                query.after = salted(&query.after)?;
                query.partition = self.salted(&query.partition)?;
                if self.buckets().is_some() {
                    let (salt, partition) = query.partition.values().split_at(1);
                    let prefix = partition.iter().chain(&query.prefix).cloned().collect();
                    (query.partition, query.prefix) = (Key::new(salt.iter().cloned()), prefix);
                }
            }
            Read::Scan(scan) => scan.after = salted(&scan.after)?,
        }
        self.projection(read);
        Ok(())
    }

    /// The projection of a read, by the stored columns.
    pub(super) fn projection(&self, read: &mut Read) {
        if read.columns().columns.is_some() {
            self.columns.read(read);
        }
    }

    /// An answer, by the declared columns.
    pub(super) fn answer(&self, answer: Response) -> Response {
        DeclaredColumns::answer(Some(&self.columns), answer)
    }
}

/// The name of the salt column tells the salt: what `declared` needs to read it back.
fn salt_column(salt: Salt, partition_len: usize) -> String {
    match salt {
        Salt::Buckets(buckets) => format!("bucket_of_{buckets}_by_{partition_len}"),
        Salt::Prefix { first, length } => format!("crc32_bytes_{length}_from_{first}"),
    }
}

fn stored(declared: &TableSpec, salt: Salt, one_byte: bool) -> Result<TableSpec> {
    let name = salt_column(salt, declared.partition_len());
    let builder = TableSpec::builder(Arc::clone(declared.name()));
    let builder = match salt {
        Salt::Buckets(_) => {
            let builder = builder.partition(name, if one_byte { Type::I8 } else { Type::I16 });
            let ascending = |builder: TableBuilder, column: &Column| {
                builder.clustering(Arc::clone(&column.name), column.ty, Order::Ascending)
            };
            declared.partition_key().iter().fold(builder, ascending)
        }
        Salt::Prefix { .. } => {
            let builder = builder.partition(name, Type::Blob);
            let partition =
                |builder: TableBuilder, column: &Column| builder.partition(Arc::clone(&column.name), column.ty);
            declared.partition_key().iter().fold(builder, partition)
        }
    };
    let builder = declared.clustering_key().iter().chain(declared.value_columns()).fold(builder, add);
    with_ttl(builder, declared).build()
}

/// The declaration of a stored table, if its first column is that of a salt.
pub(super) fn declared(stored: &TableSpec) -> Option<TableSpec> {
    let [first, keys @ ..] = stored.primary_key() else { return None };
    let (salt, partition_len) = salt_of(&first.name, stored.partition_len())?;
    let (partition, clustering) = keys.split_at_checked(partition_len)?;
    let builder = TableSpec::builder(Arc::clone(stored.name())).salt(salt);
    let builder =
        partition.iter().fold(builder, |builder, column| builder.partition(Arc::clone(&column.name), column.ty));
    let builder = clustering.iter().chain(stored.value_columns()).fold(builder, add);
    let declared = with_ttl(builder, stored).build().ok()?;
    // A table that only happens to have a column of such a name is as it is.
    let is_ours =
        |one_byte| self::stored(&declared, salt, one_byte).is_ok_and(|made| made.columns() == stored.columns());
    (is_ours(true) || is_ours(false)).then_some(declared)
}

/// The salt, and how many columns the declared partition key has.
fn salt_of(name: &str, stored_partition_len: usize) -> Option<(Salt, usize)> {
    if let Some(rest) = name.strip_prefix("bucket_of_") {
        let (buckets, partition_len) = rest.split_once("_by_")?;
        return Some((Salt::Buckets(buckets.parse().ok()?), partition_len.parse().ok()?));
    }
    let (length, first) = name.strip_prefix("crc32_bytes_")?.split_once("_from_")?;
    let salt = Salt::Prefix { first: first.parse().ok()?, length: length.parse().ok()? };
    Some((salt, stored_partition_len.checked_sub(1)?))
}

fn add(builder: TableBuilder, column: &Column) -> TableBuilder {
    match column.kind {
        ColumnKind::Clustering(order) => builder.clustering(Arc::clone(&column.name), column.ty, order),
        _ => builder.column(Arc::clone(&column.name), column.ty),
    }
}

fn with_ttl(builder: TableBuilder, spec: &TableSpec) -> TableBuilder {
    match spec.default_ttl() {
        Some(seconds) => builder.default_ttl(std::time::Duration::from_secs(u64::from(seconds.get()))),
        None => builder,
    }
}
