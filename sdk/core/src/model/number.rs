//! Numbers of any size.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use num_bigint::{BigInt, Sign};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An integer of any size, as CQL's `varint`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Varint(pub BigInt);

impl Varint {
    /// The shortest two's-complement form, big-endian, as CQL sends it.
    pub fn to_be_bytes(&self) -> Vec<u8> {
        self.0.to_signed_bytes_be()
    }

    /// From two's complement, big-endian, of any length; empty is 0.
    pub fn from_be_bytes(bytes: &[u8]) -> Self {
        Self(BigInt::from_signed_bytes_be(bytes))
    }
}

impl From<i64> for Varint {
    fn from(value: i64) -> Self {
        Self(value.into())
    }
}

impl fmt::Display for Varint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Varint {
    type Err = ParseNumberError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|_| ParseNumberError::new(text, "an integer"))
    }
}

/// A decimal number: `unscaled` · 10^-`scale`, as CQL's `decimal`.
///
/// Equality is by form, so 1.0 and 1.00 differ, as they do in a partition key and in a stored value.
/// [`numeric_cmp`](Self::numeric_cmp) compares by size, as clustering columns do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Decimal {
    /// The digits, as one integer.
    pub unscaled: BigInt,
    /// How many of them stand after the point; negative adds zeros before it.
    pub scale: i32,
}

impl Decimal {
    /// `unscaled` · 10^-`scale`.
    pub fn new(unscaled: impl Into<BigInt>, scale: i32) -> Self {
        Self { unscaled: unscaled.into(), scale }
    }

    /// The power of ten of the first digit: 0 for 1 to 9.99, 1 for 10 to 99.9; of zero, 0.
    pub fn exponent(&self) -> i64 {
        if self.unscaled.sign() == Sign::NoSign {
            return 0;
        }
        let digits = self.unscaled.magnitude().to_string().len();
        i64::try_from(digits).unwrap_or(i64::MAX) - 1 - i64::from(self.scale)
    }

    /// The digits without sign and trailing zeros; empty for zero.
    pub fn significant_digits(&self) -> String {
        let digits = self.unscaled.magnitude().to_string();
        digits.trim_end_matches('0').to_owned()
    }

    /// Compares by size, whatever the scales: 1.0 equals 1.00.
    pub fn numeric_cmp(&self, other: &Self) -> Ordering {
        let (sign, other_sign) = (self.unscaled.sign(), other.unscaled.sign());
        if sign != other_sign || sign == Sign::NoSign {
            return sign.cmp(&other_sign);
        }
        let magnitude = self
            .exponent()
            .cmp(&other.exponent())
            .then_with(|| self.significant_digits().cmp(&other.significant_digits()));
        if sign == Sign::Minus { magnitude.reverse() } else { magnitude }
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self::new(value, 0)
    }
}

/// Plain digits while the exponent is small, else scientific; the scale survives a round trip through [`FromStr`].
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.unscaled.magnitude().to_string();
        let sign = if self.unscaled.sign() == Sign::Minus { "-" } else { "" };
        match usize::try_from(self.scale) {
            Ok(0) => write!(f, "{sign}{digits}"),
            Ok(scale) if scale <= 40 => {
                let padded = format!("{digits:0>width$}", width = scale + 1);
                let (whole, fraction) = padded.split_at(padded.len() - scale);
                write!(f, "{sign}{whole}.{fraction}")
            }
            _ => write!(f, "{sign}{digits}E{}", -i64::from(self.scale)),
        }
    }
}

impl FromStr for Decimal {
    type Err = ParseNumberError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseNumberError::new(text, "a decimal number");
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().map_err(|_| wrong())?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let unscaled = format!("{whole}{fraction}").parse().map_err(|_| wrong())?;
        let places = i64::try_from(fraction.len()).map_err(|_| wrong())?;
        let scale = places.checked_sub(exponent).and_then(|scale| i32::try_from(scale).ok());
        Ok(Self { unscaled, scale: scale.ok_or_else(wrong)? })
    }
}

/// Text that isn't the number it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseNumberError {
    text: String,
    expected: &'static str,
}

impl ParseNumberError {
    fn new(text: &str, expected: &'static str) -> Self {
        Self { text: text.to_owned(), expected }
    }
}

impl fmt::Display for ParseNumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not {}", self.text, self.expected)
    }
}

impl std::error::Error for ParseNumberError {}

macro_rules! serde_as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    };
}

serde_as_text!(Varint);
serde_as_text!(Decimal);

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn decimals_compare_by_size_and_equal_by_form() {
        let rising = ["-1E+100", "-1.5", "-1", "-1E-100", "0", "1E-100", "0.1", "1", "2.5", "10", "1E+100"];
        for (low, high) in rising.iter().zip(&rising[1..]) {
            assert_eq!(decimal(low).numeric_cmp(&decimal(high)), Ordering::Less, "{low} {high}");
            assert_eq!(decimal(high).numeric_cmp(&decimal(low)), Ordering::Greater, "{high} {low}");
        }
        assert_eq!(decimal("1.0").numeric_cmp(&decimal("1.00")), Ordering::Equal);
        assert_eq!(decimal("-0.0").numeric_cmp(&decimal("0")), Ordering::Equal);
        assert_ne!(decimal("1.0"), decimal("1.00"));
    }

    #[test]
    fn a_decimal_keeps_its_scale_through_text() {
        for form in
            [Decimal::new(105, 2), Decimal::new(-5, 3), Decimal::new(7, -3), Decimal::new(1, 100), Decimal::new(0, 2)]
        {
            assert_eq!(decimal(&form.to_string()), form, "{form}");
        }
        assert_eq!(Decimal::new(-5, 3).to_string(), "-0.005");
    }

    #[test]
    fn text_that_is_no_number_is_refused() {
        for text in ["", "1.x", "1e", "--1", "1.2.3", "1.-2", "1E99999999999"] {
            assert!(text.parse::<Decimal>().is_err(), "{text}");
        }
        assert!("1.5".parse::<Varint>().is_err());
    }
}
