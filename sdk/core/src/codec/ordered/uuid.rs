//! UUIDs as integers of Cassandra's order: its `UUIDType` and `TimeUUIDType`.

use uuid::Uuid;

/// The low half, whose bytes a `timeuuid` compares as signed ones.
const LOW_HALF: u128 = 0xffff_ffff_ffff_ffff;
const LOW_SIGNS: u128 = 0x8080_8080_8080_8080;

/// The version, and the bits behind it: those of version 1 with the time's high bits first.
pub(super) fn rank(uuid: Uuid) -> (u8, u128) {
    let bits = uuid.as_u128();
    match version(bits) {
        1 => (1, time_first(bits)),
        version => (version, bits),
    }
}

/// `None` where the version contradicts the bits.
pub(super) fn from_rank(rank: u8, bits: u128) -> Option<Uuid> {
    let bits = if rank == 1 { time_last(bits) } else { bits };
    (version(bits) == rank).then(|| Uuid::from_u128(bits))
}

/// The 60 bits of time, then the low half.
pub(super) fn time_rank(uuid: Uuid) -> u128 {
    (time_first(uuid.as_u128()) & (u128::MAX >> 4)) ^ LOW_SIGNS
}

/// `None` where the time has more than 60 bits.
pub(super) fn from_time_rank(rank: u128) -> Option<Uuid> {
    (rank >> 124 == 0).then(|| Uuid::from_u128(time_last((rank | (1 << 124)) ^ LOW_SIGNS)))
}

fn version(bits: u128) -> u8 {
    let [.., byte, _, _, _, _, _, _, _, _, _] = bits.to_be_bytes();
    byte >> 4
}

fn time_first(bits: u128) -> u128 {
    let (low, middle, high) = (bits >> 96, (bits >> 80) & 0xffff, (bits >> 64) & 0xffff);
    (high << 112) | (middle << 96) | (low << 64) | (bits & LOW_HALF)
}

fn time_last(bits: u128) -> u128 {
    let (high, middle, low) = (bits >> 112, (bits >> 96) & 0xffff, (bits >> 64) & 0xffff_ffff);
    (low << 96) | (middle << 80) | (high << 64) | (bits & LOW_HALF)
}
