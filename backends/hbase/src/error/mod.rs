//! What gateways say, as the SDK's errors.
//!
//! A gateway tells errors as text: an exception's class and message, or parts of them, and for batches what is left of them in
//! a count. Its word on whether to try again is wrong as often as not, so errors are told apart by class.

use peristyle_core::{Error, ErrorKind, Outcome, Retry};

use crate::connection::ServerException;

/// As much of a gateway's text as goes into a message; Thrift 1 sends stack traces of kilobytes.
const TEXT_CHARACTERS: usize = 240;

/// A rule: texts with this in them are of this kind.
struct Rule {
    text: &'static str,
    kind: ErrorKind,
    /// Whether nothing was or will be applied.
    certain: bool,
    hint: &'static str,
}

const fn rule(text: &'static str, kind: ErrorKind, certain: bool, hint: &'static str) -> Rule {
    Rule { text, kind, certain, hint }
}

const SURE: bool = true;
const DOUBT: bool = false;

/// The first that fits holds: those that name the cause before those that name what it led to.
const RULES: &[Rule] = &[
    rule("AccessDeniedException", ErrorKind::PermissionDenied, SURE, "grant the gateway's user the right"),
    rule("NamespaceNotFoundException", ErrorKind::NotFound, SURE, "create the namespace first"),
    rule("NamespaceExistException", ErrorKind::AlreadyExists, SURE, "use it, or name another"),
    rule("TableNotFoundException", ErrorKind::NotFound, SURE, "there is no such table; create it first"),
    rule("TableExistsException", ErrorKind::AlreadyExists, SURE, "drop it first, or create it if absent"),
    rule("TableNotEnabledException", ErrorKind::Unavailable, SURE, "the table is disabled; enable it"),
    rule("TableNotDisabledException", ErrorKind::Unavailable, SURE, "the table must be disabled first"),
    rule(" is disabled.", ErrorKind::Unavailable, SURE, "enable the table"),
    rule("NoSuchColumnFamilyException", ErrorKind::NotFound, SURE, "check the family of the table's HBase mapping"),
    rule("Invalid column family name", ErrorKind::NotFound, SURE, "check the family of the table's HBase mapping"),
    rule("Field is not a long", ErrorKind::InvalidArgument, SURE, "the stored value is no counter"),
    rule("exceeds limit of", ErrorKind::TooLarge, SURE, "write smaller values"),
    rule("KeyValue size too large", ErrorKind::TooLarge, SURE, "write smaller values"),
    rule("RegionTooBusyException", ErrorKind::Overloaded, SURE, "write more slowly"),
    rule("CallQueueTooBigException", ErrorKind::Overloaded, SURE, "send less at a time"),
    rule("RpcThrottlingException", ErrorKind::Throttled, SURE, "stay within the quota"),
    rule("ThrottlingException", ErrorKind::Throttled, SURE, "stay within the quota"),
    rule("SpaceLimitingException", ErrorKind::Throttled, SURE, "stay within the quota"),
    rule("NotServingRegionException", ErrorKind::Unavailable, DOUBT, "a region is moving, or the table is disabled"),
    rule("RegionMovedException", ErrorKind::Unavailable, DOUBT, "a region is moving"),
    rule("RegionOpeningException", ErrorKind::Unavailable, DOUBT, "a region is opening"),
    rule("RegionServerStoppedException", ErrorKind::Unavailable, DOUBT, "a region server went down"),
    rule("RegionServerAbortedException", ErrorKind::Unavailable, DOUBT, "a region server went down"),
    rule("ServerNotRunningYetException", ErrorKind::Unavailable, DOUBT, "a server is starting"),
    rule("PleaseHoldException", ErrorKind::Unavailable, DOUBT, "the master is starting"),
    rule("MasterNotRunningException", ErrorKind::Unavailable, DOUBT, "check the master"),
    rule("MasterRegistryFetchException", ErrorKind::Unavailable, DOUBT, "check the master"),
    rule("NoServerForRegionException", ErrorKind::Unavailable, DOUBT, "check the region servers"),
    rule("CallTimeoutException", ErrorKind::Unavailable, DOUBT, "check the region servers"),
    rule("SocketTimeoutException", ErrorKind::Unavailable, DOUBT, "check the region servers"),
    rule("RetriesExhausted", ErrorKind::Unavailable, DOUBT, "check the region servers"),
    rule("ConnectException", ErrorKind::Unavailable, DOUBT, "check the region servers"),
    rule("ConnectionLoss", ErrorKind::Unavailable, DOUBT, "check ZooKeeper"),
    rule("ConnectionClosed", ErrorKind::Unavailable, DOUBT, "check the region servers"),
    rule("Connection refused", ErrorKind::Unavailable, DOUBT, "check the region servers"),
    rule("Connection closed", ErrorKind::Unavailable, DOUBT, "check the region servers"),
    rule("unknown method", ErrorKind::InvalidArgument, SURE, "the gateway speaks the other Thrift interface; set api"),
    rule(
        "Invalid method name",
        ErrorKind::InvalidArgument,
        SURE,
        "the gateway speaks the other Thrift interface; set api",
    ),
    rule("IllegalArgumentException", ErrorKind::InvalidArgument, SURE, "check keys, values and names"),
    rule("Timestamp cannot be negative", ErrorKind::InvalidArgument, SURE, "give a write time above 0"),
];

