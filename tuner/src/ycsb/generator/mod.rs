//! YCSB's distributions, with its constants.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::keys::fnv_hash;
use super::random::Random;
use crate::failure::{Failure, Result};
use crate::stats::real;

/// The exponent of every zipfian distribution of YCSB.
const THETA: f64 = 0.99;
/// How many items the scrambled zipfian distribution draws from, before it spreads them.
const SCRAMBLED_ITEMS: u64 = 10_000_000_001;
/// The sum of 1 / i^0.99 over those, as YCSB has it.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// Zipfian numbers below a count, the smallest the most frequent: Gray and others, "Quickly Generating Billion-Record Synthetic
/// Databases", SIGMOD 1994.
#[derive(Debug, Clone)]
pub(super) struct Zipfian {
    items: u64,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    pub(super) fn new(items: u64) -> Self {
        Self::with_zeta(items.max(1), zeta(0, items.max(1), 0.0))
    }

    fn with_zeta(items: u64, zeta: f64) -> Self {
        Self { items, zeta, eta: eta(items, zeta) }
    }

    pub(super) fn next(&self, random: &mut Random) -> u64 {
        let u = random.unit();
        let uz = u * self.zeta;
        if uz < 1.0 {
            0
        } else if uz < 1.0 + 0.5_f64.powf(THETA) {
            1
        } else {
            floor(real(self.items) * (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - THETA)))
        }
    }

    /// The distribution of more items, from the sum over the fewer. As in YCSB, eta keeps the first count of items.
    fn grown(&self, first: u64, items: u64) -> Self {
        let zeta = zeta(self.items, items, self.zeta);
        Self { items, zeta, eta: eta(first, zeta) }
    }
}

fn zeta(from: u64, to: u64, sum: f64) -> f64 {
    (from..to).fold(sum, |sum, item| sum + 1.0 / real(item + 1).powf(THETA))
}

