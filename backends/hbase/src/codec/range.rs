//! Ranges of row keys.

use std::ops::Bound;

use peristyle_core::codec::ordered::prefix_end;
use peristyle_core::codec::range::{KeyRange, behind, clustering_range};
use peristyle_core::codec::salt::salt_length;
use peristyle_core::model::{Key, KeyEncoding, Salt, Value};
use peristyle_core::request::{Query, Scan, ScanOrder, ScanRange};
use peristyle_core::{Capability, Error, ErrorKind, Result};

use super::Layout;
use super::key::{encode_partition, encode_row_key};
use super::layout::may_be_empty;

/// Row keys from `start`, below `end`; without an end to the end of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Option<Vec<u8>>,
}

impl Span {
    fn new(range: KeyRange) -> Self {
        let (start, end) = range;
        let start = match start {
            Bound::Included(start) => start,
            Bound::Excluded(start) => successor(&start),
            Bound::Unbounded => Vec::new(),
        };
        let end = match end {
            Bound::Excluded(end) => Some(end),
            Bound::Included(end) => Some(successor(&end)),
            Bound::Unbounded => None,
        };
        Self { start, end }
    }

    /// Whether no key lies in it: HBase takes equal bounds for one row.
    pub(crate) fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    /// What is left behind this row, in the direction of the scan.
    pub(crate) fn behind(&mut self, row: &[u8], reverse: bool) {
        if reverse {
            if self.end.as_deref().is_none_or(|end| row < end) {
                self.end = Some(row.to_vec());
            }
        } else if row >= self.start.as_slice() {
            self.start = successor(row);
        }
    }

    /// What lies within another one too.
    fn within(mut self, other: &Self) -> Self {
        self.start = self.start.max(other.start.clone());
        self.end = match (self.end, &other.end) {
            (Some(end), Some(other)) => Some(end.min(other.clone())),
            (end, other) => end.or_else(|| other.clone()),
        };
        self
    }
}

/// The next row key: no key lies between.
fn successor(row: &[u8]) -> Vec<u8> {
    [row, &[0]].concat()
}

/// A key below this one with as good as no keys between, where a reverse scan stops, excluded; empty for the first key. What
/// comes from between all the same must be passed over.
pub(crate) fn just_below(row: &[u8]) -> Vec<u8> {
    match row.split_last() {
        None => Vec::new(),
        Some((0, rest)) => rest.to_vec(),
        Some((last, rest)) => [rest, &[last - 1], &[0xff; 9]].concat(),
    }
}

/// The row keys of a query.
pub(crate) fn query_span(layout: &Layout, query: &Query) -> Result<Span> {
    let spec = &*layout.spec;
    let partition = query.partition.values();
    let (lower, upper) = (query.lower.as_ref(), query.upper.as_ref());
    let mut span = match layout.encoding {
        KeyEncoding::Ordered => {
            let range = clustering_range(spec.primary_key(), partition, &query.prefix, lower, upper)?;
            Span::new(match spec.salt() {
                Some(salt) => behind(&salt_of(salt, layout, partition)?, &range),
                None => range,
            })
        }
        KeyEncoding::Raw => raw_span(layout, query, (lower, upper))?,
    };
    if let Some(after) = &query.after {
        span.behind(&encode_row_key(layout, after.values())?, query.reverse);
    }
    Ok(span)
}

fn salt_of(salt: Salt, layout: &Layout, partition: &[Value]) -> Result<Vec<u8>> {
    let mut salted = encode_partition(layout, partition)?;
    salted.truncate(salt_length(salt));
    Ok(salted)
}

/// Raw keys of numbers don't lie in the numbers' order, so ranges go over text and blobs alone.
fn raw_span(layout: &Layout, query: &Query, (lower, upper): (Bound<&Value>, Bound<&Value>)) -> Result<Span> {
    let spec = &*layout.spec;
    let mut values = query.partition.values().to_vec();
    values.extend(query.prefix.iter().cloned());
    let base = encode_row_key(layout, &values)?;
    let Some(column) = spec.clustering_key().get(query.prefix.len()) else {
        return Ok(Span { end: Some(successor(&base)), start: base });
    };
    if !may_be_empty(column.ty) {
        let message = format!(
            "raw keys keep no order of {}, a {}; read single rows or scan, or use the key encoding \"ordered\"",
            column.name, column.ty
        );
        return Err(Error::invalid(message));
    }
    let edge = |value: &Value| encode_row_key(layout, &[values.as_slice(), std::slice::from_ref(value)].concat());
    let start = match lower {
        Bound::Unbounded => base.clone(),
        Bound::Included(value) => edge(value)?,
        Bound::Excluded(value) => successor(&edge(value)?),
    };
    let end = match upper {
        Bound::Unbounded => prefix_end(&base),
        Bound::Included(value) => Some(successor(&edge(value)?)),
        Bound::Excluded(value) => Some(edge(value)?),
    };
    Ok(Span { start, end })
}

/// The row keys of a scan: one span, or for a salted table in key order one for each salt, whose rows are to be merged.
pub(crate) fn scan_spans(layout: &Layout, scan: &Scan) -> Result<Vec<Span>> {
    let whole = match &scan.range {
        ScanRange::All => Span { start: Vec::new(), end: None },
        ScanRange::Keys { from, to } => Span { start: from.to_vec(), end: to.as_ref().map(|to| to.to_vec()) },
        ScanRange::Tokens { .. } => return Err(Error::invalid("a scan by tokens; HBase splits tables by keys")),
    };
    if scan.order == ScanOrder::Key && layout.encoding == KeyEncoding::Raw {
        return Err(unordered("raw keys keep no order of numbers; scan in any order"));
    }
    match layout.spec.salt().filter(|_| scan.order == ScanOrder::Key) {
        None => {
            let mut rest = whole;
            if let Some(after) = &scan.after {
                rest.behind(&encode_row_key(layout, after.values())?, false);
            }
            Ok(vec![rest])
        }
        Some(salt) => salted_spans(layout, salt, &whole, scan.after.as_ref()),
    }
}

fn salted_spans(layout: &Layout, salt: Salt, whole: &Span, after: Option<&Key>) -> Result<Vec<Span>> {
    let salts = match salt {
        Salt::Buckets(buckets) => buckets,
        Salt::Prefix { length: 1, .. } => 256,
        _ => return Err(unordered("a salt of several bytes has too many values to merge; scan in any order")),
    };
    let after = match after {
        Some(after) => encode_row_key(layout, after.values())?.split_off(salt_length(salt)),
        None => Vec::new(),
    };
    let span = |byte: u16| {
        let prefix = [u8::try_from(byte).unwrap_or(u8::MAX)];
        let mut span = Span { start: prefix.to_vec(), end: prefix_end(&prefix) };
        if !after.is_empty() {
            span.behind(&[&prefix, after.as_slice()].concat(), false);
        }
        span.within(whole)
    };
    Ok((0..salts).map(span).filter(|span| !span.is_empty()).collect())
}

/// What is behind the salt: the order of a salted table's rows.
pub(crate) fn unsalted<'a>(layout: &Layout, row: &'a [u8]) -> &'a [u8] {
    let length = layout.spec.salt().map_or(0, |salt: Salt| salt_length(salt));
    row.get(length..).unwrap_or_default()
}

fn unordered(message: &str) -> Error {
    Error::new(ErrorKind::Unsupported(Capability::OrderedScan), message)
}
