//! Whether a latency objective is met, when only some requests were seen.

use statrs::distribution::{Binomial, DiscreteCDF};

/// The chance of a wrong verdict.
const RISK: f64 = 0.05;

/// What a number of slow requests says of an objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Met {
    /// So few are slow that the true share is within the objective.
    Yes,
    /// So many are slow that it isn't.
    No,
    /// More requests are needed.
    Undecided,
}

/// Judges `slow` of `all` requests against the share that may be slow, by the binomial distribution: the test behind the early
/// stopping of `MLPerf`'s load generator (mlcommons/inference, `early_stopping.cc`).
pub(crate) fn judge(slow: u64, all: u64, allowed: f64) -> Met {
    let Ok(binomial) = Binomial::new(allowed.clamp(0.0, 1.0), all) else { return Met::Undecided };
    if all == 0 {
        return Met::Undecided;
    }
    // As few slow ones as this would be chance if the true share were the allowed one; as many likewise.
    if binomial.cdf(slow) < RISK {
        Met::Yes
    } else if slow > 0 && binomial.sf(slow - 1) < RISK {
        Met::No
    } else {
        Met::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_slow_request_proves_p99_from_299_on() {
        // 0.99^298 = 0.0500, 0.99^299 = 0.0495.
        assert_eq!(judge(0, 298, 0.01), Met::Undecided);
        assert_eq!(judge(0, 299, 0.01), Met::Yes);
    }

    #[test]
    fn many_slow_requests_refute_it_and_a_few_leave_it_open() {
        assert_eq!(judge(10, 100, 0.01), Met::No);
        assert_eq!(judge(10, 1000, 0.01), Met::Undecided);
        assert_eq!(judge(1, 1, 0.01), Met::No);
        assert_eq!(judge(0, 0, 0.01), Met::Undecided);
    }

    #[test]
    fn counts_may_be_large() {
        assert_eq!(judge(900_000, 100_000_000, 0.01), Met::Yes);
        assert_eq!(judge(1_100_000, 100_000_000, 0.01), Met::No);
    }
}
