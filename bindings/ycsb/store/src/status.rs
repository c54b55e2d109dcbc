//! What an operation came to, in YCSB's words.

use peristyle::{Error, ErrorKind};

/// YCSB's status of an operation. `TIMEOUT` is not among YCSB's own: it keeps servers that are slow apart from those that refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// Waits for the rest of its batch.
    BatchedOk = 1,
    /// There is no such record.
    NotFound = 2,
    /// Went wrong in another way than those below.
    Error = 3,
    /// The data isn't what it should be.
    UnexpectedState = 4,
    /// The request or the table is wrong.
    BadRequest = 5,
    /// The user may not.
    Forbidden = 6,
    /// The backend can't.
    NotImplemented = 7,
    /// Overload, or no server to be reached.
    ServiceUnavailable = 8,
    /// No answer in time.
    Timeout = 9,
}

impl Status {
    /// Its name in results: `OK`, `NOT_FOUND`, `SERVICE_UNAVAILABLE` and so on.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::BatchedOk => "BATCHED_OK",
            Self::NotFound => "NOT_FOUND",
            Self::Error => "ERROR",
            Self::UnexpectedState => "UNEXPECTED_STATE",
            Self::BadRequest => "BAD_REQUEST",
            Self::Forbidden => "FORBIDDEN",
            Self::NotImplemented => "NOT_IMPLEMENTED",
            Self::ServiceUnavailable => "SERVICE_UNAVAILABLE",
            Self::Timeout => "TIMEOUT",
        }
    }

    /// Whether YCSB counts it as a success.
    pub fn is_ok(self) -> bool {
        matches!(self, Self::Ok | Self::BatchedOk)
    }
}

impl From<&Error> for Status {
    fn from(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::InvalidArgument
            | ErrorKind::TooLarge
            | ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::SchemaMismatch => Self::BadRequest,
            ErrorKind::Unsupported(_) => Self::NotImplemented,
            ErrorKind::PermissionDenied | ErrorKind::Unauthenticated => Self::Forbidden,
            ErrorKind::Throttled
            | ErrorKind::Overloaded
            | ErrorKind::Unavailable
            | ErrorKind::ConnectionLost
            | ErrorKind::Closed => Self::ServiceUnavailable,
            ErrorKind::Timeout(_) => Self::Timeout,
            ErrorKind::Corrupt => Self::UnexpectedState,
            _ => Self::Error,
        }
    }
}

#[cfg(test)]
mod tests {
    use peristyle::TimeoutPhase;

    use super::*;

    #[test]
    fn timeouts_overload_and_mistakes_are_told_apart() {
        let status = |kind| Status::from(&Error::new(kind, "")).name();
        assert_eq!(status(ErrorKind::Timeout(TimeoutPhase::Attempt)), "TIMEOUT");
        assert_eq!(status(ErrorKind::Overloaded), "SERVICE_UNAVAILABLE");
        assert_eq!(status(ErrorKind::TooLarge), "BAD_REQUEST");
        assert_eq!(status(ErrorKind::PermissionDenied), "FORBIDDEN");
        assert_eq!(status(ErrorKind::Internal), "ERROR");
        assert!(Status::BatchedOk.is_ok() && !Status::NotFound.is_ok());
    }
}
