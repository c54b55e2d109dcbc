//! Every error of the driver and of the server, as one of ours: what kind it is, whether a write took effect, whether to try
//! again, and what to check. Variants that the driver adds later show up as warnings of the lint below.
#![deny(clippy::wildcard_enum_match_arm)]

use std::fmt::Display;

use peristyle_core::{Error, ErrorKind, Outcome, Retry, TimeoutPhase};
use scylla::errors::{
    BadQuery, ConnectionError, ConnectionPoolError, ConnectionSetupRequestError, ConnectionSetupRequestErrorKind,
    DbError, ExecutionError, MetadataError, NewSessionError, PrepareError, RequestAttemptError, SchemaAgreementError,
};

/// Server error codes that the driver has no name for.
const CDC_WRITE_FAILURE: i32 = 0x1600;
const CAS_WRITE_UNKNOWN: i32 = 0x1700;

/// The longest text of a server that is passed on.
const MAX_REASON: usize = 400;

/// A request that failed.
pub(crate) fn execution(error: ExecutionError) -> Error {
    match &error {
        ExecutionError::BadQuery(bad) => bad_query(bad),
        ExecutionError::EmptyPlan => {
            not_applied(ErrorKind::Unavailable, "no node to send to: check the datacenter and that its nodes are up")
        }
        ExecutionError::PrepareError(error) => return prepare(error.clone()),
        ExecutionError::ConnectionPoolError(error) => pool(error),
        ExecutionError::LastAttemptError(error) => attempt(error),
        ExecutionError::RequestTimeout(limit) => attempt_timeout(&format!("within {limit:?}")),
        ExecutionError::SchemaAgreementError(error) => agreement(error),
        ExecutionError::MetadataError(error) => {
            let message = format!("the change was applied, but the new schema can't be read: {}", line(error));
            Error::new(ErrorKind::Unavailable, message).with_outcome(Outcome::Unknown)
        }
        // Not sent by this crate, and what later versions of the driver add.
        other @ ExecutionError::UseKeyspaceError(_) | other => Error::new(ErrorKind::Internal, line(other)),
    }
    .with_source(error)
}

/// A statement that could not be prepared: nothing was executed.
pub(crate) fn prepare(error: PrepareError) -> Error {
    let mapped = match &error {
        PrepareError::ConnectionPoolError(error) => pool(error),
        PrepareError::AllAttemptsFailed { first_attempt } => attempt(first_attempt),
        PrepareError::PreparedStatementIdsMismatch => {
            Error::new(ErrorKind::Internal, "nodes disagree on a prepared statement: check that all run one version")
        }
        other => Error::new(ErrorKind::Internal, line(other)),
    };
    mapped.with_outcome(Outcome::NotApplied).with_source(error)
}

/// A session that could not be opened.
pub(crate) fn connect(error: NewSessionError, hosts: &[String]) -> Error {
    let hosts = hosts.join(", ");
    let mapped = match &error {
        NewSessionError::FailedToResolveAnyHostname(names) => {
            let message = format!("no address found for {}: check the host names", names.join(", "));
            Error::new(ErrorKind::Unavailable, message)
        }
        NewSessionError::EmptyKnownNodesList => Error::invalid("no hosts: give at least one contact point"),
        NewSessionError::IllegalConfig(reason) => Error::invalid(line(reason)),
        NewSessionError::MetadataError(MetadataError::ConnectionPoolError(error)) => match login(error) {
            Some(refused) => refused,
            None => unreachable_hosts(&hosts, &line(error)),
        },
        other @ (NewSessionError::MetadataError(_) | NewSessionError::UseKeyspaceError(_)) | other => {
            unreachable_hosts(&hosts, &line(other))
        }
    };
    mapped.with_source(error)
}

/// No server answered as one of CQL does.
pub(crate) fn unreachable_hosts(hosts: &str, cause: &str) -> Error {
    let message = format!(
        "no CQL server could be reached at {hosts}: {cause}; check that it runs, the port (CQL's is 9042), and tls"
    );
    Error::new(ErrorKind::Unavailable, message)
}

/// The limit of one attempt ran out in the client.
pub(crate) fn attempt_timeout(limit: &str) -> Error {
    let message = format!("no answer {limit}: check the server's load, or raise request_timeout");
    Error::new(ErrorKind::Timeout(TimeoutPhase::Attempt), message)
}

/// The deadline of the whole request ran out.
pub(crate) fn deadline() -> Error {
    Error::new(ErrorKind::Timeout(TimeoutPhase::Deadline), "the deadline passed")
}

/// A reply that can't be what it should be.
pub(crate) fn corrupt(cause: &dyn Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the server's reply can't be read: {}", line(cause)))
}

