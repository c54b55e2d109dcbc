//! Pages and streams, the same for queries and scans.

use futures::stream::{self, Stream, TryStreamExt};

use super::{ResumeToken, Table};
use crate::error::{Error, Result};
use crate::model::{FromRow, Key, StoredRow};
use crate::request::{Query, Read, Request, RequestOptions, Scan};
use crate::response::Page;

/// The rows of one page, and where the next one starts.
#[derive(Debug, Clone, PartialEq)]
pub struct RowPage<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Where the next page starts; `None` at the end. It may be stored, and used after a restart.
    pub next: Option<ResumeToken>,
}

/// A read that goes page by page.
#[derive(Debug, Clone)]
pub(super) enum Paged {
    Query(Query),
    Scan(Scan),
}

impl Paged {
    fn read(&self) -> Read {
        match self {
            Self::Query(query) => Read::Query(Box::new(query.clone())),
            Self::Scan(scan) => Read::Scan(Box::new(scan.clone())),
        }
    }

    pub(super) fn resume(&mut self, key: Key) {
        match self {
            Self::Query(query) => query.after = Some(key),
            Self::Scan(scan) => scan.after = Some(key),
        }
    }

    fn limit(&mut self) -> &mut usize {
        match self {
            Self::Query(query) => &mut query.limit,
            Self::Scan(scan) => &mut scan.limit,
        }
    }
}

/// Goes through the pages of one read, up to a number of rows.
#[derive(Debug, Clone)]
pub(super) struct Pager {
    pub(super) table: Table,
    pub(super) paged: Paged,
    pub(super) options: RequestOptions,
    pub(super) page_size: usize,
    /// The rows still wanted.
    pub(super) left: usize,
}

impl Pager {
    /// The next page; `None` when nothing is left.
    async fn next_page(&mut self) -> Result<Option<Page>> {
        if self.left == 0 {
            return Ok(None);
        }
        *self.paged.limit() = self.page_size.min(self.left);
        let request = Request::read(self.table.spec.clone(), self.paged.read()).with_options(self.options);
        let page = self.table.client.call(request).await?.into_page()?;
        self.left = self.left.saturating_sub(page.rows.len());
        match page.rows.last().filter(|_| page.more) {
            Some(last) => self.paged.resume(last.key(&self.table.spec)?),
            None => self.left = 0,
        }
        Ok(Some(page))
    }

    /// One page, and the token of the next one.
    pub(super) async fn page<T: FromRow>(mut self) -> Result<RowPage<T>> {
        let spec = self.table.spec.clone();
        let page = self.next_page().await?.unwrap_or_default();
        let next = match page.rows.last().filter(|_| page.more) {
            Some(last) => Some(ResumeToken::new(&spec, &last.key(&spec)?)),
            None => None,
        };
        let rows = page.rows.into_iter().map(|row| T::from_row(row, &spec)).collect::<Result<_>>()?;
        Ok(RowPage { rows, next })
    }

    fn stored(self) -> impl Stream<Item = Result<StoredRow>> + Send {
        let pages = stream::try_unfold(self, |mut pager| async move {
            let page = pager.next_page().await?;
            Ok::<_, Error>(page.map(|page| (stream::iter(page.rows.into_iter().map(Ok)), pager)))
        });
        pages.try_flatten()
    }

    /// All rows, one after the other, page by page.
    pub(super) fn rows<T: FromRow + Send>(self) -> impl Stream<Item = Result<T>> + Send {
        let spec = self.table.spec.clone();
        self.stored().and_then(move |row| std::future::ready(T::from_row(row, &spec)))
    }
}
