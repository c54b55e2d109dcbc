//! How many requests should be under way: a limit that follows the knee of the server.
//!
//! A pure state machine, without clock and without I/O: what was measured over one window goes in, the limit for the next one
//! comes out. The [concurrency layer](super::ConcurrencyLayer) drives it; simulators judge it.

mod evidence;
mod guard;

use std::num::NonZeroUsize;
use std::time::Duration;

use self::evidence::{Evidence, Verdict};
use self::guard::{Alarm, Guard};

/// The gain of goodput, per gain of requests under way, at which more aren't worth it: 1 where twice the requests give twice the
/// goodput, 0 at the peak. Where a server follows the Universal Scalability Law, this is near the cheapest point within 2 % of
/// the peak.
const WORTH: f64 = 0.048;

/// How far it looks to both sides once it is there, as a share of the limit, and at most while it is far off.
const STEP: (f64, f64) = (0.25, 0.75);

/// How much of a step a move takes that is just about clear: at first, and when it is the second in that direction.
const SMALL: (f64, f64) = (0.33, 0.66);

/// Where the autopilot starts, and the range that it stays in.
///
/// ```
/// use peristyle_core::layers::Autopilot;
///
/// let autopilot = Autopilot::default().start(64).range(4, 512);
/// assert_eq!(autopilot.pilot().limit(), 43, "it looks below at first, and then above");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Autopilot {
    start: usize,
    least: usize,
    most: usize,
}

impl Default for Autopilot {
    /// Starts at 20 requests, and stays within 1 and 1024.
    fn default() -> Self {
        Self { start: 20, least: 1, most: 1_024 }
    }
}

impl Autopilot {
    /// Starts at this many requests: what a sweep found, or a guess. Default: 20.
    #[must_use]
    pub fn start(mut self, requests: usize) -> Self {
        self.start = requests;
        self
    }

    /// Stays within these numbers of requests. Default: 1 and 1024.
    #[must_use]
    pub fn range(mut self, least: usize, most: usize) -> Self {
        self.least = least.max(1);
        self.most = most.max(self.least);
        self
    }

    /// How many requests it starts at.
    pub(super) fn first(&self) -> usize {
        self.start
    }

    /// The least requests that it allows.
    pub(super) fn least(&self) -> usize {
        self.least
    }

    /// The most requests that it allows.
    pub fn most(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.most).unwrap_or(NonZeroUsize::MIN)
    }

    /// The state machine.
    pub fn pilot(self) -> Pilot {
        Pilot::new(self)
    }
}

/// What was measured while a limit held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// For how long.
    pub elapsed: Duration,
    /// The work that was done: rows of requests that succeeded.
    pub succeeded: u64,
    /// Requests that ended with an error that tells of the server's load.
    pub failed: u64,
    /// Requests that ended.
    pub ended: u64,
    /// How many requests were under way on average.
    pub in_flight: f64,
}

impl Sample {
    /// Work done per second.
    pub fn goodput(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts of one window")]
        let succeeded = self.succeeded as f64;
        succeeded / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Finds the knee and follows it.
///
/// **How**: four windows make a look: below the limit, above, above, below, so that a drift of the server cancels out. The gain
/// of goodput between both sides, less what it would have to be to be worth it, adds up over looks until it stands out from
/// the noise, which is measured between windows of one side; then the limit moves, farther the clearer the evidence is. So it
/// moves down where more requests bring nothing: on a plateau it settles at the plateau's beginning, and it can't creep.
/// Windows in which the limit wasn't used say nothing and move nothing. When goodput falls to less than half, or requests fail
/// for overload, it cuts at once, and comes back to where errors began only after a while, twice as long each time.
///
/// A latency gradient (Gradient2, Vegas) asks another question, whether requests queue, and drifts to its maximum or starves
/// with the baseline it happened to see; `benches/autopilot.rs` compares them.
#[derive(Debug, Clone)]
pub struct Pilot {
    center: f64,
    /// Where it started: how much of the load is its own.
    start: f64,
    step: f64,
    least: f64,
    most: f64,
    look: Vec<f64>,
    evidence: Evidence,
    guard: Guard,
    /// Whether the last move went up.
    last: Option<bool>,
}

impl Pilot {
    fn new(autopilot: Autopilot) -> Self {
        let (least, most) = (to_f64(autopilot.least), to_f64(autopilot.most));
        Self {
            center: to_f64(autopilot.start).clamp(least, most),
            start: to_f64(autopilot.start.max(1)),
            step: 2.0 * STEP.0,
            least,
            most,
            look: Vec::with_capacity(4),
            evidence: Evidence::default(),
            guard: Guard::default(),
            last: None,
        }
    }

    /// Stays within another range from now on, with what it knows scaled to that: when the servers that it is for are more, and its
    /// own share of the load is less.
    pub(super) fn share(&mut self, autopilot: Autopilot) {
        let scale = to_f64(autopilot.start) / self.start;
        self.start = to_f64(autopilot.start);
        (self.least, self.most) = (to_f64(autopilot.least), to_f64(autopilot.most));
        self.cut(self.center * scale, self.step);
    }

    /// How many requests may be under way now.
    pub fn limit(&self) -> usize {
        let (below, above) = self.sides();
        let limit = if matches!(self.look.len(), 0 | 3) { below } else { above };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within the range, which is of usize"
        )]
        let limit = limit as usize;
        limit
    }

