//! Whether more requests are worth it, told from noise.

/// How many standard deviations evidence has to be away from nothing.
const BAR: f64 = 1.5;

/// Looks after which unclear evidence is forgotten: the server may have changed.
const MOST_LOOKS: u32 = 10;

/// The least noise that is believed in, as a share of goodput.
const LEAST_NOISE: f64 = 0.003;

/// What the looks so far say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing yet.
    Unclear,
    /// Nothing, after many looks.
    Stay,
    /// More requests are worth it, or fewer do nearly as well.
    Move { is_up: bool, is_clear: bool },
}

impl Verdict {
    /// Whether it says up; `None` for neither.
    pub(super) fn is_up(self) -> Option<bool> {
        match self {
            Self::Move { is_up, .. } => Some(is_up),
            Self::Unclear | Self::Stay => None,
        }
    }
}

/// The sum of the looks since the last move, and the noise of one window.
#[derive(Debug, Clone, Default)]
pub(super) struct Evidence {
    sum: f64,
    looks: u32,
    variance: f64,
    seen: f64,
}

impl Evidence {
    /// Adds a look: the logarithms of goodput below and above the limit, and what the gain would have to be.
    pub(super) fn add(&mut self, below: [f64; 2], above: [f64; 2], worth: f64) -> Verdict {
        let ([below, below_again], [above, above_again]) = (below, above);
        // Windows of one side differ by noise alone. What doubles it is no noise, but a change of the server.
        let variance = ((below - below_again).powi(2) + (above - above_again).powi(2)) / 4.0;
        self.seen = (self.seen + 1.0).min(10.0);
        self.variance += (variance.min(0.04) - self.variance) / self.seen;
        self.sum += (above + above_again - below - below_again) / 2.0 - worth;
        self.looks += 1;
        let bar = BAR * self.variance.sqrt().max(LEAST_NOISE) * f64::from(self.looks).sqrt();
        let is_clear = self.sum.abs() > 2.0 * bar;
        let verdict = match self.sum {
            sum if sum.abs() > bar => Verdict::Move { is_up: sum > 0.0, is_clear },
            _ if self.looks >= MOST_LOOKS => Verdict::Stay,
            _ => return Verdict::Unclear,
        };
        self.forget();
        verdict
    }

    /// Starts again, with the noise that was seen.
    pub(super) fn forget(&mut self) {
        (self.sum, self.looks) = (0.0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_beyond_its_worth_is_clear_at_once_without_noise() {
        let mut evidence = Evidence::default();
        assert_eq!(evidence.add([0.0; 2], [0.2; 2], 0.05), Verdict::Move { is_up: true, is_clear: true });
        assert_eq!(evidence.add([0.0; 2], [0.0; 2], 0.05), Verdict::Move { is_up: false, is_clear: true });
    }

    #[test]
    fn noise_makes_it_wait_and_then_let_go() {
        let mut evidence = Evidence::default();
        let verdicts: Vec<_> = (0..10).map(|_| evidence.add([0.1, -0.1], [0.1, -0.1], 0.0)).collect();
        assert_eq!(verdicts.iter().filter(|verdict| **verdict == Verdict::Unclear).count(), 9);
        assert_eq!(verdicts.last(), Some(&Verdict::Stay));
    }

    #[test]
    fn small_gains_add_up() {
        let mut evidence = Evidence::default();
        let verdict =
            (0..10).map(|_| evidence.add([0.05, -0.05], [0.12, 0.02], 0.0)).find(|one| *one != Verdict::Unclear);
        assert_eq!(verdict, Some(Verdict::Move { is_up: true, is_clear: false }));
    }
}