/// The error that a gateway answered a call of this method on this table with.
pub(crate) fn from_exception(exception: &ServerException, method: &str, table: &str, writes: bool) -> Error {
    let text = &exception.message;
    if is_named_alone(text, table) {
        return match method {
            "createTable" => existing_table(table),
            _ => missing_table(table),
        };
    }
    if let Some(rule) = RULES.iter().find(|rule| text.contains(rule.text)) {
        let outcome = if rule.certain { Outcome::NotApplied } else { Outcome::Unknown };
        let message = format!("the gateway answered: {}; {}", shortened(text), rule.hint);
        return Error::new(rule.kind, message).with_outcome(outcome).with_retry(retry(rule.kind));
    }
    let outcome = if writes { Outcome::Unknown } else { Outcome::NotApplied };
    match exception.id {
        // Nothing more is told: an empty row, a value that is too large, a bad filter, or a fault of the gateway's own.
        3 if method == "createTable" => existing_table(table),
        0 => Error::new(ErrorKind::Internal, format!("the gateway failed: {}; see its log", shortened(text))),
        _ if exception.can_retry == Some(true) => {
            let message = format!("the gateway answered: {}; check the region servers", shortened(text));
            Error::new(ErrorKind::Unavailable, message)
        }
        _ => Error::new(ErrorKind::Internal, format!("the gateway answered: {}; see its log", shortened(text))),
    }
    .with_outcome(outcome)
}

fn retry(kind: ErrorKind) -> Retry {
    match kind {
        ErrorKind::Overloaded | ErrorKind::Throttled | ErrorKind::Unavailable => Retry::Later,
        _ => Retry::Never,
    }
}

/// A table that is missing, or there where it mustn't be, is told by its name alone, or for batches as
/// `Failed 1 action: name: 1 time, …`.
fn is_named_alone(text: &str, table: &str) -> bool {
    if table.is_empty() {
        return false;
    }
    let is_name = |name: &str| name == table || name.rsplit_once(':').is_some_and(|(_, bare)| bare == table);
    let line = text.lines().next().unwrap_or_default().trim();
    let batch = line.strip_prefix("Failed ").and_then(|rest| rest.split_once(": ")).map(|(_, rest)| rest);
    let named = batch.and_then(|rest| rest.split_once(": ")).map(|(name, _)| name);
    is_name(line) || named.is_some_and(is_name)
}

/// Whether single rows of a batch may be at fault, and the others not.
pub(crate) fn is_of_single_rows(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::InvalidArgument | ErrorKind::TooLarge | ErrorKind::Internal => true,
        ErrorKind::NotFound => error.message().contains("olumn family"),
        _ => false,
    }
}

/// Whether a table couldn't be disabled because it is.
pub(crate) fn is_disabled(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable
        && ["TableNotEnabledException", "is disabled", "state=DISABLED"]
            .iter()
            .any(|text| error.message().contains(text))
}

/// For a table that isn't there.
fn missing_table(table: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no table {table}; create it, or check the namespace"))
}

fn existing_table(table: &str) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("table {table} exists already; drop it first, or create it if absent"))
}

/// For requests after [`close`](peristyle_core::Backend::close).
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the HBase backend is closed; connect again")
}

/// One line of the text's beginning.
fn shortened(text: &str) -> String {
    let line = text.split(['\n', '\r']).next().unwrap_or_default().trim();
    match line.char_indices().nth(TEXT_CHARACTERS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or(line)),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
