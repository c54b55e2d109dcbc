//! Salts: what is put before row keys to spread them, from the CRC32 (IEEE) of the encoded partition key.
//!
//! The low bits of a CRC32 are linear in the input: they spread what applications write, not what an adversary chooses.

use std::ops::Deref;

use super::corrupt;
use crate::error::Result;
use crate::model::Salt;

/// The bytes of a salt: at most four, on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SaltBytes {
    bytes: [u8; 4],
    length: usize,
}

impl Deref for SaltBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&self.bytes)
    }
}

/// What is put before the row keys of a partition.
///
/// ```
/// use peristyle_core::codec::salt::salt_prefix;
/// use peristyle_core::model::Salt;
///
/// let key = 1_i64.to_be_bytes();
/// assert_eq!(*salt_prefix(Salt::MIDDLE_BYTES, &key), [0x25, 0xef]);
/// ```
pub fn salt_prefix(salt: Salt, encoded_partition: &[u8]) -> SaltBytes {
    let (first, length) = match salt {
        Salt::Prefix { first, length } => (first, length),
        Salt::Buckets(buckets) => {
            let [_, low] = bucket(buckets, encoded_partition).to_be_bytes();
            return SaltBytes { bytes: [low, 0, 0, 0], length: 1 };
        }
    };
    let crc = crc32fast::hash(encoded_partition);
    let bits = crc.checked_shl(8 * u32::from(first)).unwrap_or(0);
    let unused = 32_u32.saturating_sub(8 * u32::from(length));
    let kept = bits & u32::MAX.checked_shl(unused).unwrap_or(0);
    SaltBytes { bytes: kept.to_be_bytes(), length: salt_length(salt) }
}

/// How many bytes the salt has: 1 to 4.
pub fn salt_length(salt: Salt) -> usize {
    match salt {
        Salt::Prefix { length, .. } => usize::from(length).min(4),
        Salt::Buckets(_) => 1,
    }
}

/// Which of so many buckets a partition is in; 0 where there are none.
pub fn bucket(buckets: u16, encoded_partition: &[u8]) -> u16 {
    let bucket = crc32fast::hash(encoded_partition).checked_rem(u32::from(buckets));
    bucket.and_then(|bucket| u16::try_from(bucket).ok()).unwrap_or(0)
}

