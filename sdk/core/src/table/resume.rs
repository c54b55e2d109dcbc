//! Where a query or scan goes on.

use std::fmt;
use std::str::FromStr;

use bytes::{Buf, Bytes};

use crate::codec::value::{decode_value, encode_value};
use crate::error::{Error, Result};
use crate::model::{Key, TableSpec};

/// The place behind the last row of a page: the row's key, bound to the table's layout. As text it can be stored, and used
/// after a restart, by another process, or after the schema gained columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResumeToken {
    layout: u32,
    /// Each key value: length as u32, bytes.
    key: Vec<u8>,
}

impl ResumeToken {
    pub(super) fn new(spec: &TableSpec, last: &Key) -> Self {
        let mut key = Vec::new();
        for value in last.values() {
            let mut bytes = Vec::with_capacity(value.size());
            encode_value(value, &mut bytes);
            key.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
            key.extend(bytes);
        }
        Self { layout: spec.layout_fingerprint(), key }
    }

    /// The key of the last row.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the token is of another table or layout.
    pub(super) fn key(&self, spec: &TableSpec) -> Result<Key> {
        if self.layout != spec.layout_fingerprint() {
            return Err(Error::invalid(format!(
                "the resume token belongs to another table, or table {} has another key now; start from the beginning",
                spec.name()
            )));
        }
        let mut rest = Bytes::copy_from_slice(&self.key);
        let mut values = Vec::with_capacity(spec.key_len());
        for column in spec.primary_key() {
            let garbled = || Error::invalid("the resume token is garbled; start from the beginning");
            let len = rest.try_get_u32().ok().and_then(|len| usize::try_from(len).ok()).ok_or_else(garbled)?;
            if len > rest.len() {
                return Err(garbled());
            }
            values.push(decode_value(column.ty, rest.split_to(len)).map_err(|_| garbled())?);
        }
        Ok(Key::new(values))
    }
}

/// Hexadecimal digits: the format, the layout, the key.
impl fmt::Display for ResumeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "01{:08x}", self.layout)?;
        self.key.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for ResumeToken {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::invalid("that is no resume token; give one exactly as it was printed");
        let body = text.strip_prefix("01").filter(|body| body.is_ascii() && body.len() >= 8).ok_or_else(wrong)?;
        let (layout, key) = body.split_at(8);
        let layout = u32::from_str_radix(layout, 16).map_err(|_| wrong())?;
        if key.len() % 2 != 0 {
            return Err(wrong());
        }
        let byte = |pair: &[u8]| {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| !pair.starts_with('+'))?;
            u8::from_str_radix(pair, 16).ok()
        };
        let key: Option<Vec<u8>> = key.as_bytes().chunks(2).map(byte).collect();
        Ok(Self { layout, key: key.ok_or_else(wrong)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Order, Type, Value};

    #[test]
    fn a_token_survives_text_and_refuses_other_tables() {
        let table = |name: &str| {
            let builder = TableSpec::builder(name).partition("id", Type::Text);
            builder.clustering("c", Type::I32, Order::Descending).build().unwrap()
        };
        let key = Key::new(vec![Value::from("é"), Value::from(-7)]);
        let token = ResumeToken::new(&table("t"), &key);
        let read: ResumeToken = token.to_string().parse().unwrap();
        assert_eq!(read, token);
        assert_eq!(read.key(&table("t")).unwrap(), key);
        assert!(read.key(&table("u")).unwrap_err().to_string().contains("another table"));
    }

    #[test]
    fn garbled_tokens_are_refused() {
        let spec = TableSpec::builder("t").partition("id", Type::I64).build().unwrap();
        let token = ResumeToken::new(&spec, &Key::new(vec![Value::from(1_i64)])).to_string();
        for text in ["", "01", "02aaaaaaaa", "01zzzzzzzz", "01aaaaaaaa0", "01aaaaaaaa+1", "01éééé"] {
            assert!(text.parse::<ResumeToken>().is_err(), "{text}");
        }
        let cut: ResumeToken = token[..token.len() - 2].parse().unwrap();
        assert!(cut.key(&spec).is_err());
    }
}
