//! What a caller gets for a row.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::error::{Error, ErrorKind, Outcome, Result};

/// The outcome of a row to come. Await it, or drop it: the row is written all the same, and the report counts it.
#[derive(Debug)]
pub struct Receipt {
    place: u64,
    outcome: oneshot::Receiver<Result<()>>,
}

impl Receipt {
    pub(super) fn new(place: u64, outcome: oneshot::Receiver<Result<()>>) -> Self {
        Self { place, outcome }
    }

    /// How many rows were added before this one.
    pub fn place(&self) -> u64 {
        self.place
    }
}

impl Future for Receipt {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.outcome).poll(context).map(|outcome| {
            outcome.unwrap_or_else(|_| {
                let message = "the streamer ended without an outcome for the row";
                Err(Error::new(ErrorKind::Internal, message).with_outcome(Outcome::Unknown))
            })
        })
    }
}

/// A row that was not added, and why: [`Overloaded`](ErrorKind::Overloaded) if there was no room for it.
#[derive(Debug)]
pub struct Rejected<R> {
    /// The row.
    pub row: R,
    /// Why it was not added.
    pub error: Error,
}

impl<R> fmt::Display for Rejected<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<R: fmt::Debug> std::error::Error for Rejected<R> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl<R> From<Rejected<R>> for Error {
    fn from(rejected: Rejected<R>) -> Self {
        rejected.error
    }
}
