//! Timestamps in milliseconds that keep the order of the writes of one client.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many rows are told apart; rows that share a slot only get timestamps a little later than they need.
const SLOTS: usize = 4096;

/// Turns write times in microseconds into timestamps in milliseconds. Two writes of one row in one millisecond get different
/// ones, in their order; a write that is sent again gets the same one; a write that comes late stays behind.
#[derive(Debug)]
pub(super) struct Millis {
    slots: Vec<Mutex<Slot>>,
}

/// The last write of a row, by both clocks.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    micros: i64,
    millis: i64,
}

impl Millis {
    pub(super) fn new() -> Self {
        Self { slots: (0..SLOTS).map(|_| Mutex::default()).collect() }
    }

    fn slot(&self, row: &[u8]) -> Option<MutexGuard<'_, Slot>> {
        // FNV-1a.
        let hash = row
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        let place = usize::try_from(hash % SLOTS as u64).unwrap_or(0);
        self.slots.get(place).map(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The timestamps of a write and of what it removes first.
    pub(super) fn timestamps(&self, row: &[u8], micros: i64) -> (i64, i64) {
        let floor = micros.div_euclid(1_000);
        let Some(mut slot) = self.slot(row) else { return (floor, floor - 1) };
        if micros > slot.micros {
            // Two steps leave room for what the write removes first.
            *slot = Slot { micros, millis: floor.max(slot.millis + 2) };
        } else if micros < slot.micros {
            let late = floor.min(slot.millis - 1).max(1);
            return (late, late - 1);
        }
        (slot.millis, slot.millis - 1)
    }

    /// The timestamps of a write behind all that is stored: both times are in microseconds.
    pub(super) fn behind(&self, row: &[u8], newest: i64, now: i64) -> (i64, i64) {
        let least = now.div_euclid(1_000).max(newest.div_euclid(1_000) + 2);
        let Some(mut slot) = self.slot(row) else { return (least, least - 1) };
        *slot = Slot { micros: slot.micros.max(now), millis: least.max(slot.millis + 2) };
        (slot.millis, slot.millis - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_within_a_millisecond_keep_their_order() {
        let millis = Millis::new();
        let times: Vec<i64> = (0..5).map(|micros| millis.timestamps(b"a", 7_000_000 + micros).0).collect();
        assert_eq!(times, [7_000, 7_002, 7_004, 7_006, 7_008]);
    }

    #[test]
    fn a_write_sent_again_has_the_same_timestamp() {
        let millis = Millis::new();
        let first = millis.timestamps(b"a", 5_000_400);
        assert_eq!(millis.timestamps(b"a", 5_000_400), first);
        assert_eq!(first, (5_000, 4_999));
    }

    #[test]
    fn a_late_write_stays_behind() {
        let millis = Millis::new();
        let newer = millis.timestamps(b"a", 5_000_400).0;
        assert!(millis.timestamps(b"a", 5_000_399).0 < newer);
        assert_eq!(millis.timestamps(b"a", 4_000_000), (4_000, 3_999));
    }
}
