//! Get of one row.

use std::future::IntoFuture;
use std::marker::PhantomData;

use futures::future::{BoxFuture, FutureExt};

use super::{Table, projection, request_options};
use crate::capability::Capability;
use crate::error::{Error, Result};
use crate::model::{FromRow, Key};
use crate::request::{Projection, Read, Request, RequestOptions};

/// A read of one row into `T`; await it to send it.
#[derive(Debug)]
#[must_use = "a get is sent when it is awaited"]
pub struct Get<'a, T> {
    table: &'a Table,
    key: Result<Key>,
    projection: Projection,
    fault: Option<Error>,
    options: RequestOptions,
    target: PhantomData<fn() -> T>,
}

impl<'a, T: FromRow> Get<'a, T> {
    pub(super) fn new(table: &'a Table, key: Result<Key>) -> Self {
        let (projection, options) = (Projection::default(), RequestOptions::default());
        Self { table, key, projection, fault: None, options, target: PhantomData }
    }

    projection!();
    request_options!();

    /// Returns each column's write time, and its time to live where the backend tells it: read into a
    /// [`StoredRow`](crate::model::StoredRow) to see them.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the backend tells no write times.
    pub fn with_meta(mut self) -> Self {
        self.projection.write_time = true;
        self.projection.ttl = self.table.client.capabilities().has(Capability::ReadTtl);
        self
    }

    async fn send(self) -> Result<Option<T>> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let read = Read::Get { key: self.key?, columns: self.projection };
        let request = Request::read(self.table.spec.clone(), read).with_options(self.options);
        let row = self.table.client.call(request).await?.into_row()?;
        row.map(|row| T::from_row(row, &self.table.spec)).transpose()
    }
}

impl<'a, T: FromRow + 'a> IntoFuture for Get<'a, T> {
    type Output = Result<Option<T>>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let table = self.table;
        async move { self.send().await.map_err(|error| error.with_context("get", table.spec.name())) }.boxed()
    }
}
