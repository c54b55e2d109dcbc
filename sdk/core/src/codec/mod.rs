//! Bytes: values as CQL sends them, keys whose byte order is the order of the typed tuples, HBase's own layout, salts and
//! partition tokens. Every backend uses these, so a row has one key wherever it is stored.

pub mod value;

use crate::error::{Error, ErrorKind};

fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}