/// Takes the salt off a row key, and checks that its partition has it. `partition_length` tells how many bytes of the key
/// behind the salt are the encoded partition key.
///
/// # Errors
/// [`Corrupt`](crate::ErrorKind::Corrupt) for another salt than the partition's, and for a key shorter than a salt;
/// and what `partition_length` finds.
pub fn check_salted<'a>(
    salt: Salt,
    row_key: &'a [u8],
    partition_length: impl FnOnce(&'a [u8]) -> Result<usize>,
) -> Result<&'a [u8]> {
    let length = salt_length(salt);
    let Some((found, key)) = row_key.split_at_checked(length) else {
        return Err(corrupt(format!("a row key of {} bytes is shorter than its salt of {length}", row_key.len())));
    };
    let partition_length = partition_length(key)?;
    let partition = key.get(..partition_length).unwrap_or(key);
    let expected = salt_prefix(salt, partition);
    if found == &*expected {
        return Ok(key);
    }
    let expected = &*expected;
    Err(corrupt(format!(
        "a row key has the salt {found:02x?}, but its partition key gives {expected:02x?}: the table was written with another salt \
         than {salt:?}, or with none"
    )))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ErrorKind;

    fn any_salt() -> impl Strategy<Value = Salt> {
        let prefix = (0_u8..4).prop_flat_map(|first| (Just(first), 1..=4 - first));
        prop_oneof![
            prefix.prop_map(|(first, length)| Salt::Prefix { first, length }),
            (1_u16..=256).prop_map(Salt::Buckets),
        ]
    }

    /// Computed with zlib: the CRC as an 8-byte big-endian long, of which bytes 5 and 6 are the salt.
    #[test]
    fn the_middle_bytes_are_those_of_existing_tables() {
        let vectors: [(i64, [u8; 2]); 12] = [
            (0, [0x22, 0xdf]),
            (1, [0x25, 0xef]),
            (2, [0x2c, 0xbe]),
            (3, [0x2b, 0x8e]),
            (42, [0x99, 0x16]),
            (255, [0x20, 0x30]),
            (256, [0x39, 0xee]),
            (1000, [0xde, 0xe6]),
            (1_000_000, [0xed, 0xf4]),
            (-1, [0x44, 0xdf]),
            (i64::MAX, [0x7f, 0x5a]),
            (i64::MIN, [0x19, 0x5a]),
        ];
        for (key, salt) in vectors {
            let bytes = key.to_be_bytes();
            assert_eq!(*salt_prefix(Salt::MIDDLE_BYTES, &bytes), salt, "{key}");
            let long = u64::from(crc32fast::hash(&bytes)).to_be_bytes();
            assert_eq!(long[5..7], salt, "{key}");
        }
    }

    #[test]
    fn the_crc_is_zlibs_and_buckets_are_its_remainders() {
        let vectors: [(&[u8], u32, [u16; 5]); 7] = [
            (b"a", 0xe8b7_be43, [1, 3, 7, 3, 67]),
            (b"row1", 0x9259_d41d, [1, 5, 1, 13, 29]),
            (b"user:42", 0x646f_0d86, [0, 6, 8, 6, 134]),
            (b"123456789", 0xcbf4_3926, [0, 6, 2, 6, 38]),
            (b"\0", 0xd202_ef8d, [1, 5, 7, 13, 141]),
            (b"\xff", 0xff00_0000, [0, 0, 0, 0, 0]),
            (b"\xff\xff\xff", 0xffff_ff00, [0, 0, 0, 0, 0]),
        ];
        for (key, crc, buckets) in vectors {
            let whole = Salt::Prefix { first: 0, length: 4 };
            assert_eq!(*salt_prefix(whole, key), crc.to_be_bytes(), "{key:?}");
            assert_eq!([2, 8, 10, 16, 256].map(|count| bucket(count, key)), buckets, "{key:?}");
            let last = salt_prefix(Salt::Buckets(256), key);
            assert_eq!(u16::from(last[0]), buckets[4], "{key:?}");
        }
    }

    #[test]
    fn impossible_salts_do_not_panic() {
        assert_eq!(bucket(0, b"a"), 0);
        assert_eq!(*salt_prefix(Salt::Prefix { first: 255, length: 255 }, b"a"), [0; 4]);
    }

    #[test]
    fn a_wrong_salt_is_corrupt_and_both_are_named() {
        let error = check_salted(Salt::MIDDLE_BYTES, b"\x25\xee\0\0\0\0\0\0\0\x01", |key| Ok(key.len())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("[25, ee]") && error.to_string().contains("[25, ef]"), "{error}");
        let short = check_salted(Salt::MIDDLE_BYTES, b"\x25", |key| Ok(key.len())).unwrap_err();
        assert_eq!(short.kind(), ErrorKind::Corrupt);
    }

    proptest! {
        #[test]
        fn a_salted_key_comes_back(salt in any_salt(), partition: Vec<u8>, clustering: Vec<u8>) {
            let prefix = salt_prefix(salt, &partition);
            prop_assert_eq!(prefix.len(), salt_length(salt));
            let row_key = [&*prefix, &partition, &clustering].concat();
            let key = check_salted(salt, &row_key, |_| Ok(partition.len())).unwrap();
            prop_assert_eq!(key, [partition, clustering].concat());
        }

        #[test]
        fn any_other_salt_is_refused(salt in any_salt(), partition: Vec<u8>, flip in 1_u8..) {
            let prefix = salt_prefix(salt, &partition);
            let mut row_key = [&*prefix, &partition].concat();
            row_key[0] ^= flip;
            prop_assert!(check_salted(salt, &row_key, |key| Ok(key.len())).is_err());
        }

        #[test]
        fn row_keys_of_any_kind_never_panic(salt in any_salt(), row_key: Vec<u8>, length: usize) {
            if let Ok(key) = check_salted(salt, &row_key, |_| Ok(length)) {
                prop_assert!(row_key.ends_with(key));
            }
        }
    }
}
