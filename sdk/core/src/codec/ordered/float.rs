//! Floats as unsigned integers of the same order.

/// The bits that stand for every single NaN.
pub(super) const NAN_32: u32 = 0x7fc0_0000;
/// The bits that stand for every double NaN.
pub(super) const NAN_64: u64 = 0x7ff8_0000_0000_0000;

const SIGN_32: u32 = 1 << 31;
const SIGN_64: u64 = 1 << 63;

pub(super) fn rank_32(value: f32) -> u32 {
    let bits = if value.is_nan() { NAN_32 } else { value.to_bits() };
    if bits & SIGN_32 == 0 { bits | SIGN_32 } else { !bits }
}

pub(super) fn rank_64(value: f64) -> u64 {
    let bits = if value.is_nan() { NAN_64 } else { value.to_bits() };
    if bits & SIGN_64 == 0 { bits | SIGN_64 } else { !bits }
}

/// `None` for the ranks of NaNs that stand for none.
pub(super) fn from_rank_32(rank: u32) -> Option<f32> {
    let bits = if rank & SIGN_32 == 0 { !rank } else { rank & !SIGN_32 };
    let value = f32::from_bits(bits);
    (!value.is_nan() || bits == NAN_32).then_some(value)
}

/// `None` for the ranks of NaNs that stand for none.
pub(super) fn from_rank_64(rank: u64) -> Option<f64> {
    let bits = if rank & SIGN_64 == 0 { !rank } else { rank & !SIGN_64 };
    let value = f64::from_bits(bits);
    (!value.is_nan() || bits == NAN_64).then_some(value)
}
