//! Rows as HBase stores them: a row key and cells.

mod cells;
mod key;
mod layout;
mod millis;
mod range;

pub(crate) use self::cells::{is_live_row, newest, stored_row};
pub(crate) use self::key::{RowKeys, append_partition, encode_partition, encode_row_key, has_lossy_key, original};
pub(crate) use self::layout::{Layout, MARKER_VALUE, max_row_key, may_be_empty};
pub(crate) use self::range::{Span, just_below, query_span, scan_spans, unsalted};

#[cfg(test)]
mod tests;
