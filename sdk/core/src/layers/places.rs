//! Outcomes of rows, put back in the places where the caller gave the rows.

use crate::error::{Error, ErrorKind, Result};
use crate::response::Response;

/// The outcomes in an answer to so many rows. An error of the request is the outcome of each of them.
pub(crate) fn outcomes(answer: Result<Response>, rows: usize) -> Vec<Result<()>> {
    let mut outcomes = match answer.and_then(Response::into_outcomes) {
        Ok(outcomes) => outcomes,
        Err(error) => return (0..rows).map(|_| Err(error.share())).collect(),
    };
    let found = outcomes.len();
    outcomes.resize_with(rows, || {
        let message = format!("the backend answered {found} outcomes for {rows} writes");
        Err(Error::new(ErrorKind::Internal, message))
    });
    outcomes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Outcome;

    #[test]
    fn an_error_of_the_request_is_the_outcome_of_each_row() {
        let lost = Error::new(ErrorKind::ConnectionLost, "gone");
        let outcomes = outcomes(Err(lost), 2);
        assert!(outcomes.iter().all(|outcome| outcome.as_ref().unwrap_err().outcome() == Outcome::Unknown));
        assert_eq!(outcomes.len(), 2);
    }

    #[test]
    fn a_missing_outcome_is_unknown() {
        let outcomes = outcomes(Ok(Response::Outcomes(vec![Ok(())])), 2);
        assert!(outcomes[0].is_ok());
        assert_eq!(outcomes[1].as_ref().unwrap_err().outcome(), Outcome::Unknown);
    }
}
