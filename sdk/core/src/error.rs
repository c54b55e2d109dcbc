//! The one error type of the SDK: what failed, whether it was applied, whether trying again may help.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::capability::Capability;

/// The result of every fallible operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Source = Box<dyn StdError + Send + Sync + 'static>;

/// What kind of failure an [`Error`] is. Match on it to decide what to do; the message is for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong in itself: a missing key column, a value of the wrong type, an impossible range.
    InvalidArgument,
    /// A key, value, batch or frame is over a limit of the backend.
    TooLarge,
    /// The backend can't do this, by its declared capabilities. Nothing was sent.
    Unsupported(Capability),
    /// A keyspace, table or column isn't there.
    NotFound,
    /// What was to be created is there already.
    AlreadyExists,
    /// The live table differs from the declared one.
    SchemaMismatch,
    /// The user may not do this.
    PermissionDenied,
    /// The login was refused.
    Unauthenticated,
    /// The server's rate limit refused the request.
    Throttled,
    /// The server, or a queue of the client, has more work than it takes.
    Overloaded,
    /// Too few nodes are alive, or none could be reached.
    Unavailable,
    /// No answer within the given time.
    Timeout(TimeoutPhase),
    /// The connection broke while the request was under way.
    ConnectionLost,
    /// Stored data or a reply can't be what it should be.
    Corrupt,
    /// The client, streamer or engine is closed.
    Closed,
    /// Another process holds the engine's folder.
    Locked,
    /// The disk is full.
    DiskFull,
    /// Anything else that went wrong below the SDK.
    Internal,
}

/// Which of the nested time limits ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeoutPhase {
    /// Waiting in the client for a permit or a place in a queue. Nothing was sent.
    Queue,
    /// Opening a connection.
    Connect,
    /// One attempt at one server, or the server's own time limit.
    Attempt,
    /// The deadline over everything: queues, attempts and pauses.
    Deadline,
}

impl ErrorKind {
    /// A stable, lower-case name for metrics and reports, such as `overloaded`.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::TooLarge => "too_large",
            Self::Unsupported(_) => "unsupported",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::SchemaMismatch => "schema_mismatch",
            Self::PermissionDenied => "permission_denied",
            Self::Unauthenticated => "unauthenticated",
            Self::Throttled => "throttled",
            Self::Overloaded => "overloaded",
            Self::Unavailable => "unavailable",
            Self::Timeout(TimeoutPhase::Queue) => "timeout_queue",
            Self::Timeout(TimeoutPhase::Connect) => "timeout_connect",
            Self::Timeout(TimeoutPhase::Attempt) => "timeout_attempt",
            Self::Timeout(TimeoutPhase::Deadline) => "timeout_deadline",
            Self::ConnectionLost => "connection_lost",
            Self::Corrupt => "corrupt",
            Self::Closed => "closed",
            Self::Locked => "locked",
            Self::DiskFull => "disk_full",
            Self::Internal => "internal",
        }
    }

    fn default_outcome(self) -> Outcome {
        match self {
            Self::Overloaded
            | Self::Timeout(TimeoutPhase::Attempt | TimeoutPhase::Deadline)
            | Self::ConnectionLost
            | Self::Corrupt
            | Self::Internal => Outcome::Unknown,
            _ => Outcome::NotApplied,
        }
    }

    fn default_retry(self) -> Retry {
        match self {
            Self::Throttled | Self::Overloaded | Self::Unavailable | Self::Timeout(_) | Self::ConnectionLost => {
                Retry::Later
            }
            _ => Retry::Never,
        }
    }
}

/// Whether a failed write took effect. For a failed read it says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Certainly not applied, now or later: any operation may be sent again.
    NotApplied,
    /// Applied, not applied, or applied later: only an idempotent operation may be sent again.
    Unknown,
}

/// Whether the same request may succeed if it is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// It will fail again: the request or the schema must change first.
    Never,
    /// It may succeed after a pause, or at another node.
    Later,
}

/// One attempt at one server, kept for the message of the final error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The server's address, or what is known of it.
    pub endpoint: String,
    /// From the send to the failure.
    pub elapsed: Duration,
    /// What went wrong, in one line.
    pub cause: String,
}

/// A failed operation: [kind](ErrorKind), [outcome](Outcome), [retryability](Retry), operation, table, attempts and source.
///
/// It is one pointer wide, so results stay small.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    outcome: Outcome,
    retry: Retry,
    message: String,
    operation: Option<&'static str>,
    table: Option<String>,
    attempts: Vec<Attempt>,
    source: Option<Source>,
}

