//! When a write happened, and how long it lives.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::error::{Error, Result};

/// The time of a write, in microseconds since 1970-01-01 UTC; the write with the larger one wins.
///
/// The client assigns one to each logical write, strictly increasing, before any retry or regrouping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WriteTime(i64);

impl WriteTime {
    /// The smallest write time: 1 µs after the epoch.
    pub const MIN: Self = Self(1);

    /// A write time of so many microseconds.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) unless it is above 0: backends disagree on what zero and negative times mean.
    pub fn from_micros(micros: i64) -> Result<Self> {
        if micros > 0 && micros < i64::MAX - 1 {
            return Ok(Self(micros));
        }
        Err(Error::invalid(format!("write time {micros} is out of range; give microseconds since 1970, above 0")))
    }

    /// Microseconds since 1970-01-01 UTC.
    pub fn as_micros(self) -> i64 {
        self.0
    }

    /// The instant just before this one, for the delete half of an atomic replace.
    #[must_use]
    pub fn previous(self) -> Self {
        Self((self.0 - 1).max(0))
    }
}

/// How long the columns of a write live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ttl {
    /// As long as the table's default says; for ever where it has none.
    #[default]
    TableDefault,
    /// For ever, whatever the table's default.
    Never,
    /// So many seconds from the write.
    Seconds(NonZeroU32),
}

impl Ttl {
    /// The longest that Cassandra and ScyllaDB take: 20 years.
    pub const MAX_SECONDS: u32 = 630_720_000;

    /// Lives for this long, rounded up to whole seconds, the unit of CQL.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for zero ([`Ttl::Never`] is the word for "no limit") and beyond 20 years.
    pub fn after(duration: Duration) -> Result<Self> {
        let seconds = duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0));
        let seconds = u32::try_from(seconds).ok().filter(|seconds| *seconds <= Self::MAX_SECONDS);
        match seconds.map(NonZeroU32::new) {
            Some(Some(seconds)) => Ok(Self::Seconds(seconds)),
            Some(None) => Err(Error::invalid("a time to live of 0 is ambiguous; say Ttl::Never for no limit")),
            None => Err(Error::invalid("time to live is over 20 years (630720000 s)")),
        }
    }

    /// The seconds that hold, given the table's default; `None` is for ever.
    pub fn resolve(self, table_default: Option<NonZeroU32>) -> Option<NonZeroU32> {
        match self {
            Self::TableDefault => table_default,
            Self::Never => None,
            Self::Seconds(seconds) => Some(seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_rounds_up_to_whole_seconds() {
        let ttl = Ttl::after(Duration::from_millis(1500)).unwrap();
        assert_eq!(ttl, Ttl::Seconds(NonZeroU32::new(2).unwrap()));
    }

    #[test]
    fn zero_and_too_long_are_refused() {
        assert!(Ttl::after(Duration::ZERO).is_err());
        assert!(Ttl::after(Duration::from_secs(630_720_000)).is_ok());
        assert!(Ttl::after(Duration::from_secs(630_720_001)).is_err());
        assert!(Ttl::after(Duration::MAX).is_err());
    }

    #[test]
    fn write_times_are_positive() {
        for micros in [0, -1, i64::MIN, i64::MAX, i64::MAX - 1] {
            assert!(WriteTime::from_micros(micros).is_err(), "{micros}");
        }
        assert_eq!(WriteTime::from_micros(5).unwrap().previous().as_micros(), 4);
    }
}
