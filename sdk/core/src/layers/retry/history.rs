//! One error for all attempts.

use std::time::Duration;

use crate::error::{Attempt, Error, Outcome};

/// The error of an attempt with itself in its history. A backend that knows the server has written it there already.
pub(super) fn recorded(error: Error, number: u32, elapsed: Duration) -> Error {
    if error.attempts().is_empty() {
        let cause = error.message().to_owned();
        return error.with_attempt(Attempt { endpoint: format!("attempt {number}"), elapsed, cause });
    }
    error
}

/// The newer error, with what came before it. If any attempt may have been applied, all of them together may have been.
pub(super) fn joined(earlier: &Error, newer: Error) -> Error {
    let newer = newer.with_earlier_attempts(earlier.attempts());
    match earlier.outcome() {
        Outcome::Unknown => newer.with_outcome(Outcome::Unknown),
        Outcome::NotApplied => newer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_doubt_about_one_attempt_stays_a_doubt() {
        let lost = recorded(Error::new(ErrorKind::ConnectionLost, "lost"), 1, Duration::from_millis(1));
        let refused = recorded(Error::new(ErrorKind::Unavailable, "no node"), 2, Duration::from_millis(2));
        let error = joined(&lost, refused);
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unavailable, Outcome::Unknown));
        assert_eq!(error.to_string(), "no node; attempt 1 after 1ms: lost; attempt 2 after 2ms: no node");
    }

    #[test]
    fn what_the_backend_wrote_of_the_server_is_kept() {
        let attempt =
            Attempt { endpoint: "h1:9042".into(), elapsed: Duration::from_millis(3), cause: "refused".into() };
        let error = Error::new(ErrorKind::Unavailable, "x").with_attempt(attempt.clone());
        assert_eq!(recorded(error, 1, Duration::ZERO).attempts(), [attempt]);
    }
}
