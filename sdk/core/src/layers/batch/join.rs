//! Sends entries as one request, and gives each caller its own answer.

use std::sync::Arc;

use tower::ServiceExt;

use super::Inner;
use super::group::{Entry, joined};
use crate::error::{Error, ErrorKind, Outcome, Result};
use crate::layers::places;
use crate::model::TableSpec;
use crate::request::{Action, Read, Write};
use crate::response::Response;

/// Sends these entries. If the whole is refused for what may be the fault of one of them, by halves.
pub(super) async fn send<S: Inner>(service: S, table: &Arc<TableSpec>, entries: Vec<Entry>) {
    let mut parts = vec![entries];
    while let Some(mut part) = parts.pop() {
        let Some(request) = joined(table, &part) else { continue };
        let shape = Shape::of(&request.action);
        let answer = service.clone().oneshot(request).await;
        if part.len() > 1 && answer.as_ref().is_err_and(is_refusal) {
            let second = part.split_off(part.len() / 2);
            parts.extend([second, part]);
            continue;
        }
        let answers = shape.answers(answer, part.len());
        for (entry, answer) in part.into_iter().zip(answers) {
            // A caller that is gone needs no answer.
            let _ = entry.answer.send(answer);
        }
    }
}

/// Whether it may be the fault of one row.
fn is_refusal(error: &Error) -> bool {
    let wrong = matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::TooLarge | ErrorKind::SchemaMismatch);
    wrong && error.outcome() == Outcome::NotApplied
}

/// How the answer is divided.
enum Shape {
    One,
    Writes,
    Reads,
}

impl Shape {
    fn of(action: &Action) -> Self {
        match action {
            Action::Write { write: Write::ApplyAll(_), .. } => Self::Writes,
            Action::Read { read: Read::GetAll { .. }, .. } => Self::Reads,
            _ => Self::One,
        }
    }

    fn answers(self, answer: Result<Response>, callers: usize) -> Vec<Result<Response>> {
        match self {
            Self::One => vec![answer],
            Self::Writes => {
                let outcomes = places::outcomes(answer, callers).into_iter();
                outcomes.map(|outcome| outcome.map(|()| Response::Done)).collect()
            }
            Self::Reads => match answer.and_then(Response::into_rows).and_then(|rows| counted(rows, callers)) {
                Ok(rows) => rows.into_iter().map(|row| Ok(Response::Row(row))).collect(),
                Err(error) => (0..callers).map(|_| Err(error.share())).collect(),
            },
        }
    }
}

fn counted<T>(rows: Vec<T>, callers: usize) -> Result<Vec<T>> {
    if rows.len() == callers {
        return Ok(rows);
    }
    let message = format!("the backend answered {} rows for {callers} keys", rows.len());
    Err(Error::new(ErrorKind::Internal, message))
}
