//! Conversions whose loss is understood.

/// A count as a real number, exact below 2^53.
#[expect(clippy::cast_precision_loss, reason = "counts beyond 2^53 would take centuries to measure")]
pub(crate) fn real(count: u64) -> f64 {
    count as f64
}

/// A length as a real number.
pub(crate) fn real_len(len: usize) -> f64 {
    real(len as u64)
}

/// The nearest whole number; 0 for what is negative or not a number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, which is what is wanted")]
pub(crate) fn whole(real: f64) -> u64 {
    real.round() as u64
}

/// The whole number nearest to the geometric mean, for steps on a logarithmic grid.
pub(crate) fn between(low: u32, high: u32) -> u32 {
    let middle = whole((f64::from(low) * f64::from(high)).sqrt());
    u32::try_from(middle).unwrap_or(high)
}
