//! Increments and conditional puts: what must not be sent twice.

use std::future::IntoFuture;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};

use super::{Table, request_options};
use crate::error::Result;
use crate::model::{Key, Row, ToValue, Ttl};
use crate::request::{Condition, Mutation, Request, RequestOptions, SerialConsistency, Write};

/// An increment of counters of one row; await it to send it.
#[derive(Debug)]
#[must_use = "an increment is sent when it is awaited"]
pub struct Increment<'a> {
    table: &'a Table,
    key: Result<Key>,
    deltas: Vec<(usize, i64)>,
    options: RequestOptions,
}

impl<'a> Increment<'a> {
    pub(super) fn new(table: &'a Table, key: Result<Key>) -> Self {
        Self { table, key, deltas: Vec::new(), options: RequestOptions::default() }
    }

    /// Adds this to a counter, which starts at 0; may be negative. Wraps around at the ends of 64 bits.
    pub fn by(mut self, column: &str, delta: i64) -> Self {
        match self.table.spec.require(column) {
            Ok(index) => match self.deltas.iter_mut().find(|(existing, _)| *existing == index) {
                Some((_, sum)) => *sum = sum.wrapping_add(delta),
                None => self.deltas.push((index, delta)),
            },
            Err(error) => self.key = Err(error),
        }
        self
    }

    request_options!();

    async fn send(self) -> Result<()> {
        let write = Write::Increment { key: self.key?, deltas: self.deltas };
        let request = Request::write(self.table.spec.clone(), write).with_options(self.options);
        self.table.client.call(request).await?.into_done()
    }
}

impl<'a> IntoFuture for Increment<'a> {
    type Output = Result<()>;
    type IntoFuture = BoxFuture<'a, Result<()>>;

    fn into_future(self) -> Self::IntoFuture {
        let table = self.table;
        async move { self.send().await.map_err(|error| error.with_context("increment", table.spec.name())) }.boxed()
    }
}

/// A conditional put of one row; await it to send it.
#[derive(Debug)]
#[must_use = "a conditional put is sent when it is awaited"]
pub struct CompareAndPut<'a> {
    table: &'a Table,
    mutation: Result<Mutation>,
    condition: Condition,
    ttl: Result<Ttl>,
    options: RequestOptions,
}

/// What became of a conditional put.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Whether the condition held and the row was put.
    pub applied: bool,
    /// What was there instead, if the server told: at least the column of the condition.
    pub current: Option<Row>,
}

impl<'a> CompareAndPut<'a> {
    pub(super) fn new(table: &'a Table, mutation: Result<Mutation>) -> Self {
        let options = RequestOptions::default();
        Self { table, mutation, condition: Condition::RowAbsent, ttl: Ok(Ttl::TableDefault), options }
    }

    /// Puts if the row doesn't exist; the default.
    pub fn if_absent(mut self) -> Self {
        self.condition = Condition::RowAbsent;
        self
    }

    /// Puts if the column is absent; an absent row counts.
    pub fn if_column_absent(mut self, column: &str) -> Self {
        match self.table.spec.require(column) {
            Ok(index) => self.condition = Condition::ColumnAbsent(index),
            Err(error) => self.mutation = Err(error),
        }
        self
    }

    /// Puts if the column has this value.
    pub fn if_equals<V: ToValue + ?Sized>(mut self, column: &str, value: &V) -> Self {
        let spec = &self.table.spec;
        let condition = spec.require(column).and_then(|index| {
            let value = spec.columns().get(index).map(|column| value.to_value(column)).transpose()?;
            Ok(value.map_or(Condition::ColumnAbsent(index), |value| Condition::ColumnEquals(index, value)))
        });
        match condition {
            Ok(condition) => self.condition = condition,
            Err(error) => self.mutation = Err(error),
        }
        self
    }

    /// The columns live this long, rounded up to whole seconds; default: the table's default.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Ttl::after(ttl);
        self
    }

    /// How many replicas must agree; default: the client's setting.
    pub fn serial_consistency(mut self, level: SerialConsistency) -> Self {
        self.options.serial_consistency = Some(level);
        self
    }

    request_options!();

    async fn send(self) -> Result<Compared> {
        let mutation = self.mutation?.with_ttl(self.ttl?);
        let write = Write::CompareAndPut { mutation, condition: self.condition };
        let request = Request::write(self.table.spec.clone(), write).with_options(self.options);
        let comparison = self.table.client.call(request).await?.into_comparison()?;
        let current = comparison.current.map(|row| row.into_row(&self.table.spec));
        Ok(Compared { applied: comparison.applied, current })
    }
}

impl<'a> IntoFuture for CompareAndPut<'a> {
    type Output = Result<Compared>;
    type IntoFuture = BoxFuture<'a, Result<Compared>>;

    fn into_future(self) -> Self::IntoFuture {
        let table = self.table;
        async move { self.send().await.map_err(|error| error.with_context("compare_and_put", table.spec.name())) }
            .boxed()
    }
}
