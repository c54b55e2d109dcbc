//! Names of records and values that follow from them, as YCSB makes them.

use std::fmt::Write as _;

/// YCSB's hash of a record's number: 64-bit FNV-1a of its bytes, without the sign.
pub(super) fn fnv_hash(number: u64) -> u64 {
    let step = |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(1_099_511_628_211);
    let hash = number.to_le_bytes().into_iter().fold(0xcbf2_9ce4_8422_2325, step);
    hash.cast_signed().unsigned_abs()
}

/// How the names of records are made from their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyNames {
    /// Whether the number is the name's, and not its hash.
    pub(super) ordered: bool,
    /// The least digits.
    pub(super) padding: usize,
}

impl KeyNames {
    pub(super) fn name(self, number: u64) -> String {
        let number = if self.ordered { number } else { fnv_hash(number) };
        format!("user{number:0>padding$}", padding = self.padding)
    }
}

/// The value that a field of a record has where data integrity is checked: name and field, then hashes of all that stands
/// before, cut to the length.
pub(super) fn integrity_value(key: &str, field: &str, length: usize) -> String {
    let mut value = String::with_capacity(length + 16);
    value.push_str(key);
    value.push(':');
    value.push_str(field);
    let mut hash = JavaHash::default();
    let mut hashed = 0;
    while value.len() < length {
        value.push(':');
        hash.add(value.get(hashed..).unwrap_or_default());
        hashed = value.len();
        // Writing to a string doesn't fail.
        let _ = write!(value, "{}", hash.0);
    }
    if let Some((end, _)) = value.char_indices().nth(length) {
        value.truncate(end);
    }
    value
}

/// The hash of a Java string, which grows with the string.
#[derive(Debug, Clone, Copy, Default)]
struct JavaHash(i32);

impl JavaHash {
    fn add(&mut self, text: &str) {
        let step = |hash: i32, unit: u16| hash.wrapping_mul(31).wrapping_add(i32::from(unit));
        self.0 = text.encode_utf16().fold(self.0, step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_ycsb() {
        let hashed = KeyNames { ordered: false, padding: 1 };
        assert_eq!(hashed.name(0), "user6284781860667377211");
        assert_eq!(hashed.name(1), "user8517097267634966620");
        let ordered = KeyNames { ordered: true, padding: 8 };
        assert_eq!((ordered.name(42), ordered.name(1_234_567_890)), ("user00000042".into(), "user1234567890".into()));
    }

    #[test]
    fn integrity_values_have_their_length_and_java_hashes() {
        assert_eq!(integrity_value("user1", "field0", 5), "user1");
        let value = integrity_value("user1", "field0", 40);
        assert_eq!(value.len(), 40);
        let mut hash = JavaHash::default();
        hash.add("user1:field0:");
        assert!(value.starts_with(&format!("user1:field0:{}:", hash.0)), "{value}");
        let mut known = JavaHash::default();
        known.add("hello");
        assert_eq!(known.0, 99_162_322);
    }
}
