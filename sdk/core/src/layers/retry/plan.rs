//! What is sent next, if anything.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::history::{Sent, joined, recorded};
use super::policy::{RetryPolicy, is_allowed, leads_elsewhere};
use crate::endpoint::{Endpoint, Router};
use crate::error::{Error, ErrorKind, Outcome, Result, TimeoutPhase};
use crate::layers::names::{RETRIES, RETRIES_REFUSED};
use crate::layers::places;
use crate::request::{Action, Request, Write};
use crate::response::Response;

/// What holds for all requests.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) policy: RetryPolicy,
    pub(super) router: Option<Router>,
}

/// The state of one request over its attempts.
#[derive(Debug)]
pub(super) struct Plan {
    rules: Arc<Rules>,
    /// What is sent next: the whole, or the rows that are left.
    request: Request,
    idempotent: bool,
    sent: u32,
    /// Where the next attempt shouldn't go.
    avoid: Option<Endpoint>,
    /// When the attempt under way was found not to be answered at once, which is when it was sent, give or take a poll.
    begun: Option<Instant>,
    /// The last error of the whole request.
    last: Option<Error>,
    /// What became of each row, once rows have answers of their own.
    rows: Option<Rows>,
}

#[derive(Debug)]
struct Rows {
    outcomes: Vec<Result<()>>,
    /// The places of the rows that are under way.
    pending: Vec<usize>,
}

/// What comes next.
pub(super) enum Next {
    /// The caller gets this.
    Done(Result<Response>),
    /// Another attempt, at this time.
    Pause(Instant),
}

impl Plan {
    /// The plan of a request that is being sent.
    pub(super) fn new(rules: Arc<Rules>, request: Request) -> Self {
        let idempotent = request.is_idempotent();
        Self { rules, request, idempotent, sent: 1, avoid: None, begun: None, last: None, rows: None }
    }

    /// The next attempt.
    pub(super) fn send(&mut self) -> Request {
        self.sent += 1;
        self.begun = None;
        if let Some(router) = &self.rules.router
            && let Some(avoid) = self.avoid.take()
        {
            self.request.options.endpoint = router.choose(&self.request, Some(avoid));
        }
        self.request.clone()
    }

    /// What follows from an answer.
    pub(super) fn next(&mut self, answer: Result<Response>) -> Next {
        match answer {
            answer if self.rows.is_some() => self.rows_answered(answer),
            Ok(Response::Outcomes(outcomes)) if outcomes.iter().any(Result::is_err) => {
                self.rows = Some(Rows::new(outcomes.len(), self.last.take()));
                self.rows_answered(Ok(Response::Outcomes(outcomes)))
            }
            Ok(response) => {
                self.rules.policy.bucket().deposit(self.endpoint());
                Next::Done(Ok(response))
            }
            Err(error) => self.failed(error),
        }
    }

    /// The whole request failed.
    fn failed(&mut self, error: Error) -> Next {
        let pause = if is_allowed(&error, self.idempotent) { self.pause(&error) } else { None };
        if pause.is_none() && self.last.is_none() {
            return Next::Done(Err(error));
        }
        let error = recorded(error, self.attempt());
        let error = match self.last.take() {
            Some(earlier) => joined(&earlier, error),
            None => error,
        };
        match pause {
            Some(until) => {
                self.last = Some(error);
                Next::Pause(until)
            }
            None => Next::Done(Err(error)),
        }
    }

    /// The rows that are under way have been answered.
    fn rows_answered(&mut self, answer: Result<Response>) -> Next {
        let Some(mut rows) = self.rows.take() else { return Next::Done(answer) };
        let answers = places::outcomes(answer, rows.pending.len());
        let retryable = answers.iter().filter_map(|answer| answer.as_ref().err()).find(|error| is_allowed(error, true));
        let pause = retryable.and_then(|error| self.pause(error));
        let again = rows.note(answers, pause.is_some(), self.attempt());
        let Some(until) = pause else {
            if rows.outcomes.iter().all(Result::is_ok) {
                self.rules.policy.bucket().deposit(self.endpoint());
            }
            return Next::Done(Ok(Response::Outcomes(rows.outcomes)));
        };
        if let Action::Write { write: Write::ApplyAll(mutations), .. } = &mut self.request.action {
            let mut again = again.into_iter();
            mutations.retain(|_| again.next().unwrap_or_default());
        }
        self.rows = Some(rows);
        Next::Pause(until)
    }

