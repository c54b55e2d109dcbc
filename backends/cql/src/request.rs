//! One request under way: its limits, its statements, its attempts.

use std::ops::Deref;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use peristyle_core::model::TableSpec;
use peristyle_core::request::{Consistency, RequestOptions, SerialConsistency};
use peristyle_core::timer::within;
use peristyle_core::{Attempt, Capability, Error, ErrorKind, Outcome, Result};
use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::Batch;
use scylla::statement::prepared::PreparedStatement;

use crate::codec;
use crate::config::CqlConfig;
use crate::error;
use crate::scratch::InOnePiece;
use crate::session::{consistency, failed_node, serial_consistency};
use crate::statement::{Shape, Statement, StatementCache, cql, slots};

/// What all requests of one backend share.
#[derive(Debug, Clone)]
#[repr(align(128))]
pub(crate) struct Shared(Arc<State>);

impl Shared {
    pub(crate) fn new(session: Session, config: CqlConfig) -> Self {
        Self(Arc::new(State { session, config, statements: StatementCache::default() }))
    }
}

impl Deref for Shared {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) session: Session,
    pub(crate) config: CqlConfig,
    pub(crate) statements: StatementCache,
}

/// How one request is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    consistency: Option<Consistency>,
    serial_consistency: Option<SerialConsistency>,
    /// The limit of one attempt.
    attempt: Duration,
    deadline: Option<Instant>,
}

impl Call {
    pub(crate) fn new(options: &RequestOptions, default_attempt: Duration) -> Self {
        Self {
            consistency: options.consistency,
            serial_consistency: options.serial_consistency,
            attempt: options.attempt_timeout.unwrap_or(default_attempt),
            deadline: options.deadline,
        }
    }

    /// The statement with this call's levels, where it has any.
    fn configured(&self, prepared: &PreparedStatement) -> Option<PreparedStatement> {
        if self.consistency.is_none() && self.serial_consistency.is_none() {
            return None;
        }
        let mut prepared = prepared.clone();
        if let Some(level) = self.consistency {
            prepared.set_consistency(consistency(level));
        }
        if let Some(level) = self.serial_consistency {
            prepared.set_serial_consistency(Some(serial_consistency(level)));
        }
        Some(prepared)
    }

    /// The batch with this call's levels, where it has any.
    pub(crate) fn configured_batch(&self, batch: &Batch) -> Option<Batch> {
        if self.consistency.is_none() && self.serial_consistency.is_none() {
            return None;
        }
        let mut batch = batch.clone();
        if let Some(level) = self.consistency {
            batch.set_consistency(consistency(level));
        }
        if let Some(level) = self.serial_consistency {
            batch.set_serial_consistency(Some(serial_consistency(level)));
        }
        Some(batch)
    }

    /// When the attempt that begins now is over, and whether that is the deadline of all.
    fn end(&self, now: Instant) -> Result<(Instant, bool)> {
        let own = now + self.attempt;
        match self.deadline {
            Some(deadline) if deadline <= now => Err(error::deadline().with_outcome(Outcome::NotApplied)),
            Some(deadline) if deadline < own => Ok((deadline, true)),
            _ => Ok((own, false)),
        }
    }

    /// Runs one attempt within the limits.
    async fn within<F: Future>(&self, now: Instant, attempt: Pin<&mut F>) -> Result<F::Output> {
        let (end, is_deadline) = self.end(now)?;
        within(self.attempt, end.into(), attempt).await.map_err(|_| {
            if is_deadline {
                return error::deadline();
            }
            error::attempt_timeout(&format!("within {:?}", self.attempt))
        })
    }
}

impl Shared {
    /// Refuses what can't be done with a table.
    pub(crate) fn check(table: &TableSpec) -> Result<()> {
        match table.salt() {
            None => Ok(()),
            Some(_) => Err(Error::unsupported(Capability::Salt, crate::backend::NAME)),
        }
    }

    pub(crate) fn keyspace(&self) -> Result<&str> {
        self.config
            .keyspace
            .as_deref()
            .ok_or_else(|| Error::invalid("no keyspace: name it in the URI, as in cql://127.0.0.1:9042/keyspace"))
    }

    /// The prepared statement of a shape.
    pub(crate) async fn statement(
        self: &Arc<Self>,
        table: &Arc<TableSpec>,
        shape: Shape,
        call: &Call,
    ) -> Result<Arc<Statement>> {
        if let Some(statement) = self.statements.get(table, &shape) {
            return Ok(statement);
        }
        // Boxed, because it is rare and large.
        Box::pin(self.prepared(table, shape, call)).await
    }

