//! Spans by OpenTelemetry's conventions for database clients.

use tracing::field::Empty;
use tracing::{Level, Span};

use super::Sight;
use crate::error::{Error, Result};
use crate::request::Request;
use crate::response::Response;

macro_rules! db_span {
    ($level:expr, $name:literal, $kind:literal, $system:expr, $request:expr) => {
        tracing::span!(
            $level,
            $name,
            otel.name = Empty,
            otel.kind = $kind,
            otel.status_code = Empty,
            db.system.name = $system,
            db.operation.name = $request.operation(),
            db.collection.name = Empty,
            db.operation.batch.size = Empty,
            db.response.returned_rows = Empty,
            server.address = Empty,
            error.type = Empty,
        )
    };
}

/// The span of a request; a disabled one costs a load.
pub(super) fn open(sight: Sight, system: &'static str, request: &Request) -> Span {
    let span = match sight {
        Sight::Call => db_span!(Level::INFO, "call", "internal", system, request),
        Sight::Attempt => db_span!(Level::DEBUG, "attempt", "client", system, request),
    };
    if span.is_disabled() {
        return span;
    }
    match request.table() {
        Some(table) => {
            span.record("db.collection.name", &*table);
            span.record("otel.name", format!("{} {table}", request.operation()));
        }
        None => {
            span.record("otel.name", request.operation());
        }
    }
    if let Some(endpoint) = request.options.endpoint.filter(|_| sight == Sight::Attempt) {
        span.record("server.address", endpoint.name());
    }
    if request.rows() > 1 {
        span.record("db.operation.batch.size", request.rows());
    }
    span
}

/// Notes how it ended.
pub(super) fn close(span: &Span, answer: &Result<Response>, error: Option<&Error>) {
    if let Some(error) = error {
        span.record("error.type", error.kind().name());
        span.record("otel.status_code", "ERROR");
    }
    let rows = match answer {
        Ok(Response::Row(row)) => usize::from(row.is_some()),
        Ok(Response::Rows(rows)) => rows.iter().flatten().count(),
        Ok(Response::Page(page)) => page.rows.len(),
        _ => return,
    };
    span.record("db.response.returned_rows", rows);
}