    /// Both sides of the limit, a whole number each.
    fn sides(&self) -> (f64, f64) {
        let below = (self.center / (1.0 + self.step)).round().max(self.least);
        let above = (self.center * (1.0 + self.step)).round().min(self.most).min(self.guard.ceiling());
        if above > below {
            return (below, above);
        }
        if below > self.least { (below - 1.0, below) } else { (below, (below + 1.0).min(self.most)) }
    }

    /// Takes what was measured at [`limit`](Self::limit), and sets the next.
    pub fn observe(&mut self, sample: &Sample) {
        let limit = to_f64(self.limit());
        let is_used = sample.in_flight >= 0.8 * limit;
        match self.guard.check(sample, limit, is_used) {
            Some(Alarm::Errors) => return self.cut(self.guard.ceiling() / (1.0 + STEP.0), STEP.0),
            // Where it went well below, it is the side above that is too much.
            Some(Alarm::Collapse) if self.look.len() == 1 => {
                self.guard.fail(limit);
                return self.cut(self.guard.ceiling() / (1.0 + STEP.0), STEP.0);
            }
            Some(Alarm::Collapse) => return self.cut(0.7 * self.center, 2.0 * STEP.0),
            Some(Alarm::Wait) => return,
            None if !is_used => return self.look.clear(),
            None => {}
        }
        self.look.push(sample.goodput().max(f64::MIN_POSITIVE).ln());
        if let [below, above, above_again, below_again] = *self.look {
            let (low, high) = self.sides();
            let worth = WORTH * (high / low).ln();
            self.look.clear();
            let verdict = self.evidence.add([below, below_again], [above, above_again], worth);
            self.follow(verdict);
        }
    }

    fn cut(&mut self, center: f64, step: f64) {
        self.center = center.clamp(self.least, self.most);
        self.step = step;
        self.look.clear();
        self.evidence.forget();
        self.last = None;
    }

    fn follow(&mut self, verdict: Verdict) {
        let is_up = verdict.is_up();
        let is_again = is_up == self.last;
        let (narrower, wider) = ((self.step / 1.5).max(STEP.0), (1.5 * self.step).min(STEP.1));
        // A move that is just about clear is a small one, the first time: most of them are noise.
        let (share, step) = match verdict {
            Verdict::Unclear => (0.0, (self.step / 1.1).max(STEP.0)),
            Verdict::Move { is_clear: true, .. } if is_again => (1.0, wider),
            Verdict::Move { is_clear: true, .. } => (1.0, narrower),
            Verdict::Move { is_clear: false, .. } if is_again => (SMALL.1, narrower),
            Verdict::Move { is_clear: false, .. } => (SMALL.0, narrower),
            Verdict::Stay => (0.0, narrower),
        };
        let factor = (1.0 + self.step).powf(share);
        let center = if is_up == Some(false) { self.center / factor } else { self.center * factor };
        self.center = center.clamp(self.least, self.most.min(self.guard.ceiling()).max(self.least));
        self.step = step;
        if verdict != Verdict::Unclear {
            self.last = is_up;
        }
    }
}

fn to_f64(requests: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "numbers of requests")]
    let requests = requests as f64;
    requests
}

#[cfg(test)]
mod tests;