fn eta(items: u64, zeta: f64) -> f64 {
    let two = 1.0 + 0.5_f64.powf(THETA);
    (1.0 - (2.0 / real(items)).powf(1.0 - THETA)) / (1.0 - two / zeta)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` cuts and saturates as Java's cast does"
)]
fn floor(real: f64) -> u64 {
    real as u64
}

/// The next numbers, and the last one such that it and all before are acknowledged: what was inserted, without gaps.
#[derive(Debug)]
pub(super) struct Acknowledged {
    next: AtomicU64,
    state: std::sync::Mutex<Pending>,
    /// One above the last acknowledged.
    limit: AtomicU64,
}

#[derive(Debug)]
struct Pending {
    ahead: std::collections::BTreeSet<u64>,
}

impl Acknowledged {
    pub(super) fn new(start: u64) -> Self {
        let state = std::sync::Mutex::new(Pending { ahead: std::collections::BTreeSet::new() });
        Self { next: AtomicU64::new(start), state, limit: AtomicU64::new(start) }
    }

    pub(super) fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// How many there are: one above the last acknowledged.
    pub(super) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Acquire)
    }

    pub(super) fn acknowledge(&self, number: u64) {
        let mut pending = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        pending.ahead.insert(number);
        let mut limit = self.limit();
        while pending.ahead.remove(&limit) {
            limit += 1;
        }
        self.limit.store(limit, Ordering::Release);
    }
}

/// Which of the existing records is asked for.
#[derive(Debug, Clone)]
pub(super) enum Choice {
    /// All alike, of a range.
    Uniform { from: u64, count: u64 },
    /// One after the other, of a range.
    Sequential { from: u64, count: u64 },
    /// A few much more than the others, all over the range.
    Scrambled { from: u64, count: u64, zipfian: Zipfian },
    /// The last much more than those before.
    Latest { first: u64, zipfian: Zipfian },
    /// A share of the range gets a share of the requests.
    Hotspot { from: u64, hot: u64, cold: u64, share: f64 },
    /// Ever fewer, the further back.
    Exponential { gamma: f64 },
}

impl Choice {
    pub(super) fn scrambled(from: u64, count: u64) -> Self {
        Self::Scrambled { from, count, zipfian: Zipfian::with_zeta(SCRAMBLED_ITEMS, SCRAMBLED_ZETA) }
    }

    pub(super) fn latest(records: u64) -> Self {
        let first = records.saturating_sub(1).max(1);
        Self::Latest { first, zipfian: Zipfian::new(first) }
    }

    pub(super) fn hotspot(from: u64, count: u64, data: f64, share: f64) -> Self {
        let hot = floor(real(count) * data).min(count);
        Self::Hotspot { from, hot, cold: count - hot, share }
    }

    pub(super) fn exponential(percentile: f64, range: f64) -> Self {
        Self::Exponential { gamma: -(1.0 - percentile / 100.0).ln() / range }
    }

    /// A record among those inserted. `sequence` counts the requests of all workers.
    pub(super) fn next(&mut self, random: &mut Random, sequence: &AtomicU64, inserted: &Acknowledged) -> u64 {
        loop {
            let limit = inserted.limit();
            let drawn = match self {
                Self::Uniform { from, count } => Some(*from + random.below(*count)),
                Self::Sequential { from, count } => Some(*from + sequence.fetch_add(1, Ordering::Relaxed) % *count),
                Self::Scrambled { from, count, zipfian } => Some(*from + fnv_hash(zipfian.next(random)) % *count),
                Self::Latest { first, zipfian } => {
                    let last = limit.saturating_sub(1);
                    if last > zipfian.items {
                        *zipfian = zipfian.grown(*first, last);
                    }
                    last.checked_sub(zipfian.next(random))
                }
                Self::Hotspot { from, hot, cold, share } => {
                    let in_hot = (random.unit() < *share && *hot > 0) || *cold == 0;
                    Some(if in_hot { *from + random.below(*hot) } else { *from + *hot + random.below(*cold) })
                }
                Self::Exponential { gamma } => {
                    let back = floor(-random.unit().ln() / *gamma);
                    limit.checked_sub(1).and_then(|last| last.checked_sub(back))
                }
            };
            // What is not there yet is passed over, as YCSB does.
            if let Some(record) = drawn.filter(|record| *record < limit) {
                return record;
            }
        }
    }
}

/// The lengths of fields and scans.
#[derive(Debug, Clone)]
pub(super) enum Length {
    /// Always the same.
    Constant(u64),
    /// All alike, both ends included.
    Uniform { from: u64, to: u64 },
    /// The short ones more often.
    Zipfian { from: u64, zipfian: Zipfian },
    /// As often as a file says.
    Histogram { block: u64, buckets: Vec<u64>, area: u64 },
}

impl Length {
    pub(super) fn zipfian(from: u64, to: u64) -> Self {
        Self::Zipfian { from, zipfian: Zipfian::new(to - from + 1) }
    }

    /// Reads a histogram: `BlockSize` and its bytes, then a number and a count a line, with a tab between.
    pub(super) fn histogram(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::input(format!("can't read fieldlengthhistogram={}: {error}", path.display())))?;
        let fault = |line: &str| {
            let why = "is not `BlockSize` or a number, a tab and a count";
            Failure::input(format!("fieldlengthhistogram={}: {line:?} {why}", path.display()))
        };
        let pair = |line: &str| {
            let (name, number) = line.split_once('\t')?;
            Some((name.trim().to_owned(), number.trim().parse::<u64>().ok()?))
        };
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let head = lines.next().unwrap_or_default();
        let block = pair(head).filter(|(name, _)| name == "BlockSize").ok_or_else(|| fault(head))?.1;
        let mut buckets = Vec::new();
        for line in lines {
            let (place, count) = pair(line).ok_or_else(|| fault(line))?;
            let place =
                place.parse::<usize>().ok().filter(|place| *place <= buckets.len()).ok_or_else(|| fault(line))?;
            buckets.insert(place, count);
        }
        let area: u64 = buckets.iter().sum();
        if area == 0 {
            return Err(fault("no count above 0"));
        }
        Ok(Self::Histogram { block, buckets, area })
    }

    /// The greatest.
    pub(super) fn longest(&self) -> u64 {
        match self {
            Self::Constant(length) => *length,
            Self::Uniform { to, .. } => *to,
            Self::Zipfian { from, zipfian } => *from + zipfian.items,
            Self::Histogram { block, buckets, .. } => *block * buckets.len() as u64,
        }
    }

    pub(super) fn next(&self, random: &mut Random) -> u64 {
        match self {
            Self::Constant(length) => *length,
            Self::Uniform { from, to } => *from + random.below(*to - *from + 1),
            Self::Zipfian { from, zipfian } => *from + zipfian.next(random),
            Self::Histogram { block, buckets, area } => {
                let mut left = random.below(*area);
                let last = buckets.len().saturating_sub(1);
                for (place, count) in buckets.iter().take(last).enumerate() {
                    // As in YCSB, a number on the edge belongs to the bucket before it.
                    if left <= *count {
                        return (place as u64 + 1) * *block;
                    }
                    left -= *count;
                }
                last as u64 * *block
            }
        }
    }
}

#[cfg(test)]
mod tests;