fn bad_query(bad: &BadQuery) -> Error {
    match bad {
        BadQuery::SerializationError(error) => not_applied(ErrorKind::InvalidArgument, &line(error)),
        BadQuery::ValuesTooLongForKey(length, limit) => {
            not_applied(ErrorKind::TooLarge, &format!("a partition key of {length} bytes; the limit is {limit}"))
        }
        BadQuery::TooManyQueriesInBatchStatement(count) => {
            not_applied(ErrorKind::TooLarge, &format!("{count} statements in a batch; the limit is 65535"))
        }
        other @ BadQuery::PartitionKeyExtraction | other => not_applied(ErrorKind::Internal, &line(other)),
    }
}

fn pool(error: &ConnectionPoolError) -> Error {
    login(error).unwrap_or_else(|| {
        not_applied(ErrorKind::Unavailable, &format!("no connection: {}; check that the nodes are up", line(error)))
    })
}

/// The refused login behind a broken pool, if that is what broke it.
fn login(error: &ConnectionPoolError) -> Option<Error> {
    let ConnectionPoolError::Broken {
        last_connection_error:
            ConnectionError::ConnectionSetupRequestError(ConnectionSetupRequestError { error: setup, .. }),
    } = error
    else {
        return None;
    };
    refused_login(setup)
}

fn refused_login(error: &ConnectionSetupRequestErrorKind) -> Option<Error> {
    match error {
        ConnectionSetupRequestErrorKind::MissingAuthentication => Some(Error::new(
            ErrorKind::Unauthenticated,
            "the server wants a login: give user and password, as in cql://user:password@host",
        )),
        ConnectionSetupRequestErrorKind::DbError(DbError::AuthenticationError, reason) => {
            Some(Error::new(ErrorKind::Unauthenticated, format!("the login was refused: {}; check it", line(reason))))
        }
        ConnectionSetupRequestErrorKind::DbError(DbError::Unauthorized, reason) => {
            Some(Error::new(ErrorKind::PermissionDenied, format!("the login is not allowed: {}", line(reason))))
        }
        ConnectionSetupRequestErrorKind::StartAuthSessionError(_)
        | ConnectionSetupRequestErrorKind::AuthChallengeEvaluationError(_)
        | ConnectionSetupRequestErrorKind::AuthFinishError(_)
        | ConnectionSetupRequestErrorKind::CqlAuthenticateParseError(_)
        | ConnectionSetupRequestErrorKind::CqlAuthChallengeParseError(_)
        | ConnectionSetupRequestErrorKind::CqlAuthSuccessParseError(_) => {
            Some(Error::new(ErrorKind::Unauthenticated, format!("the login failed: {}", line(error))))
        }
        ConnectionSetupRequestErrorKind::CqlRequestSerialization(_)
        | ConnectionSetupRequestErrorKind::BodyExtensionsParseError(_)
        | ConnectionSetupRequestErrorKind::UnableToAllocStreamId
        | ConnectionSetupRequestErrorKind::BrokenConnection(_)
        | ConnectionSetupRequestErrorKind::DbError(..)
        | ConnectionSetupRequestErrorKind::UnexpectedResponse(_)
        | ConnectionSetupRequestErrorKind::CqlSupportedParseError(_)
        | ConnectionSetupRequestErrorKind::CqlErrorParseError(_)
        | _ => None,
    }
}

fn attempt(error: &RequestAttemptError) -> Error {
    match error {
        RequestAttemptError::DbError(kind, reason) => server(kind, &line(reason)),
        RequestAttemptError::SerializationError(error) => not_applied(ErrorKind::InvalidArgument, &line(error)),
        RequestAttemptError::CqlRequestSerialization(error) => not_applied(ErrorKind::TooLarge, &line(error)),
        RequestAttemptError::UnableToAllocStreamId => {
            let message = "every stream of the connection is taken: send less at once, or raise pool";
            not_applied(ErrorKind::Overloaded, message)
        }
        RequestAttemptError::BrokenConnectionError(error) => {
            Error::new(ErrorKind::ConnectionLost, format!("{}; check that the node is up", line(error)))
        }
        RequestAttemptError::RepreparedIdChanged { .. } => {
            not_applied(ErrorKind::SchemaMismatch, "the table changed while the statement was prepared")
                .with_retry(Retry::Later)
        }
        RequestAttemptError::RepreparedIdMissingInBatch => {
            not_applied(ErrorKind::Internal, &line(error)).with_retry(Retry::Later)
        }
        RequestAttemptError::BodyExtensionsParseError(_)
        | RequestAttemptError::CqlResultParseError(_)
        | RequestAttemptError::CqlErrorParseError(_)
        | RequestAttemptError::UnexpectedResponse(_)
        | RequestAttemptError::NonfinishedPagingState => corrupt(error),
        other => Error::new(ErrorKind::Internal, line(other)),
    }
}

