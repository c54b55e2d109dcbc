//! How row keys are salted.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What is put before a row key to spread writes over regions or partitions. It is computed from the CRC32 (IEEE) of the
/// encoded partition key, stored with the table, and checked when the table is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Salt {
    /// Some bytes of the big-endian CRC32.
    Prefix {
        /// The first byte taken, 0 to 3.
        first: u8,
        /// How many bytes are taken, 1 to 4.
        length: u8,
    },
    /// The CRC32 modulo this many buckets, 1 to 256: one byte on HBase and embedded, a leading partition column on CQL.
    Buckets(u16),
}

impl Salt {
    /// The two middle bytes of the CRC32, as existing HBase tables have them.
    pub const MIDDLE_BYTES: Self = Self::Prefix { first: 1, length: 2 };

    /// Checks the numbers.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) where bytes outside the four of a CRC32 are asked for, or
    /// buckets outside 1 to 256.
    pub fn validate(self) -> Result<()> {
        match self {
            Self::Prefix { first, length } if length == 0 || first.saturating_add(length) > 4 => Err(Error::invalid(
                format!("salt prefix of {length} bytes from byte {first}: a CRC32 has the bytes 0 to 3"),
            )),
            Self::Buckets(buckets) if !(1..=256).contains(&buckets) => {
                Err(Error::invalid(format!("{buckets} salt buckets: choose 1 to 256")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_outside_the_crc_and_too_many_buckets_are_refused() {
        assert!(Salt::MIDDLE_BYTES.validate().is_ok());
        for salt in [
            Salt::Prefix { first: 3, length: 2 },
            Salt::Prefix { first: 0, length: 0 },
            Salt::Prefix { first: 255, length: 255 },
            Salt::Buckets(0),
            Salt::Buckets(257),
        ] {
            assert!(salt.validate().is_err(), "{salt:?}");
        }
    }
}
