//! The database behind a URI, made ready and measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use peristyle::request::{Projection, Read, Replication};
use peristyle::{Client, ErrorKind, Request};

use super::session::{Session, within};
use super::{Measurement, Target, TargetUri};
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::load::{Fresh, Live, Load, measure, uneven};
use crate::machine::ServerSource;
use crate::search::Probe;
use crate::space::Point;
use crate::workload::{Workload, below, mix};

/// How long changes of the schema may take.
const SCHEMA: Duration = Duration::from_secs(60);
/// How long a single request of the preparation may take.
const REQUEST: Duration = Duration::from_secs(15);
/// Rows that are looked for before a workload that reads is run.
const PROBES: u64 = 16;

/// A database that can be measured.
#[derive(Debug)]
pub(crate) struct LiveTarget {
    uri: TargetUri,
    workload: Arc<Workload>,
    interrupt: Interrupt,
    session: Option<Session>,
    /// An engine in this process, which stays open between sessions.
    engine: Option<Client>,
    fresh: Arc<Fresh>,
    /// Where the server is to be seen, where that is known.
    server: Option<ServerSource>,
    begun: Instant,
    /// Nothing waits longer.
    deadline: Instant,
    windows: u64,
}

impl LiveTarget {
    /// Connects with the settings of a point, before the deadline.
    pub(crate) fn open(
        uri: &TargetUri,
        workload: &Arc<Workload>,
        point: Point,
        interrupt: &Interrupt,
        deadline: Instant,
    ) -> Result<Self> {
        let begun = Instant::now();
        let session = Session::connect(uri, point, None, deadline - begun)?;
        let engine = uri.is_in_process().then(|| session.client.clone());
        Ok(Self {
            uri: uri.clone(),
            workload: Arc::clone(workload),
            interrupt: interrupt.clone(),
            session: Some(session),
            engine,
            fresh: Arc::default(),
            server: uri.is_in_process().then(|| ServerSource::Process(std::process::id())),
            begun,
            deadline,
            windows: 0,
        })
    }

    /// Empties the table of an engine that lives no longer than the run, where nothing is read: else each window would find
    /// more to merge than the one before, and points could not be compared.
    fn empty(&self, session: &Session) -> Result<(), String> {
        if !self.uri.is_temporary() || self.workload.reads() {
            return Ok(());
        }
        let client = &session.client;
        within(session, self.limit(SCHEMA), "empty", client.truncate_table(self.workload.table.name()))
    }

    /// Watches the server, instead of an engine in this process.
    pub(crate) fn watch_server(&mut self, server: ServerSource) {
        self.server = Some(server);
    }

    /// The session that is open.
    pub(crate) fn session(&self) -> Result<&Session> {
        self.session.as_ref().ok_or_else(|| Failure::input(format!("the connection to {} is gone", self.uri)))
    }

    /// Opens the table; makes it, and its keyspace, where that was asked for or nothing else can be meant.
    pub(crate) fn prepare(&self, create: bool) -> Result<()> {
        let session = self.session()?;
        let table = &self.workload.table;
        if create || self.uri.is_temporary() {
            let client = &session.client;
            let make = async {
                client.create_namespace(Replication::default()).await?;
                client.create_table_if_absent(table).await
            };
            within(session, self.limit(SCHEMA), "create", make)
                .map_err(|why| self.failure(&format!("can't create table {}", table.name()), &why))?;
        }
        let open = async {
            Ok(session.client.table(Arc::clone(table)).await.map_err(|error| (error.kind(), error.to_string())))
        };
        match within(session, self.limit(REQUEST), "open", open) {
            Ok(Ok(_)) => Ok(()),
            Ok(Err((ErrorKind::NotFound, why))) => Err(Failure::input(self.uri.hide(&format!(
                "no table {} for workload {} at {}: {why}; --create makes it",
                table.name(),
                self.workload.name,
                self.uri
            )))),
            Ok(Err((_, why))) | Err(why) => Err(self.failure(&format!("can't open table {}", table.name()), &why)),
        }
    }

    /// Whether a workload that reads finds the rows it reads: some of them, chosen by chance.
    pub(crate) fn has_rows(&self) -> Result<bool> {
        let session = self.session()?;
        let rows = &self.workload.rows;
        let keys = (0..PROBES).map(|probe| rows.key(below(mix(rows.seed(), probe), rows.count()))).collect();
        let read = Read::GetAll { keys, columns: Projection::default() };
        let request = Request::read(Arc::clone(&self.workload.table), read);
        let look = async { session.client.call(request).await?.into_rows() };
        let found = within(session, self.limit(REQUEST), "read", look)
            .map_err(|why| self.failure("can't read the table", &why))?;
        Ok(found.iter().any(Option::is_some))
    }

    fn limit(&self, most: Duration) -> Duration {
        most.min(self.deadline - Instant::now())
    }

    fn failure(&self, what: &str, why: &str) -> Failure {
        Failure::input(format!("{what} at {}: {}", self.uri, self.uri.hide(why)))
    }

    /// Opens a session for a point, unless the last one serves it.
    fn switch(&mut self, point: Point, limit: Duration) -> Result<(), super::session::Refusal> {
        if self.session.as_ref().is_some_and(|session| session.serves(point)) {
            return Ok(());
        }
        if let Some(old) = self.session.take() {
            old.end(&self.uri);
        }
        self.session = Some(Session::connect(&self.uri, point, self.engine.as_ref(), limit)?);
        Ok(())
    }
}

impl Target for LiveTarget {
    fn measure(&mut self, probe: &Probe, limit: Duration, watch: &dyn Fn(Live)) -> Measurement {
        let begun = Instant::now();
        if let Err(refusal) = self.switch(probe.point, limit) {
            return Measurement::failed(refusal.class, refusal.message);
        }
        let Some(session) = &self.session else {
            return Measurement::failed("client_fault", "no session".into());
        };
        if let Err(why) = self.empty(session) {
            return Measurement::failed("client_fault", why);
        }
        self.windows += 1;
        let load = Load {
            runtime: &session.runtime,
            client: &session.client,
            workload: &self.workload,
            fresh: &self.fresh,
            interrupt: &self.interrupt,
            point: probe.point,
            rate: probe.rate,
            server: self.server.as_ref(),
            window: probe.window,
            limit: limit.saturating_sub(begun.elapsed()),
            number: self.windows,
        };
        let mut measurement = measure(&load, watch);
        measurement.example = measurement.example.map(|example| self.uri.hide(&example));
        measurement
    }

    fn spent(&self) -> Duration {
        self.begun.elapsed()
    }

    fn notes(&self) -> Vec<String> {
        let open = self.session.as_ref();
        open.and_then(|session| uneven(session.client.topology(), &self.workload)).into_iter().collect()
    }
}