    async fn prepared(self: &Arc<Self>, table: &Arc<TableSpec>, shape: Shape, call: &Call) -> Result<Arc<Statement>> {
        let prepare = || prepare(Arc::clone(self), Arc::clone(table), shape.clone());
        let preparation = pin!(self.statements.get_or_prepare(table, shape.clone(), prepare));
        let prepared = call.within(Instant::now(), preparation).await;
        prepared.and_then(|outcome| outcome).map_err(|error| error.with_outcome(Outcome::NotApplied))
    }

    /// Executes a statement whose answer is small: a write, or the read of a row.
    pub(crate) async fn execute(
        &self,
        table: &TableSpec,
        statement: &Statement,
        values: impl SerializeRow,
        call: &Call,
    ) -> Result<QueryResult> {
        let configured = call.configured(&statement.prepared);
        let prepared = configured.as_ref().unwrap_or(&statement.prepared);
        let request = pin!(self.session.execute_unpaged(prepared, InOnePiece(values)));
        self.attempt(Some(table), call, request).await
    }

    /// Reads rows, at most `limit` with those that are there already, in as many answers as the server likes.
    pub(crate) async fn fetch(
        &self,
        table: &TableSpec,
        statement: &Statement,
        values: &impl SerializeRow,
        call: &Call,
        limit: usize,
        rows: &mut Vec<peristyle_core::model::StoredRow>,
    ) -> Result<()> {
        let configured = call.configured(&statement.prepared);
        let prepared = configured.as_ref().unwrap_or(&statement.prepared);
        let mut state = scylla::response::PagingState::start();
        loop {
            let request = pin!(self.session.execute_single_page(prepared, values, state));
            let (answer, next) = self.attempt(Some(table), call, request).await?;
            let answer = answer.into_rows_result().map_err(|error| error::corrupt(&error))?;
            rows.reserve(answer.rows_num());
            let read = codec::read_rows(&answer, &statement.slots, table);
            let read = read.and_then(|mut read| read.try_for_each(|row| row.map(|row| rows.push(row))));
            read.inspect_err(|error| self.forget_changed(table, error))?;
            match next.into_paging_control_flow() {
                std::ops::ControlFlow::Continue(next) if rows.len() < limit => state = next,
                _ => return Ok(()),
            }
        }
    }

    /// Runs one attempt within the limits, and notes where it went if it fails. The driver's futures are of several
    /// kilobytes, so they stay where they are and go by reference through the layers here.
    pub(crate) async fn attempt<T, F>(&self, table: Option<&TableSpec>, call: &Call, request: Pin<&mut F>) -> Result<T>
    where
        F: Future<Output = Result<T, ExecutionError>>,
    {
        let begun = Instant::now();
        let (error, node) = match call.within(begun, request).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error @ ExecutionError::LastAttemptError(_))) => (error::execution(error), failed_node()),
            Ok(Err(error)) => (error::execution(error), None),
            Err(error) => (error, None),
        };
        if let Some(table) = table {
            self.forget_changed(table, &error);
        }
        Err(match node {
            Some(address) => {
                let cause = error.kind().name().to_owned();
                error.with_attempt(Attempt { endpoint: address.to_string(), elapsed: begun.elapsed(), cause })
            }
            None => error,
        })
    }

    /// Drops the statements of a table that isn't what they were prepared for.
    pub(crate) fn forget_changed(&self, table: &TableSpec, error: &Error) {
        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::SchemaMismatch) {
            self.statements.forget(table.name());
        }
    }
}

/// Prepares a statement, and checks that the live table is the declared one as far as the statement knows it.
async fn prepare(shared: Arc<Shared>, table: Arc<TableSpec>, shape: Shape) -> Result<Statement> {
    let text = cql(&shape, shared.keyspace()?, &table);
    let limit = shared.config.request_timeout;
    let prepared = tokio::time::timeout(limit, shared.session.prepare(text)).await;
    let mut prepared = match prepared {
        Ok(outcome) => outcome.map_err(error::prepare)?,
        Err(_) => return Err(error::attempt_timeout(&format!("within {limit:?} to a statement being prepared"))),
    };
    prepared.set_page_size(i32::from(shared.config.page_size));
    codec::check_variables(prepared.get_variable_col_specs().as_slice(), &table)?;
    let slots = slots(&shape, &table);
    codec::check_columns(prepared.get_current_result_set_col_specs().get().as_slice(), &slots, &table)?;
    Ok(Statement::new(prepared, slots))
}
