//! What can't wait for evidence: errors of overload, and collapse.

use std::time::Duration;

use super::Sample;

/// The share of requests that may fail before it is overload.
const MOST_FAILED: f64 = 0.02;

/// How far below a limit at which requests failed is safe, and how much it is raised when none failed for a while.
const SAFE: (f64, f64) = (0.9, 1.25);

/// How long that while is: twice as long after each failure, half as long after each raise.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(300));

/// What has to be done at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alarm {
    /// Requests fail for overload.
    Errors,
    /// Goodput has fallen to less than half, and stays there.
    Collapse,
    /// Goodput has fallen. One window may be chance, and a server that stands still says nothing: the same again.
    Wait,
}

/// Watches goodput and errors.
#[derive(Debug, Clone, Default)]
pub(super) struct Guard {
    usual: Option<f64>,
    low: u32,
    ceiling: Option<Ceiling>,
}

/// The largest limit that is free of errors, as far as is known.
#[derive(Debug, Clone)]
struct Ceiling {
    limit: f64,
    patience: Duration,
    left: Duration,
}

impl Guard {
    /// The largest limit that is free of errors, as far as is known.
    pub(super) fn ceiling(&self) -> f64 {
        self.ceiling.as_ref().map_or(f64::INFINITY, |ceiling| ceiling.limit)
    }

    /// What has to be done after a window at this limit, which was used or not.
    pub(super) fn check(&mut self, sample: &Sample, limit: f64, is_used: bool) -> Option<Alarm> {
        #[expect(clippy::cast_precision_loss, reason = "counts of one window")]
        let failed = sample.failed as f64 / (sample.ended.max(1) as f64);
        if failed > MOST_FAILED {
            self.fail(limit);
            return Some(Alarm::Errors);
        }
        self.pass(sample.elapsed);
        let goodput = sample.goodput();
        let usual = *self.usual.get_or_insert(goodput);
        if !is_used || goodput >= 0.5 * usual {
            self.low = 0;
            self.usual = is_used.then_some(usual + 0.1 * (goodput - usual));
            return None;
        }
        self.low += 1;
        match self.low {
            2 => Some(Alarm::Collapse),
            // It is no collapse, but how it is now.
            5.. if goodput > 0.0 => {
                (self.usual, self.low) = (Some(goodput), 0);
                None
            }
            _ => Some(Alarm::Wait),
        }
    }

    /// Sets the ceiling below this limit.
    pub(super) fn fail(&mut self, limit: f64) {
        let patience = self.ceiling.as_ref().map_or(PATIENCE.0, |ceiling| (2 * ceiling.patience).min(PATIENCE.1));
        let limit = (SAFE.0 * limit.min(self.ceiling())).floor().max(1.0);
        self.ceiling = Some(Ceiling { limit, patience, left: patience });
        (self.usual, self.low) = (None, 0);
    }

    fn pass(&mut self, time: Duration) {
        let Some(ceiling) = &mut self.ceiling else { return };
        ceiling.left = ceiling.left.saturating_sub(time);
        if ceiling.left.is_zero() {
            ceiling.limit *= SAFE.1;
            ceiling.patience = (ceiling.patience / 2).max(PATIENCE.0);
            ceiling.left = ceiling.patience;
        }
    }
}
