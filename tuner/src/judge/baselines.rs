//! Searches of other tools, after their descriptions, on threads alone: what a sweep is compared with. Each takes the best
//! window that it saw for the answer.

/// A search: from how to measure a number of threads, and the most of them, to the number that it recommends with the
/// throughput that it reports, and how many windows that took.
pub(crate) type Baseline = fn(&mut dyn FnMut(u32) -> f64, u32) -> Found;

/// What a baseline found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    pub(crate) threads: u32,
    pub(crate) reported: f64,
    pub(crate) windows: u32,
}

/// All of them, with short names.
pub(crate) const BASELINES: [(&str, Baseline); 4] =
    [("doubling", doubling), ("golden", golden_section), ("c-stress", cassandra_stress), ("findmax", findmax)];

/// The best window so far.
struct Best<'m> {
    measure: &'m mut dyn FnMut(u32) -> f64,
    found: Found,
}

impl<'m> Best<'m> {
    fn new(measure: &'m mut dyn FnMut(u32) -> f64) -> Self {
        Self { measure, found: Found { threads: 1, reported: f64::NEG_INFINITY, windows: 0 } }
    }

    fn at(&mut self, threads: u32) -> f64 {
        let rate = (self.measure)(threads);
        self.found.windows += 1;
        if rate > self.found.reported {
            (self.found.threads, self.found.reported) = (threads, rate);
        }
        rate
    }
}

/// 1, 2, 4 and so on to the end.
fn doubling(measure: &mut dyn FnMut(u32) -> f64, most: u32) -> Found {
    let mut best = Best::new(measure);
    for threads in std::iter::successors(Some(1_u32), |threads| threads.checked_mul(2)).take_while(|it| *it <= most) {
        best.at(threads);
    }
    best.found
}

/// Golden-section search over whole numbers, which believes in one peak.
fn golden_section(measure: &mut dyn FnMut(u32) -> f64, most: u32) -> Found {
    let mut best = Best::new(measure);
    let (mut low, mut high) = (1, most);
    let inner = |low: u32, high: u32| {
        let step = u32::try_from(crate::stats::whole(f64::from(high - low) * 0.381_966)).unwrap_or(1).max(1);
        (low + step, high - step)
    };
    let (mut left, mut right) = inner(low, high);
    let (mut at_left, mut at_right) = (best.at(left), best.at(right));
    while high - low > 3 {
        if at_left >= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = inner(low, high).0;
            at_left = best.at(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = inner(low, high).1;
            at_right = best.at(right);
        }
    }
    best.found
}

/// cassandra-stress in auto mode (`StressAction.runMulti`): 4, then 100 more at a time, from 500 on a fifth and from 1500 on a
/// tenth more; until three runs in a row gained nothing on average.
fn cassandra_stress(measure: &mut dyn FnMut(u32) -> f64, most: u32) -> Found {
    let mut best = Best::new(measure);
    let (mut threads, mut rates) = (4, Vec::new());
    while threads <= most.max(4) {
        rates.push(best.at(threads));
        let gains: Vec<f64> = rates.windows(2).rev().take(3).map(gain).collect();
        if gains.len() == 3 && gains.iter().sum::<f64>() < 0.0 {
            break;
        }
        threads = match threads {
            0..500 => threads + 100,
            500..1500 => threads * 6 / 5,
            _ => threads * 11 / 10,
        };
    }
    best.found
}

fn gain(pair: &[f64]) -> f64 {
    match pair {
        [before, after] => after / before - 1.0,
        _ => 0.0,
    }
}

/// NoSQLBench's findmax with its defaults: from 10 up by 100, 200, 400 and so on while each is better than the best; then again
/// from the best, until the first step is no better.
fn findmax(measure: &mut dyn FnMut(u32) -> f64, most: u32) -> Found {
    let mut best = Best::new(measure);
    let (mut base, mut top) = (10_u32, 0.0);
    loop {
        top = best.at(base).max(top);
        let start = base;
        let mut step = 100;
        while base + step <= most.max(10_000) {
            let rate = best.at(base + step);
            if rate <= top {
                break;
            }
            (base, top, step) = (base + step, rate, step * 2);
        }
        if base == start {
            return best.found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::sim::Curve;

    fn on_cisco(baseline: Baseline) -> Found {
        let cisco = Curve::Usl { lambda: 995.649, sigma: 0.026_716, kappa: 7.690_94e-4 };
        baseline(&mut |threads| cisco.at(f64::from(threads)), 1000)
    }

    #[test]
    fn they_find_what_the_originals_are_known_to_find() {
        let found: Vec<(&str, u32, u32)> = BASELINES
            .iter()
            .map(|(name, baseline)| (*name, on_cisco(*baseline)))
            .map(|(name, found)| (name, found.threads, found.windows))
            .collect();
        let [doubling, golden, stress, findmax] = found[..] else { panic!("{found:?}") };
        assert_eq!(doubling, ("doubling", 32, 10));
        assert!((34..=38).contains(&golden.1) && golden.2 <= 16, "{golden:?}");
        assert_eq!((stress.1, findmax.1), (104, 110));
    }
}
