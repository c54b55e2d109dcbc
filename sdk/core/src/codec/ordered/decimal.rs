//! Decimals as bytes of numeric order: exponent, then digits.

use num_bigint::{BigInt, Sign};

use super::MAX_NUMBER_BITS;
use super::decode::{Fault, Reader};
use crate::model::Decimal;

const ZERO: u8 = 1;
const POSITIVE: u8 = 2;
const NEGATIVE: u8 = 0;

/// More digits than [`MAX_NUMBER_BITS`] hold; 0.302 is above log10(2).
const MAX_DIGITS: i64 = (MAX_NUMBER_BITS * 302 / 1000).cast_signed() + 1;

pub(super) fn encode(value: &Decimal, out: &mut Vec<u8>) {
    let (lead, mask) = match value.unscaled.sign() {
        Sign::NoSign => return out.push(ZERO),
        Sign::Plus => (POSITIVE, 0x00),
        Sign::Minus => (NEGATIVE, 0xff),
    };
    let digits = value.unscaled.magnitude().to_radix_be(10);
    let exponent = length(&digits) - 1 - i64::from(value.scale);
    out.push(lead);
    out.extend((exponent ^ i64::MIN).to_be_bytes().map(|byte| byte ^ mask));
    let significant = digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
    out.extend(digits.iter().take(significant).map(|digit| (digit + 1) ^ mask));
    out.push(mask);
}

/// With `scaled`, the scale follows; else the value gets the smallest scale there is for it.
pub(super) fn decode(reader: &mut Reader<'_>, scaled: bool) -> Result<Decimal, Fault> {
    let [lead] = reader.array()?;
    let (sign, mask) = match lead {
        ZERO => {
            let scale = if scaled { scale(reader)? } else { 0 };
            return Ok(Decimal::new(0, scale));
        }
        POSITIVE => (Sign::Plus, 0x00),
        NEGATIVE => (Sign::Minus, 0xff),
        _ => return Err("a decimal's first byte is none of 0, 1 and 2"),
    };
    let exponent = i64::from_be_bytes(reader.array()?.map(|byte| byte ^ mask)) ^ i64::MIN;
    let mut digits = digits(reader, mask)?;
    let shortest = (length(&digits) - 1).checked_sub(exponent).ok_or("a decimal's exponent is out of range")?;
    let scale = if scaled {
        scale(reader)?
    } else {
        i32::try_from(shortest.max(i32::MIN.into())).map_err(|_| "a decimal's exponent is out of range")?
    };
    let zeros = i64::from(scale).saturating_sub(shortest);
    if zeros < 0 || zeros > MAX_DIGITS - length(&digits) {
        return Err("a decimal's scale doesn't fit its exponent");
    }
    digits.resize(digits.len() + usize::try_from(zeros).unwrap_or_default(), 0);
    let unscaled = BigInt::from_radix_be(sign, &digits, 10).ok_or("a decimal's digit is above 9")?;
    Ok(Decimal::new(unscaled, scale))
}

/// Whether [`decode`] without scale gives the value back as it is.
pub(super) fn is_normal(value: &Decimal) -> bool {
    if value.unscaled.sign() == Sign::NoSign {
        return value.scale == 0;
    }
    value.scale == i32::MIN || &value.unscaled % 10 != BigInt::ZERO
}

fn digits(reader: &mut Reader<'_>, mask: u8) -> Result<Vec<u8>, Fault> {
    let digits: Vec<u8> = reader.until(mask)?.into_iter().map(|byte| (byte ^ mask).wrapping_sub(1)).collect();
    if digits.first().is_none_or(|digit| *digit == 0) || digits.last() == Some(&0) {
        return Err("a decimal's digits are none, or begin or end with 0");
    }
    Ok(digits)
}

fn scale(reader: &mut Reader<'_>) -> Result<i32, Fault> {
    Ok(i32::from_be_bytes(reader.array()?) ^ i32::MIN)
}

fn length(digits: &[u8]) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}
