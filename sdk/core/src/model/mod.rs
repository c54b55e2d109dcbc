//! The typed model: tables declared once, values, keys and rows.

mod convert;
pub(crate) mod key;
mod mapping;
mod number;
mod row;
mod salt;
mod scalar;
mod serde;
mod table;
mod ttl;
mod value;

pub use self::convert::FromValueError;
pub use self::key::Key;
pub use self::mapping::{BlockEncoding, Compression, HBaseMapping, KeyEncoding, PreSplit};
pub use self::number::{Decimal, ParseNumberError, Varint};
pub use self::row::{CellMeta, Row, RowValues, StoredRow};
pub use self::salt::Salt;
pub use self::scalar::{Date, Time, Timestamp, Type};
pub use self::serde::{FromRow, ToKey, ToRow, ToValue};
pub use self::table::{Column, ColumnKind, Order, TableBuilder, TableSpec};
pub use self::ttl::{Ttl, WriteTime};
pub use self::value::Value;
