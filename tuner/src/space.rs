//! The points that a sweep may choose from.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One setting of everything that is searched. Its order is its cost: fewest threads first, then io threads, pool, batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Point {
    /// Requests in flight, from independent logical clients.
    pub(crate) threads: u32,
    /// Worker threads of the runtime.
    pub(crate) io_threads: u32,
    /// Connections per node, or per shard.
    pub(crate) pool: u32,
    /// Rows per request.
    pub(crate) batch: u32,
}

/// One of the four settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    Threads,
    IoThreads,
    Pool,
    Batch,
}

impl Axis {
    /// In the order of cost.
    pub(crate) const ALL: [Self; 4] = [Self::Threads, Self::IoThreads, Self::Pool, Self::Batch];

    /// Its name for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::IoThreads => "io threads",
            Self::Pool => "pool",
            Self::Batch => "batch",
        }
    }
}

impl Point {
    /// Its value on an axis.
    pub(crate) fn on(self, axis: Axis) -> u32 {
        match axis {
            Axis::Threads => self.threads,
            Axis::IoThreads => self.io_threads,
            Axis::Pool => self.pool,
            Axis::Batch => self.batch,
        }
    }

    /// The same point with another value on one axis.
    pub(crate) fn with(mut self, axis: Axis, value: u32) -> Self {
        match axis {
            Axis::Threads => self.threads = value,
            Axis::IoThreads => self.io_threads = value,
            Axis::Pool => self.pool = value,
            Axis::Batch => self.batch = value,
        }
        self
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, io_threads, pool, batch } = self;
        write!(
            f,
            "{threads} thread{}, {io_threads} io, {pool} pool, batch {batch}",
            if *threads == 1 { "" } else { "s" }
        )
    }
}

/// An inclusive range of one setting; a single number is a range of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    lo: u32,
    hi: u32,
}

impl Span {
    /// One value.
    pub(crate) fn fixed(value: u32) -> Self {
        Self { lo: value.max(1), hi: value.max(1) }
    }

    /// From 1 to this.
    pub(crate) fn up_to(hi: u32) -> Self {
        Self { lo: 1, hi: hi.max(1) }
    }

    /// The smallest value.
    pub(crate) fn lo(self) -> u32 {
        self.lo
    }

    /// The largest value.
    pub(crate) fn hi(self) -> u32 {
        self.hi
    }

    /// The value in it that is nearest to this.
    pub(crate) fn clamp(self, value: u32) -> u32 {
        value.clamp(self.lo, self.hi)
    }

    /// Whether there is nothing to choose.
    pub(crate) fn is_fixed(self) -> bool {
        self.lo == self.hi
    }

    /// The values of a geometric ascent: each double the one before, and the last one.
    pub(crate) fn ladder(self) -> Vec<u32> {
        let mut rungs: Vec<u32> = std::iter::successors(Some(self.lo), |rung| rung.checked_mul(2))
            .take_while(|rung| *rung < self.hi)
            .collect();
        // A last step of under a third tells nothing that its neighbour doesn't.
        if rungs.len() > 1 && rungs.last().is_some_and(|last| self.hi - last < last / 3) {
            rungs.pop();
        }
        rungs.push(self.hi);
        rungs
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            let part = part.trim();
            part.parse::<u32>()
                .map_err(|_| format!("{part:?} is not a number; give A..B, such as 1..64, or one number"))
        };
        let (lo, hi) = match text.split_once("..") {
            Some((lo, hi)) => (number(lo)?, number(hi.trim_start_matches('='))?),
            None => (number(text)?, number(text)?),
        };
        if lo == 0 {
            return Err("0 is too small; start at 1".into());
        }
        if lo > hi {
            return Err(format!("the range {lo}..{hi} is empty; did you mean {hi}..{lo}?"));
        }
        Ok(Self { lo, hi })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_fixed() { write!(f, "{}", self.lo) } else { write!(f, "{}..{}", self.lo, self.hi) }
    }
}

/// The box of all points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Space {
    pub(crate) threads: Span,
    pub(crate) io_threads: Span,
    pub(crate) pool: Span,
    pub(crate) batch: Span,
    /// How many cores the client has: io threads end there by nature, not by choice of the range.
    pub(crate) cores: u32,
}

impl Space {
    /// The range of an axis.
    pub(crate) fn on(&self, axis: Axis) -> Span {
        match axis {
            Axis::Threads => self.threads,
            Axis::IoThreads => self.io_threads,
            Axis::Pool => self.pool,
            Axis::Batch => self.batch,
        }
    }

    /// The cheapest point.
    pub(crate) fn lowest(&self) -> Point {
        Point { threads: self.threads.lo, io_threads: self.io_threads.lo, pool: self.pool.lo, batch: self.batch.lo }
    }

    /// Whether there is nothing to search.
    pub(crate) fn is_one_point(&self) -> bool {
        Axis::ALL.into_iter().all(|axis| self.on(axis).is_fixed())
    }

    /// Whether more than the upper end of this axis may exist.
    pub(crate) fn is_open(&self, axis: Axis) -> bool {
        let span = self.on(axis);
        !span.is_fixed() && (axis != Axis::IoThreads || span.hi < self.cores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_inclusive_and_a_number_is_a_range_of_one() {
        assert_eq!("1..64".parse::<Span>().unwrap().to_string(), "1..64");
        assert_eq!("1..=64".parse::<Span>().unwrap().hi(), 64);
        assert!("8".parse::<Span>().unwrap().is_fixed());
    }

    #[test]
    fn an_impossible_range_says_what_to_do() {
        assert_eq!("8..2".parse::<Span>().unwrap_err(), "the range 8..2 is empty; did you mean 2..8?");
        for text in ["", "..", "a..b", "1..x", "-1", "1..2..3", "0..4", "99999999999"] {
            assert!(text.parse::<Span>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_ladder_doubles_and_ends_at_the_end() {
        let ladder = |text: &str| text.parse::<Span>().unwrap().ladder();
        assert_eq!(ladder("1..16"), [1, 2, 4, 8, 16]);
        assert_eq!(ladder("3..20"), [3, 6, 12, 20]);
        assert_eq!(ladder("1..17"), [1, 2, 4, 8, 17]);
        assert_eq!(ladder("7"), [7]);
        assert_eq!(ladder("4000000000..4294967295"), [4_000_000_000, 4_294_967_295]);
    }
}
