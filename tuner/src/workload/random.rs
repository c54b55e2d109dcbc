//! Random numbers that cost a few instructions and depend on a counter alone.

use bytes::Bytes;

/// A random number for a counter: the finaliser of `SplitMix64` (Steele, Lea, Flood 2014) over seed and counter. Any two
/// calls are independent, so workers need no shared state and a row can be made again from its index.
pub(crate) fn mix(seed: u64, counter: u64) -> u64 {
    let mut z = seed.wrapping_add(counter.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number below `bound`, uniform to within `bound` / 2^64; 0 for a bound of 0.
pub(crate) fn below(random: u64, bound: u64) -> u64 {
    u64::try_from((u128::from(random) * u128::from(bound)) >> 64).unwrap_or_default()
}

/// Random bytes made once, of which values are slices: a value then costs no more than its copy.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    bytes: Bytes,
    text: String,
}

impl Pool {
    const LEN: usize = 1 << 20;

    /// A pool whose slices are at least this long.
    pub(crate) fn new(seed: u64, longest: usize) -> Self {
        let words = (Self::LEN + longest).div_ceil(8);
        let bytes: Vec<u8> = (0..words as u64).flat_map(|word| mix(seed, word).to_le_bytes()).collect();
        let text = bytes.iter().map(|byte| char::from(b'a' + byte % 26)).collect();
        Self { bytes: bytes.into(), text }
    }

    fn start(random: u64) -> usize {
        usize::try_from(below(random, Self::LEN as u64)).unwrap_or_default()
    }

    /// Bytes that don't compress; no copy is made.
    pub(crate) fn bytes(&self, random: u64, len: usize) -> Bytes {
        let start = Self::start(random);
        let end = (start + len).min(self.bytes.len());
        self.bytes.slice(start..end)
    }

    /// Lower-case letters.
    pub(crate) fn text(&self, random: u64, len: usize) -> &str {
        let start = Self::start(random);
        self.text.get(start..(start + len).min(self.text.len())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_evenly() {
        let mut seen = [0_u32; 10];
        for counter in 0..10_000 {
            seen[usize::try_from(below(mix(7, counter), 10)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|count| (900..1100).contains(count)), "{seen:?}");
    }

    #[test]
    fn bounds_are_kept_at_the_ends() {
        assert_eq!((below(u64::MAX, 3), below(0, 3), below(u64::MAX, 0)), (2, 0, 0));
    }

    #[test]
    fn values_have_their_length_and_differ() {
        let pool = Pool::new(1, 300);
        let last = u64::MAX;
        assert_eq!((pool.bytes(last, 300).len(), pool.text(last, 300).len()), (300, 300));
        assert_ne!(pool.bytes(mix(1, 1), 30), pool.bytes(mix(1, 2), 30));
    }
}
