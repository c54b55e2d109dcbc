use std::time::Duration;

use bytes::Bytes;
use peristyle_core::ErrorKind::{
    AlreadyExists, Internal, InvalidArgument, NotFound, Overloaded, PermissionDenied, SchemaMismatch, Throttled,
    TooLarge, Unauthenticated, Unavailable,
};
use scylla::errors::{OperationType, WriteType};
use scylla::statement::Consistency;

use super::*;

const NOT: Outcome = Outcome::NotApplied;
const UNKNOWN: Outcome = Outcome::Unknown;
const NEVER: Retry = Retry::Never;
const LATER: Retry = Retry::Later;
const TIMEOUT: ErrorKind = ErrorKind::Timeout(TimeoutPhase::Attempt);

fn facts(error: &Error) -> (ErrorKind, Outcome, Retry) {
    let message = error.message();
    assert!(!message.contains('\n') && !message.is_empty(), "{message:?}");
    (error.kind(), error.outcome(), error.retry())
}

#[test]
fn every_error_of_a_server_has_its_kind_outcome_and_retry() {
    let consistency = Consistency::Quorum;
    let (received, required) = (1, 2);
    let table = [
        (DbError::SyntaxError, (InvalidArgument, NOT, NEVER)),
        (DbError::Invalid, (InvalidArgument, NOT, NEVER)),
        (DbError::AlreadyExists { keyspace: "k".into(), table: "t".into() }, (AlreadyExists, NOT, NEVER)),
        (
            DbError::FunctionFailure { keyspace: "k".into(), function: "f".into(), arg_types: vec![] },
            (InvalidArgument, NOT, NEVER),
        ),
        (DbError::AuthenticationError, (Unauthenticated, NOT, NEVER)),
        (DbError::Unauthorized, (PermissionDenied, NOT, NEVER)),
        (DbError::ConfigError, (InvalidArgument, NOT, NEVER)),
        (DbError::Unavailable { consistency, required, alive: 0 }, (Unavailable, NOT, LATER)),
        (DbError::Overloaded, (Overloaded, UNKNOWN, LATER)),
        (DbError::IsBootstrapping, (Unavailable, NOT, LATER)),
        (DbError::TruncateError, (Unavailable, UNKNOWN, LATER)),
        (DbError::ReadTimeout { consistency, received, required, data_present: false }, (TIMEOUT, UNKNOWN, LATER)),
        (
            DbError::WriteTimeout { consistency, received, required, write_type: WriteType::Simple },
            (TIMEOUT, UNKNOWN, LATER),
        ),
        (
            DbError::WriteTimeout { consistency, received, required, write_type: WriteType::Counter },
            (TIMEOUT, UNKNOWN, LATER),
        ),
        (
            DbError::ReadFailure { consistency, received, required, numfailures: 1, data_present: false },
            (Unavailable, UNKNOWN, LATER),
        ),
        (
            DbError::WriteFailure { consistency, received, required, numfailures: 1, write_type: WriteType::Simple },
            (Unavailable, UNKNOWN, LATER),
        ),
        (DbError::Unprepared { statement_id: Bytes::new() }, (Internal, NOT, LATER)),
        (DbError::ServerError, (Internal, UNKNOWN, NEVER)),
        (DbError::ProtocolError, (Internal, NOT, NEVER)),
        (
            DbError::RateLimitReached { op_type: OperationType::Write, rejected_by_coordinator: true },
            (Throttled, NOT, LATER),
        ),
        (
            DbError::RateLimitReached { op_type: OperationType::Write, rejected_by_coordinator: false },
            (Throttled, UNKNOWN, LATER),
        ),
        (DbError::Other(CAS_WRITE_UNKNOWN), (Unavailable, UNKNOWN, LATER)),
        (DbError::Other(CDC_WRITE_FAILURE), (Unavailable, UNKNOWN, LATER)),
        (DbError::Other(0x4242), (Internal, UNKNOWN, NEVER)),
    ];
    for (error, expected) in table {
        let attempt = RequestAttemptError::DbError(error.clone(), "Some\nreason".into());
        assert_eq!(facts(&execution(attempt.into())), expected, "{error:?}");
    }
}

