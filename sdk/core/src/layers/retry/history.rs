//! One error for all attempts.

use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::error::{Attempt, Error, Outcome};

/// One attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) number: u32,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) elapsed: Duration,
}

/// The error of an attempt with itself in its history. A backend that knows the server has written it there already.
pub(super) fn recorded(error: Error, sent: Sent) -> Error {
    if error.attempts().is_empty() {
        let Sent { number, endpoint, elapsed } = sent;
        let endpoint = endpoint.map_or_else(|| format!("attempt {number}"), |endpoint| endpoint.to_string());
        let cause = error.message().to_owned();
        return error.with_attempt(Attempt { endpoint, elapsed, cause });
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

    fn sent(number: u32) -> Sent {
        Sent { number, endpoint: None, elapsed: Duration::from_millis(u64::from(number)) }
    }

    #[test]
    fn a_doubt_about_one_attempt_stays_a_doubt() {
        let lost = recorded(Error::new(ErrorKind::ConnectionLost, "lost"), sent(1));
        let refused = recorded(Error::new(ErrorKind::Unavailable, "no node"), sent(2));
        let error = joined(&lost, refused);
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unavailable, Outcome::Unknown));
        assert_eq!(error.to_string(), "no node; attempt 1 after 1ms: lost; attempt 2 after 2ms: no node");
    }

    #[test]
    fn an_attempt_has_the_name_of_its_endpoint() {
        let endpoint = Some(Endpoint::named("h1:9042"));
        let error = recorded(Error::new(ErrorKind::Unavailable, "down"), Sent { endpoint, ..sent(1) });
        assert_eq!(error.to_string(), "down; h1:9042 after 1ms: down");
    }

    #[test]
    fn what_the_backend_wrote_of_the_server_is_kept() {
        let attempt =
            Attempt { endpoint: "h1:9042".into(), elapsed: Duration::from_millis(3), cause: "refused".into() };
        let error = Error::new(ErrorKind::Unavailable, "x").with_attempt(attempt.clone());
        assert_eq!(recorded(error, sent(1)).attempts(), [attempt]);
    }
}
