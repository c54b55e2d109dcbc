//! What is kept for each endpoint.

use std::sync::OnceLock;

use super::Endpoint;

/// The room of the first block; each one after it has twice as much.
const FIRST: usize = 16;

/// Blocks: more endpoints than they have room for share the last place.
const BLOCKS: usize = 12;

/// How many endpoints have a place of their own.
pub(super) const CAPACITY: usize = FIRST * ((1 << BLOCKS) - 1);

/// Something for each endpoint that was asked for, made when it is first asked for, and kept at one place from then on. Looked
/// up without a lock.
#[derive(Debug)]
pub struct PerEndpoint<T> {
    blocks: [OnceLock<Box<[OnceLock<T>]>>; BLOCKS],
}

impl<T> Default for PerEndpoint<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PerEndpoint<T> {
    /// Nothing for any endpoint.
    pub const fn new() -> Self {
        Self { blocks: [const { OnceLock::new() }; BLOCKS] }
    }

    /// What is kept for this endpoint.
    pub fn get(&self, endpoint: Endpoint) -> Option<&T> {
        let (block, place) = place(endpoint.index());
        self.blocks.get(block)?.get()?.get(place)?.get()
    }

    /// What is kept for this endpoint, which `make` makes if there is nothing yet. `None` never comes: it is for callers that
    /// have something to fall back on.
    pub fn get_or_make(&self, endpoint: Endpoint, make: impl FnOnce() -> T) -> Option<&T> {
        let (block, place) = place(endpoint.index());
        let block = self.blocks.get(block)?.get_or_init(|| (0..FIRST << block).map(|_| OnceLock::new()).collect());
        block.get(place).map(|place| place.get_or_init(make))
    }

    /// What is kept, for all endpoints.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().filter_map(OnceLock::get).flatten().filter_map(OnceLock::get)
    }
}

/// The block and the place on it of the `index`th endpoint.
fn place(index: usize) -> (usize, usize) {
    let number = index.saturating_add(FIRST).min((FIRST << BLOCKS) - 1);
    let block = (number / FIRST).ilog2();
    let block = usize::try_from(block).unwrap_or_default();
    (block, number - (FIRST << block))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_endpoint_has_a_place_of_its_own_that_is_within_its_block() {
        let mut last = None;
        for index in 0..CAPACITY {
            let (block, place) = place(index);
            assert!(block < BLOCKS && place < FIRST << block, "{index}");
            assert!(last < Some((block, place)), "{index}");
            last = Some((block, place));
        }
        assert_eq!(place(usize::MAX), last.unwrap());
    }

    #[test]
    fn what_is_made_once_is_kept() {
        let table = PerEndpoint::default();
        let [one, two] = ["of table 1", "of table 2"].map(Endpoint::named);
        assert_eq!(
            (table.get(one), table.get_or_make(one, || 1), table.get_or_make(one, || 2)),
            (None, Some(&1), Some(&1))
        );
        assert_eq!((table.get_or_make(two, || 3), table.get(one)), (Some(&3), Some(&1)));
        let mut all: Vec<_> = table.iter().copied().collect();
        all.sort_unstable();
        assert_eq!(all, [1, 3]);
    }
}
