//! The table and the operations on it.

use std::sync::Arc;

use bytes::Bytes;
use peristyle::codec::ordered::encode_key;
use peristyle::codec::token::{serialise_partition, token};
use peristyle::model::{Key, Salt, StoredRow, TableSpec, Ttl, Type, Value};
use peristyle::request::{Mutation, Projection, Read, Replication, Scan, ScanOrder, ScanRange, Write};
use peristyle::{Capability, Client, Error, ErrorKind, Request, Result};

use crate::settings::Settings;

/// The fields of a write: by number, in the order of [`Store::fields`].
pub type Record = Vec<(usize, Bytes)>;

/// Which fields a read returns.
#[derive(Debug, Clone, Default)]
pub struct Fields(Projection);

/// How scans start at a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The backend orders keys as bytes.
    Keys,
    /// Buckets are merged, behind a key.
    Buckets,
    /// By the hash of the key.
    Tokens,
}

/// A YCSB table, open. Clones share the client.
#[derive(Debug, Clone)]
pub struct Store {
    client: Client,
    spec: Arc<TableSpec>,
    /// The column of each field.
    columns: Arc<[usize]>,
    fields: Arc<[String]>,
    order: Order,
}

impl Store {
    /// Opens the table as the live schema has it where the backend tells it, else as the settings declare it. With
    /// [`create`](Settings::create), makes keyspace and table where they are absent.
    ///
    /// # Errors
    /// Those of the backend; [`SchemaMismatch`](peristyle::ErrorKind::SchemaMismatch) where the table lacks the key or a field.
    pub async fn open(client: Client, settings: &Settings) -> Result<Self> {
        let declared = settings.spec()?;
        if settings.create {
            client.create_namespace(Replication::default()).await?;
            client.create_table_if_absent(&declared).await?;
        }
        let table = if client.capabilities().has(Capability::Introspection) {
            client.introspect(&settings.table).await
        } else {
            client.table(declared).await
        };
        let table = table.map_err(|error| match error.kind() {
            ErrorKind::NotFound => missing(settings, &error),
            _ => error,
        })?;
        let spec = Arc::clone(table.spec());
        check_key(&spec)?;
        let columns = settings.fields.iter().map(|field| field_column(&spec, field)).collect::<Result<Vec<_>>>()?;
        if let Some(buckets) = settings.buckets
            && spec.salt() != Some(Salt::Buckets(buckets))
        {
            return Err(mismatch(&spec, &format!("it is not salted in the {buckets} buckets of peristyle.buckets")));
        }
        let order = match spec.salt() {
            Some(Salt::Buckets(_)) => Order::Buckets,
            None if client.capabilities().has(Capability::OrderedScan) => Order::Keys,
            _ => Order::Tokens,
        };
        Ok(Self { client, spec, columns: columns.into(), fields: settings.fields.clone().into(), order })
    }

