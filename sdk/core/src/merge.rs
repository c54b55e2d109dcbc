//! Pages in the order of keys, merged from several sources that each are in that order: the buckets of a salted table.

use std::collections::VecDeque;
use std::future::Future;

use futures::stream::{self, StreamExt, TryStreamExt};

use crate::error::Result;
use crate::model::StoredRow;
use crate::response::Page;

/// Sources that are asked at a time.
const AT_A_TIME: usize = 32;
/// Rows asked of a source beyond its share of the page: sources are not quite equal.
const SPARE: usize = 4;

/// Rows in the order of their keys, part by part.
pub trait Source: Send {
    /// The next rows, each with the bytes that its place in the order is told by. About so many, and none only if there are none
    /// among those that were looked at.
    ///
    /// # Errors
    /// What keeps them from being read.
    fn next(&mut self, wanted: usize) -> impl Future<Output = Result<Part>> + Send;
}

/// Rows of one source.
#[derive(Debug, Default)]
pub struct Part {
    /// The rows and the bytes of their keys, in order.
    pub rows: Vec<(Vec<u8>, StoredRow)>,
    /// Whether others may come behind them.
    pub more: bool,
}

/// A page of the first `limit` rows of all sources, which are read side by side, 32 at a time.
///
/// # Errors
/// The first one of a source.
pub async fn merge(sources: impl IntoIterator<Item = impl Source>, limit: usize) -> Result<Page> {
    let mut heads: Vec<Head<_>> = sources.into_iter().map(Head::new).collect();
    let share = limit.div_ceil(heads.len().max(1)) + SPARE;
    let mut page = Page::default();
    while page.rows.len() < limit {
        let fills: Vec<_> = heads.iter_mut().filter(|head| head.is_starved()).map(|head| head.fill(share)).collect();
        stream::iter(fills).buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
        let full = heads.iter_mut().filter(|head| !head.rows.is_empty());
        let least = full.min_by(|a, b| a.key().cmp(&b.key()));
        let Some((_, row)) = least.and_then(|head| head.rows.pop_front()) else { return Ok(page) };
        page.rows.push(row);
    }
    page.more = heads.iter().any(|head| head.more || !head.rows.is_empty());
    Ok(page)
}

/// A source, and those of its rows that were read.
struct Head<S> {
    source: S,
    rows: VecDeque<(Vec<u8>, StoredRow)>,
    more: bool,
}

impl<S: Source> Head<S> {
    fn new(source: S) -> Self {
        Self { source, rows: VecDeque::new(), more: true }
    }

    fn is_starved(&self) -> bool {
        self.rows.is_empty() && self.more
    }

    fn key(&self) -> Option<&[u8]> {
        self.rows.front().map(|(key, _)| key.as_slice())
    }

    async fn fill(&mut self, wanted: usize) -> Result<()> {
        while self.is_starved() {
            let part = self.source.next(wanted).await?;
            self.rows.extend(part.rows);
            self.more = part.more;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Value;

    /// Numbers in parts of so many, every third of which is empty.
    struct Numbers {
        left: VecDeque<u8>,
        part: usize,
        calls: usize,
    }

    impl Source for Numbers {
        async fn next(&mut self, _: usize) -> Result<Part> {
            self.calls += 1;
            let taken = if self.calls.is_multiple_of(3) { 0 } else { self.part.min(self.left.len()) };
            let row = |number: u8| {
                (vec![number], StoredRow { values: vec![Some(Value::from(i64::from(number)))], meta: Vec::new() })
            };
            let rows = self.left.drain(..taken).map(row).collect();
            Ok(Part { rows, more: !self.left.is_empty() })
        }
    }

    fn sources() -> Vec<Numbers> {
        let source =
            |start: u8, step: usize, part| Numbers { left: (start..40).step_by(step).collect(), part, calls: 0 };
        vec![source(0, 2, 1), source(1, 4, 3), source(3, 4, 7), source(200, 1, 1)]
    }

    #[tokio::test]
    async fn rows_of_all_sources_come_in_order_up_to_the_limit() {
        for (limit, found, more) in [(0, 0_i64, true), (7, 7, true), (39, 39, true), (40, 40, false), (99, 40, false)] {
            let page = merge(sources(), limit).await.unwrap();
            let numbers: Vec<_> = page.rows.into_iter().map(|row| row.values).collect();
            let expected: Vec<_> = (0..found).map(|number| vec![Some(Value::from(number))]).collect();
            assert_eq!((numbers, page.more), (expected, more), "limit {limit}");
        }
        assert!(!merge(Vec::<Numbers>::new(), 5).await.unwrap().more);
    }
}