    /// The answer when the time is over, if it can tell more than that: what earlier attempts met, and which rows are done.
    pub(super) fn cut_off(&mut self, is_sent: bool) -> Option<Result<Response>> {
        if (self.last.is_none() && self.rows.is_none()) || !self.request.options.is_over() {
            return None;
        }
        let attempt = self.attempt();
        let late = Error::new(ErrorKind::Timeout(TimeoutPhase::Deadline), "no answer before the deadline");
        let late = if is_sent { late } else { late.with_outcome(Outcome::NotApplied) };
        if let Some(mut rows) = self.rows.take() {
            let answers = rows.pending.iter().map(|_| Err(late.share())).collect();
            rows.note(answers, false, attempt);
            return Some(Ok(Response::Outcomes(rows.outcomes)));
        }
        let earlier = self.last.take()?;
        Some(Err(joined(&earlier, recorded(late, attempt))))
    }

    /// Notes that the attempt is under way.
    pub(super) fn pending(&mut self) {
        self.begun.get_or_insert_with(Instant::now);
    }

    /// Where the attempt under way went.
    fn endpoint(&self) -> Option<Endpoint> {
        self.request.options.endpoint
    }

    /// The attempt under way.
    fn attempt(&self) -> Sent {
        let elapsed = self.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        Sent { number: self.sent, endpoint: self.endpoint(), elapsed }
    }

    /// When the next attempt may start, if there may be one.
    fn pause(&mut self, error: &Error) -> Option<Instant> {
        let policy = &self.rules.policy;
        if self.sent >= policy.most_attempts() {
            return None;
        }
        let until = Instant::now() + policy.pause(self.sent);
        if self.request.options.deadline.is_some_and(|deadline| until.into_std() >= deadline) {
            return None;
        }
        let node = self.endpoint().map_or("", Endpoint::name);
        if !policy.bucket().withdraw(self.endpoint()) {
            metrics::counter!(RETRIES_REFUSED, "node" => node).increment(1);
            return None;
        }
        metrics::counter!(RETRIES, "node" => node, "exception" => error.kind().name()).increment(1);
        self.avoid = self.endpoint().filter(|_| leads_elsewhere(error));
        Some(until)
    }
}

impl Rows {
    /// Rows that are all under way, after an error that all of them had.
    fn new(rows: usize, last: Option<Error>) -> Self {
        let outcome = || last.as_ref().map_or(Ok(()), |error| Err(error.share()));
        Self { outcomes: (0..rows).map(|_| outcome()).collect(), pending: (0..rows).collect() }
    }

    /// Notes the answers to the rows under way, and tells which of them are sent again, if any may be.
    fn note(&mut self, answers: Vec<Result<()>>, may_retry: bool, sent: Sent) -> Vec<bool> {
        let retried = |answer: &Result<()>| matches!(answer, Err(error) if may_retry && is_allowed(error, true));
        let again: Vec<bool> = answers.iter().map(retried).collect();
        for ((place, answer), retried) in self.pending.iter().zip(answers).zip(&again) {
            if let Some(outcome) = self.outcomes.get_mut(*place) {
                let earlier = std::mem::replace(outcome, Ok(()));
                *outcome = answer.map_err(|error| match earlier {
                    Err(earlier) => joined(&earlier, recorded(error, sent)),
                    Ok(()) if *retried => recorded(error, sent),
                    Ok(()) => error,
                });
            }
        }
        let mut left = again.iter();
        self.pending.retain(|_| left.next().copied().unwrap_or_default());
        again
    }
}
