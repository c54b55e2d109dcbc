//! Partition tokens of Cassandra and `ScyllaDB`: `Murmur3Partitioner`.

use super::value::encode_value;
use crate::error::{Error, ErrorKind, Result};
use crate::model::Value;

/// The longest serialised partition key that Cassandra takes.
const MAX_KEY: usize = 65_535;

/// The serialised partition key: the bytes of a single value, or for each of several its length in two bytes, its bytes, and 00.
///
/// # Errors
/// [`TooLarge`](ErrorKind::TooLarge) beyond 65 535 bytes.
///
/// ```
/// use peristyle_core::codec::token::{serialise_partition, token};
/// use peristyle_core::model::Value;
///
/// let key = serialise_partition(&[Value::from("ab"), Value::from("c")])?;
/// assert_eq!(key, [0, 2, b'a', b'b', 0, 0, 1, b'c', 0]);
/// assert_eq!(token(&key), -3_322_137_777_577_922_905);
/// # Ok::<(), peristyle_core::Error>(())
/// ```
pub fn serialise_partition(values: &[Value]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    append_partition(values, &mut out)?;
    Ok(out)
}

/// Appends the serialised partition key, as [`serialise_partition`] makes it, to a buffer: for many keys without an allocation
/// for each.
///
/// # Errors
/// [`TooLarge`](ErrorKind::TooLarge) beyond 65 535 bytes; nothing is appended then.
pub fn append_partition(values: &[Value], out: &mut Vec<u8>) -> Result<()> {
    let framing = if values.len() == 1 { 0 } else { 3 };
    let length: usize = values.iter().map(|value| value.size() + framing).sum();
    if length > MAX_KEY {
        let message =
            format!("a partition key of {length} bytes; it takes {MAX_KEY}, with 3 more for each of several columns");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    out.reserve(length);
    if let [value] = values {
        encode_value(value, out);
        return Ok(());
    }
    for value in values {
        out.extend(u16::try_from(value.size()).unwrap_or(u16::MAX).to_be_bytes());
        encode_value(value, out);
        out.push(0);
    }
    Ok(())
}

/// The token of a serialised partition key.
///
/// As in Cassandra, the empty key (which its CQL refuses) has the smallest token, `i64::MIN`, and no other key has it: a hash
/// of that value becomes `i64::MAX`.
pub fn token(key: &[u8]) -> i64 {
    if key.is_empty() {
        return i64::MIN;
    }
    match murmur3(key).cast_signed() {
        i64::MIN => i64::MAX,
        hash => hash,
    }
}

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// The first half of `MurmurHash3_x64_128` with seed 0, but for the last incomplete block, whose bytes Cassandra extends with
/// their sign. That is why no crate of the original serves.
fn murmur3(key: &[u8]) -> u64 {
    let (words, _) = key.as_chunks::<8>();
    let (blocks, _) = words.as_chunks::<2>();
    let (_, tail) = key.as_chunks::<16>();
    let (mut h1, mut h2) = (0_u64, 0_u64);
    for [first, second] in blocks {
        h1 ^= mix_1(u64::from_le_bytes(*first));
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix_2(u64::from_le_bytes(*second));
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let (first, second) = tail.split_at(tail.len().min(8));
    h1 ^= mix_1(signed(first));
    h2 ^= mix_2(signed(second));
    finish(h1, h2, key.len() as u64)
}

fn finish(h1: u64, h2: u64, length: u64) -> u64 {
    let (h1, h2) = (h1 ^ length, h2 ^ length);
    let h1 = h1.wrapping_add(h2);
    let h2 = h2.wrapping_add(h1);
    avalanche(h1).wrapping_add(avalanche(h2))
}

fn signed(tail: &[u8]) -> u64 {
    tail.iter().rev().fold(0, |bits, byte| (bits << 8) ^ i64::from(byte.cast_signed()).cast_unsigned())
}

fn mix_1(block: u64) -> u64 {
    block.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix_2(block: u64) -> u64 {
    block.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn avalanche(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Decimal, Varint};

    /// Asked of a Cassandra 5.0.6 by `token()`.
    #[test]
    fn tokens_are_those_of_a_live_server() {
        let uuid: uuid::Uuid = "6ba7b810-9dad-11d1-80b4-00c04fd430c8".parse().unwrap();
        let vectors: [(Vec<Value>, i64); 16] = [
            (vec!["hello".into()], -3_758_069_500_696_749_310),
            (vec!["é漢".into()], -4_892_997_347_058_895_300),
            (vec![Value::I64(-42)], 3_581_121_715_631_347_611),
            (vec![Value::I64(0)], 2_945_182_322_382_062_539),
            (vec![Value::F64(0.0)], 2_945_182_322_382_062_539),
            (vec!["ab".into(), "c".into()], -3_322_137_777_577_922_905),
            (vec!["ab".into(), "".into()], 2_758_963_550_866_317_853),
            (vec![Value::I32(7), vec![0x00, 0xff].into()], -4_844_547_222_917_370_353),
            (vec![uuid.into()], -6_761_550_319_734_257_329),
            (vec![vec![0x80].into()], -5_284_281_814_142_962_636),
            (vec![vec![0xff; 33].into()], -6_464_197_807_167_602_253),
            (vec!["k".into(), Value::I64(1), Value::Bool(true)], -8_839_628_633_948_591_656),
            (vec![Value::Varint(Varint::from(-129))], 7_965_412_786_603_682_042),
            (vec![Decimal::new(10, 1).into()], -4_999_075_544_868_613_750),
            (vec![Decimal::new(100, 2).into()], 174_567_143_093_499_608),
            (vec![Value::F64(-0.0)], 9_204_767_954_415_360_687),
        ];
        for (values, expected) in vectors {
            assert_eq!(token(&serialise_partition(&values).unwrap()), expected, "{values:?}");
        }
    }

    /// From the tests of the `scylla` crate.
    #[test]
    fn tokens_are_those_of_the_scylla_driver() {
        let vectors = [
            ("test", -6_017_608_668_500_074_083),
            ("xd", 4_507_812_186_440_344_727),
            ("primary_key", -1_632_642_444_691_073_360),
            ("kremówki", 4_354_931_215_268_080_151),
        ];
        for (key, expected) in vectors {
            assert_eq!(token(key.as_bytes()), expected, "{key}");
        }
    }

    #[test]
    fn several_columns_are_framed() {
        let values = [Value::from("k"), Value::I64(1), Value::Bool(true)];
        let bytes = serialise_partition(&values).unwrap();
        assert_eq!(bytes, b"\0\x01k\0\0\x08\0\0\0\0\0\0\0\x01\0\0\x01\x01\0");
    }

    #[test]
    fn the_empty_key_has_the_smallest_token() {
        assert_eq!(token(&serialise_partition(&["".into()]).unwrap()), i64::MIN);
    }

    #[test]
    fn keys_are_as_long_as_the_server_takes_them() {
        let blob = |length: usize| Value::from(vec![0; length]);
        assert!(serialise_partition(&[blob(65_535)]).is_ok());
        assert!(serialise_partition(&[blob(65_529), blob(0)]).is_ok());
        for values in [vec![blob(65_536)], vec![blob(65_530), blob(0)]] {
            assert_eq!(serialise_partition(&values).unwrap_err().kind(), ErrorKind::TooLarge);
        }
    }

    proptest! {
        #[test]
        fn only_the_empty_key_has_the_smallest_token(key: Vec<u8>) {
            prop_assert_eq!(token(&key) == i64::MIN, key.is_empty());
        }
    }
}