impl Error {
    /// An error of this kind, with the kind's usual outcome and retryability.
    ///
    /// The message is one lower-case line that says what failed and what to check.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            outcome: kind.default_outcome(),
            retry: kind.default_retry(),
            message: message.into(),
            operation: None,
            table: None,
            attempts: Vec::new(),
            source: None,
        }))
    }

    /// A wrong request: [`ErrorKind::InvalidArgument`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// A refused capability: [`ErrorKind::Unsupported`].
    pub fn unsupported(capability: Capability, backend: &str) -> Self {
        let message = format!("the {backend} backend has no {capability}: {}", capability.hint());
        Self::new(ErrorKind::Unsupported(capability), message)
    }

    /// Replaces the outcome.
    #[must_use]
    pub fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.0.outcome = outcome;
        self
    }

    /// Replaces the retryability.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.0.retry = retry;
        self
    }

    /// Adds the error below this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Adds the operation and the table, where they aren't set yet.
    #[must_use]
    pub fn with_context(mut self, operation: &'static str, table: &str) -> Self {
        self.0.operation.get_or_insert(operation);
        if !table.is_empty() {
            self.0.table.get_or_insert_with(|| table.to_owned());
        }
        self
    }

    /// Adds an attempt to the history.
    #[must_use]
    pub fn with_attempt(mut self, attempt: Attempt) -> Self {
        self.0.attempts.push(attempt);
        self
    }

    /// Puts attempts that were made before into the front of the history.
    #[must_use]
    pub fn with_earlier_attempts(mut self, earlier: &[Attempt]) -> Self {
        self.0.attempts.splice(0..0, earlier.iter().cloned());
        self
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether a failed write took effect.
    pub fn outcome(&self) -> Outcome {
        self.0.outcome
    }

    /// Whether sending again may help.
    pub fn retry(&self) -> Retry {
        self.0.retry
    }

    /// The message alone, without operation, table and attempts.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The operation that failed, such as `put`.
    pub fn operation(&self) -> Option<&'static str> {
        self.0.operation
    }

    /// The table it was on.
    pub fn table(&self) -> Option<&str> {
        self.0.table.as_deref()
    }

    /// Every attempt that was made, first to last.
    pub fn attempts(&self) -> &[Attempt] {
        &self.0.attempts
    }

    /// A copy for another caller who shares the failed request. The source stays with the original; its text is kept.
    #[must_use]
    pub fn share(&self) -> Self {
        let inner = &self.0;
        Self(Box::new(Inner {
            kind: inner.kind,
            outcome: inner.outcome,
            retry: inner.retry,
            message: inner.message.clone(),
            operation: inner.operation,
            table: inner.table.clone(),
            attempts: inner.attempts.clone(),
            source: inner.source.as_ref().map(|source| source.to_string().into()),
        }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0;
        match (inner.operation, inner.table.as_deref()) {
            (Some(operation), Some(table)) => write!(f, "{operation} on {table}: ")?,
            (Some(operation), None) => write!(f, "{operation}: ")?,
            (None, Some(table)) => write!(f, "{table}: ")?,
            (None, None) => {}
        }
        f.write_str(&inner.message)?;
        for attempt in &inner.attempts {
            write!(f, "; {} after {:?}: {}", attempt.endpoint, attempt.elapsed, attempt.cause)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0;
        f.debug_struct("Error")
            .field("kind", &inner.kind)
            .field("outcome", &inner.outcome)
            .field("retry", &inner.retry)
            .field("message", &inner.message)
            .field("operation", &inner.operation)
            .field("table", &inner.table)
            .field("attempts", &inner.attempts)
            .field("source", &inner.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|source| source.as_ref() as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_operation_table_and_attempts() {
        let error = Error::new(ErrorKind::Unavailable, "no node answered; check the hosts")
            .with_context("put", "t1")
            .with_attempt(Attempt {
                endpoint: "127.0.0.1:9042".into(),
                elapsed: Duration::from_millis(5),
                cause: "refused".into(),
            });
        let text = "put on t1: no node answered; check the hosts; 127.0.0.1:9042 after 5ms: refused";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn the_first_context_stays() {
        let error = Error::invalid("x").with_context("get", "a").with_context("scan", "b");
        assert_eq!((error.operation(), error.table()), (Some("get"), Some("a")));
    }

    #[test]
    fn doubtful_kinds_are_unknown_and_refusals_not_applied() {
        let unknown = [
            ErrorKind::ConnectionLost,
            ErrorKind::Timeout(TimeoutPhase::Attempt),
            ErrorKind::Timeout(TimeoutPhase::Deadline),
            ErrorKind::Overloaded,
        ];
        for kind in unknown {
            assert_eq!(Error::new(kind, "").outcome(), Outcome::Unknown, "{kind:?}");
        }
        for kind in [ErrorKind::InvalidArgument, ErrorKind::Timeout(TimeoutPhase::Queue), ErrorKind::Unavailable] {
            assert_eq!(Error::new(kind, "").outcome(), Outcome::NotApplied, "{kind:?}");
        }
    }

    #[test]
    fn an_error_is_one_pointer_wide() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }
}