#[test]
fn an_invalid_request_is_told_apart_by_its_text() {
    let table = [
        ("keyspace nope does not exist", NotFound, "create_namespace"),
        ("Keyspace 'nope' doesn't exist", NotFound, "create_namespace"),
        ("table nope does not exist", NotFound, "create_table"),
        ("unconfigured table nope", NotFound, "create_table"),
        ("Undefined column name m in table k.t", SchemaMismatch, "differs"),
        ("Unknown identifier m", SchemaMismatch, "differs"),
        ("Expected 4 or 0 byte int (8)", SchemaMismatch, "differs"),
        ("Batch too large", TooLarge, "batch too large"),
        ("Key length of 65536 is longer than maximum of 65535", TooLarge, "65535"),
        ("CQL Message of size 15728708 bytes exceeds allowed maximum of 4194304 bytes", TooLarge, "CQL Message"),
        ("ttl is too large. requested (630720001) maximum (630720000)", TooLarge, "630720000"),
        ("Key may not be empty", InvalidArgument, "key may"),
        ("Out of bound timestamp, must be in [a, b]", InvalidArgument, "out of"),
    ];
    for (reason, kind, part) in table {
        let attempt = RequestAttemptError::DbError(DbError::Invalid, reason.into());
        let error = execution(attempt.into());
        assert_eq!(facts(&error), (kind, NOT, NEVER), "{reason}");
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn every_error_of_the_driver_has_its_kind_outcome_and_retry() {
    let no_pool = ConnectionPoolError::Initializing;
    let table: Vec<(ExecutionError, (ErrorKind, Outcome, Retry))> = vec![
        (ExecutionError::EmptyPlan, (Unavailable, NOT, LATER)),
        (BadQuery::PartitionKeyExtraction.into(), (Internal, NOT, NEVER)),
        (BadQuery::ValuesTooLongForKey(65_536, 65_535).into(), (TooLarge, NOT, NEVER)),
        (BadQuery::TooManyQueriesInBatchStatement(65_536).into(), (TooLarge, NOT, NEVER)),
        (PrepareError::ConnectionPoolError(no_pool.clone()).into(), (Unavailable, NOT, LATER)),
        (PrepareError::PreparedStatementIdsMismatch.into(), (Internal, NOT, NEVER)),
        (no_pool.into(), (Unavailable, NOT, LATER)),
        (ConnectionPoolError::NodeDisabledByHostFilter.into(), (Unavailable, NOT, LATER)),
        (ExecutionError::RequestTimeout(Duration::from_secs(1)), (TIMEOUT, UNKNOWN, LATER)),
        (SchemaAgreementError::Timeout(Duration::from_secs(1)).into(), (TIMEOUT, UNKNOWN, LATER)),
        (MetadataError::ConnectionPoolError(ConnectionPoolError::Initializing).into(), (Unavailable, UNKNOWN, LATER)),
        (RequestAttemptError::UnableToAllocStreamId.into(), (Overloaded, NOT, LATER)),
        (RequestAttemptError::RepreparedIdMissingInBatch.into(), (Internal, NOT, LATER)),
        (RequestAttemptError::NonfinishedPagingState.into(), (ErrorKind::Corrupt, UNKNOWN, NEVER)),
        (
            RequestAttemptError::RepreparedIdChanged {
                statement: "s".into(),
                expected_id: vec![1],
                reprepared_id: vec![2],
            }
            .into(),
            (SchemaMismatch, NOT, LATER),
        ),
    ];
    for (error, expected) in table {
        let text = error.to_string();
        assert_eq!(facts(&execution(error)), expected, "{text}");
    }
}

#[test]
fn a_write_that_failed_to_prepare_was_not_applied() {
    let first_attempt = RequestAttemptError::DbError(DbError::Overloaded, "busy".into());
    let error = prepare(PrepareError::AllAttemptsFailed { first_attempt });
    assert_eq!(facts(&error), (Overloaded, NOT, LATER));
}

#[test]
fn agreement_that_is_not_reached_says_that_the_change_was_applied() {
    let error = execution(SchemaAgreementError::Timeout(Duration::from_secs(1)).into());
    assert!(error.message().contains("was applied"), "{error}");
}

#[test]
fn a_session_that_cannot_be_opened_names_the_hosts_and_what_to_check() {
    let hosts = ["10.0.0.1:9042".to_owned()];
    let error = connect(NewSessionError::FailedToResolveAnyHostname(vec!["nowhere:9042".into()]), &hosts);
    assert_eq!(facts(&error), (Unavailable, NOT, LATER));
    assert!(error.message().contains("nowhere:9042"), "{error}");

    let pool = ConnectionPoolError::Broken { last_connection_error: ConnectionError::ConnectTimeout };
    let error = connect(MetadataError::from(pool).into(), &hosts);
    assert_eq!(facts(&error), (Unavailable, NOT, LATER));
    assert!(error.message().contains("10.0.0.1:9042") && error.message().contains("check"), "{error}");
}

#[test]
fn a_refused_login_is_told_from_an_absent_server() {
    let wrong = ConnectionSetupRequestErrorKind::DbError(DbError::AuthenticationError, "Bad".into());
    assert_eq!(facts(&refused_login(&wrong).unwrap()), (Unauthenticated, NOT, NEVER));
    let missing = refused_login(&ConnectionSetupRequestErrorKind::MissingAuthentication).unwrap();
    assert_eq!(facts(&missing), (Unauthenticated, NOT, NEVER));
    assert!(missing.message().contains("user:password@"), "{missing}");
    assert!(refused_login(&ConnectionSetupRequestErrorKind::UnableToAllocStreamId).is_none());
}

#[test]
fn a_long_reason_is_cut_to_one_line() {
    let reason = format!("Bad\n{}", "é ".repeat(MAX_REASON));
    let text = line(&reason);
    assert!(text.starts_with("bad é") && text.ends_with('…') && text.chars().count() == MAX_REASON + 1, "{text}");
    assert_eq!(line("CQL stays"), "CQL stays");
}