    /// The client it works with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The names of the fields.
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// The number of a field.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field == name)
    }

    /// Whether scans return records in the order of their keys; else they do in the order of the keys' hashes.
    pub fn scans_in_key_order(&self) -> bool {
        self.order != Order::Tokens
    }

    /// A choice of fields, by number.
    pub fn choose(&self, fields: impl IntoIterator<Item = usize>) -> Fields {
        let mut columns: Vec<usize> = fields.into_iter().filter_map(|field| self.columns.get(field).copied()).collect();
        columns.sort_unstable();
        columns.dedup();
        Fields(Projection { columns: Some(columns.into()), ..Projection::default() })
    }

    /// The present fields of a row, by number.
    pub fn values<'r>(&'r self, row: &'r StoredRow) -> impl Iterator<Item = (usize, &'r [u8])> {
        self.columns.iter().enumerate().filter_map(|(field, column)| match row.values.get(*column)?.as_ref()? {
            Value::Text(text) => Some((field, text.as_bytes())),
            Value::Blob(bytes) => Some((field, bytes.as_ref())),
            _ => None,
        })
    }

    /// Reads a record; `None` if there is none.
    pub async fn read(&self, key: &str, fields: Fields) -> Result<Option<StoredRow>> {
        let read = Read::Get { key: row_key(key), columns: fields.0 };
        self.client.call(Request::read(Arc::clone(&self.spec), read)).await?.into_row()
    }

    /// Reads at most `count` records from the one of this key on, in the [order](Self::scans_in_key_order) of scans.
    pub async fn scan(&self, start: &str, count: usize, fields: Fields) -> Result<Vec<StoredRow>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let range = match self.order {
            Order::Keys => {
                let mut from = Vec::with_capacity(start.len() + 2);
                encode_key(row_key(start).values(), self.spec.primary_key(), &mut from)?;
                ScanRange::Keys { from: from.into(), to: None }
            }
            Order::Tokens => {
                let first = token(&serialise_partition(row_key(start).values())?);
                ScanRange::Tokens { after: first.saturating_sub(1), to: i64::MAX }
            }
            Order::Buckets => return self.scan_behind(start, count, fields).await,
        };
        let order = if self.order == Order::Keys { ScanOrder::Key } else { ScanOrder::Any };
        let scan = Scan { range, order, after: None, limit: count, columns: fields.0 };
        self.pages(scan).await
    }

    /// A scan can begin behind a key only: so the record of the key itself is read beside it.
    async fn scan_behind(&self, start: &str, count: usize, fields: Fields) -> Result<Vec<StoredRow>> {
        let first = self.read(start, fields.clone());
        let scan = Scan {
            range: ScanRange::All,
            order: ScanOrder::Key,
            after: Some(row_key(start)),
            limit: count,
            columns: fields.0,
        };
        let (first, rest) = tokio::try_join!(first, self.pages(scan))?;
        Ok(first.into_iter().chain(rest).take(count).collect())
    }

    async fn pages(&self, mut scan: Scan) -> Result<Vec<StoredRow>> {
        let count = scan.limit;
        let mut rows: Vec<StoredRow> = Vec::new();
        loop {
            let request = Request::read(Arc::clone(&self.spec), Read::Scan(Box::new(scan.clone())));
            let mut page = self.client.call(request).await?.into_page()?;
            rows.append(&mut page.rows);
            if !page.more || rows.len() >= count {
                return Ok(rows);
            }
            scan.limit = count - rows.len();
            scan.after = rows.last().map(|row| row.key(&self.spec)).transpose()?.or(scan.after);
        }
    }

    /// Writes the given fields of a record: YCSB's insert and update alike. Writes of one record count in the order of these
    /// calls, whichever is awaited first.
    pub fn write(&self, key: &str, record: Record) -> impl Future<Output = Result<()>> + Send + use<> {
        let mutation = self.mutation(key, record);
        let (client, spec) = (self.client.clone(), Arc::clone(&self.spec));
        async move { client.call(Request::write(spec, Write::Apply(mutation?))).await?.into_done() }
    }

    /// Writes many records in one request; each has an outcome of its own, in the order given.
    ///
    /// # Errors
    /// The request as a whole failed: none of them is known to be written.
    pub fn write_all(
        &self,
        records: Vec<(String, Record)>,
    ) -> impl Future<Output = Result<Vec<Result<()>>>> + Send + use<> {
        let (mut mutations, mut outcomes) = (Vec::new(), Vec::new());
        for (key, record) in records {
            outcomes.push(self.mutation(&key, record).map(|mutation| mutations.push(mutation)));
        }
        let (client, spec) = (self.client.clone(), Arc::clone(&self.spec));
        async move {
            if mutations.is_empty() {
                return Ok(outcomes);
            }
            let sent = client.call(Request::write(spec, Write::ApplyAll(mutations))).await?.into_outcomes()?;
            for (outcome, sent) in outcomes.iter_mut().filter(|outcome| outcome.is_ok()).zip(sent) {
                *outcome = sent;
            }
            Ok(outcomes)
        }
    }

    /// Deletes a record.
    pub async fn delete(&self, key: &str) -> Result<()> {
        let write = Write::Apply(Mutation::delete_row(row_key(key), self.client.next_write_time()));
        self.client.call(Request::write(Arc::clone(&self.spec), write)).await?.into_done()
    }

    fn mutation(&self, key: &str, record: Record) -> Result<Mutation> {
        let mut values = Vec::with_capacity(record.len());
        for (field, bytes) in record {
            let column = self.columns.get(field).copied().unwrap_or_default();
            let text = self.spec.columns().get(column).is_some_and(|column| column.ty == Type::Text);
            let value = if text { Value::Text(self.text(field, bytes)?) } else { Value::Blob(bytes) };
            values.push((column, value));
        }
        Ok(Mutation::put(row_key(key), self.client.next_write_time(), values, Ttl::TableDefault))
    }

    /// The memory of bytes that nobody else has becomes that of the text.
    fn text(&self, field: usize, bytes: Bytes) -> Result<String> {
        String::from_utf8(bytes.into()).map_err(|error| {
            let name = self.fields.get(field).map(String::as_str).unwrap_or_default();
            Error::invalid(format!("{name} is a text column, and its value is no UTF-8 ({error}); make the table with peristyle.fieldtype=blob"))
        })
    }
}

fn row_key(key: &str) -> Key {
    Key::new(vec![Value::Text(key.to_owned())])
}

fn missing(settings: &Settings, error: &Error) -> Error {
    let message = format!("{}; peristyle.create=true makes it", error.message());
    Error::new(ErrorKind::NotFound, message).with_context("open", &settings.table)
}

fn mismatch(spec: &TableSpec, why: &str) -> Error {
    let message = format!("{why}; drop it, or choose another table with peristyle.table");
    Error::new(ErrorKind::SchemaMismatch, message).with_context("open", spec.name())
}

fn check_key(spec: &TableSpec) -> Result<()> {
    match spec.primary_key() {
        [key] if key.ty == Type::Text => Ok(()),
        _ => Err(mismatch(spec, "the primary key of a YCSB table is one text column")),
    }
}

fn field_column(spec: &TableSpec, field: &str) -> Result<usize> {
    let column = spec.index_of(field).filter(|column| *column >= spec.key_len());
    let ty = column.and_then(|column| spec.columns().get(column)).map(|column| column.ty);
    match (column, ty) {
        (Some(column), Some(Type::Text | Type::Blob)) => Ok(column),
        (Some(_), Some(ty)) => Err(mismatch(spec, &format!("column {field} is {ty}, not text or blob"))),
        _ => Err(mismatch(spec, &format!("it has no column {field}; check fieldcount and fieldnameprefix"))),
    }
}
