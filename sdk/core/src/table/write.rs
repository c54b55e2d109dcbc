//! Put and delete of one row.

use std::future::IntoFuture;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};

use super::{Table, request_options};
use crate::error::{Error, Result};
use crate::model::{Key, Ttl, WriteTime};
use crate::request::{Mutation, Request, RequestOptions, Write};

/// A put of one row; await it to send it.
#[derive(Debug)]
#[must_use = "a put is sent when it is awaited"]
pub struct Put<'a> {
    table: &'a Table,
    mutation: Result<Mutation>,
    ttl: Result<Ttl>,
    write_time: Option<WriteTime>,
    replace: bool,
    options: RequestOptions,
}

impl<'a> Put<'a> {
    pub(super) fn new(table: &'a Table, mutation: Result<Mutation>) -> Self {
        Self {
            table,
            mutation,
            ttl: Ok(Ttl::TableDefault),
            write_time: None,
            replace: false,
            options: RequestOptions::default(),
        }
    }

    /// The columns live this long, rounded up to whole seconds; default: the table's default.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Ttl::after(ttl);
        self
    }

    /// The columns live for ever, whatever the table's default.
    pub fn no_ttl(mut self) -> Self {
        self.ttl = Ok(Ttl::Never);
        self
    }

    /// Happens at this time rather than now.
    pub fn write_time(mut self, time: WriteTime) -> Self {
        self.write_time = Some(time);
        self
    }

    /// Replaces the whole row in one atomic step: columns that aren't given become absent.
    pub fn replace(mut self) -> Self {
        self.replace = true;
        self
    }

    request_options!();

    async fn send(self) -> Result<()> {
        let mut put = self.mutation?.with_ttl(self.ttl?);
        put.write_time = self.write_time.unwrap_or_else(|| self.table.client.next_write_time());
        let mutation = if self.replace { put.replacing() } else { put };
        apply(self.table, mutation, self.options).await
    }
}

async fn apply(table: &Table, mutation: Mutation, options: RequestOptions) -> Result<()> {
    let request = Request::write(table.spec.clone(), Write::Apply(mutation)).with_options(options);
    table.client.call(request).await?.into_done()
}

impl<'a> IntoFuture for Put<'a> {
    type Output = Result<()>;
    type IntoFuture = BoxFuture<'a, Result<()>>;

    fn into_future(self) -> Self::IntoFuture {
        let table = self.table;
        async move { self.send().await.map_err(|error| error.with_context("put", table.spec.name())) }.boxed()
    }
}

/// A delete of a row, of some of its columns, or of a partition; await it to send it.
#[derive(Debug)]
#[must_use = "a delete is sent when it is awaited"]
pub struct Delete<'a> {
    table: &'a Table,
    key: Result<Key>,
    target: Target,
    write_time: Option<WriteTime>,
    options: RequestOptions,
}

#[derive(Debug)]
enum Target {
    Row,
    Columns(Vec<usize>),
    Partition,
}

impl<'a> Delete<'a> {
    pub(super) fn row(table: &'a Table, key: Result<Key>) -> Self {
        Self { table, key, target: Target::Row, write_time: None, options: RequestOptions::default() }
    }

    pub(super) fn partition(table: &'a Table, key: Result<Key>) -> Self {
        Self { target: Target::Partition, ..Self::row(table, key) }
    }

    /// Deletes only these columns.
    pub fn columns<'c>(mut self, names: impl IntoIterator<Item = &'c str>) -> Self {
        let spec = &self.table.spec;
        let indexes: Result<Vec<usize>> = names.into_iter().map(|name| spec.require(name)).collect();
        match (indexes, &self.target) {
            (_, Target::Partition) => self.key = Err(Error::invalid("a partition delete has no columns; delete rows")),
            (Ok(indexes), _) => self.target = Target::Columns(indexes),
            (Err(error), _) => self.key = Err(error),
        }
        self
    }

    /// Happens at this time rather than now: what was written later stays.
    pub fn write_time(mut self, time: WriteTime) -> Self {
        self.write_time = Some(time);
        self
    }

    request_options!();

    async fn send(self) -> Result<()> {
        let key = self.key?;
        let time = self.write_time.unwrap_or_else(|| self.table.client.next_write_time());
        let mutation = match self.target {
            Target::Row => Mutation::delete_row(key, time),
            Target::Columns(columns) => Mutation::delete_columns(key, time, columns),
            Target::Partition => Mutation::delete_partition(key, time),
        };
        apply(self.table, mutation, self.options).await
    }
}

impl<'a> IntoFuture for Delete<'a> {
    type Output = Result<()>;
    type IntoFuture = BoxFuture<'a, Result<()>>;

    fn into_future(self) -> Self::IntoFuture {
        let table = self.table;
        async move { self.send().await.map_err(|error| error.with_context("delete", table.spec.name())) }.boxed()
    }
}