fn agreement(error: &SchemaAgreementError) -> Error {
    let message = format!(
        "the change was applied, but the nodes don't agree on the schema yet: {}; check that all nodes are up",
        line(error)
    );
    Error::new(ErrorKind::Timeout(TimeoutPhase::Attempt), message)
}

/// What the server said.
fn server(error: &DbError, reason: &str) -> Error {
    match error {
        DbError::SyntaxError | DbError::ConfigError | DbError::FunctionFailure { .. } => {
            not_applied(ErrorKind::InvalidArgument, reason)
        }
        DbError::Invalid => invalid(reason),
        DbError::AlreadyExists { keyspace, table } => {
            let what =
                if table.is_empty() { format!("keyspace {keyspace}") } else { format!("table {keyspace}.{table}") };
            not_applied(ErrorKind::AlreadyExists, &format!("{what} exists already"))
        }
        DbError::AuthenticationError => not_applied(ErrorKind::Unauthenticated, reason),
        DbError::Unauthorized => not_applied(ErrorKind::PermissionDenied, reason),
        DbError::Unavailable { consistency, required, alive } => not_applied(
            ErrorKind::Unavailable,
            &format!(
                "{consistency} needs {required} replicas and {alive} are alive: check the nodes, the replication, or lower the consistency"
            ),
        ),
        DbError::IsBootstrapping => not_applied(ErrorKind::Unavailable, "the node is still starting"),
        DbError::Overloaded => Error::new(ErrorKind::Overloaded, reason),
        DbError::RateLimitReached { rejected_by_coordinator, .. } => {
            let outcome = if *rejected_by_coordinator { Outcome::NotApplied } else { Outcome::Unknown };
            Error::new(ErrorKind::Throttled, reason).with_outcome(outcome)
        }
        DbError::ReadTimeout { consistency, received, required, .. }
        | DbError::WriteTimeout { consistency, received, required, .. } => {
            let message =
                format!("{received} of {required} replicas answered the coordinator in time for {consistency}");
            Error::new(ErrorKind::Timeout(TimeoutPhase::Attempt), message)
        }
        DbError::ReadFailure { .. } | DbError::WriteFailure { .. } | DbError::TruncateError => unknown(reason),
        DbError::Other(CDC_WRITE_FAILURE | CAS_WRITE_UNKNOWN) => unknown(reason),
        DbError::Unprepared { .. } => not_applied(ErrorKind::Internal, reason).with_retry(Retry::Later),
        DbError::ProtocolError => not_applied(ErrorKind::Internal, reason),
        DbError::ServerError | DbError::Other(_) => Error::new(ErrorKind::Internal, reason),
        other => Error::new(ErrorKind::Internal, line(other)),
    }
}

/// An invalid request, told apart by its text: the protocol has one code for all.
fn invalid(reason: &str) -> Error {
    let lower = reason.to_lowercase();
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    if has(&["keyspace"]) && has(&["does not exist", "doesn't exist"]) {
        let message = format!("{reason}: create it (create_namespace, or --create), or check its name");
        return not_applied(ErrorKind::NotFound, &message);
    }
    if has(&["unconfigured table"]) || (has(&["table"]) && has(&["does not exist", "doesn't exist"])) {
        let message = format!("{reason}: create it (create_table, or --create), or check keyspace and name");
        return not_applied(ErrorKind::NotFound, &message);
    }
    if has(&["undefined column", "undefined name", "unknown identifier", "unrecognized name", "bytes long"])
        || (has(&["expected"]) && has(&["byte"]))
    {
        let message = format!("{reason}: the live table differs from the declared one");
        return not_applied(ErrorKind::SchemaMismatch, &message);
    }
    if has(&["too large", "exceeds allowed maximum", "longer than maximum", "exceeds the maximum"]) {
        return not_applied(ErrorKind::TooLarge, reason);
    }
    not_applied(ErrorKind::InvalidArgument, reason)
}

fn not_applied(kind: ErrorKind, message: &str) -> Error {
    Error::new(kind, message).with_outcome(Outcome::NotApplied)
}

fn unknown(reason: &str) -> Error {
    Error::new(ErrorKind::Unavailable, reason).with_outcome(Outcome::Unknown)
}

/// One lower-case line of bounded length.
fn line(text: &(impl Display + ?Sized)) -> String {
    let text = text.to_string();
    let words: Vec<_> = text.split_whitespace().collect();
    let mut line = words.join(" ");
    if let Some((end, _)) = line.char_indices().nth(MAX_REASON) {
        line.truncate(end);
        line.push('…');
    }
    // A word in capitals, such as CQL, stays.
    let mut characters = line.chars();
    match (characters.next(), characters.next()) {
        (Some(first), Some(second)) if first.is_ascii_uppercase() && !second.is_ascii_uppercase() => {
            line.replace_range(..1, &first.to_ascii_lowercase().to_string());
        }
        _ => {}
    }
    line
}

#[cfg(test)]
mod tests;
