//! Which endpoint a request gets.

use std::fmt;
use std::sync::Arc;

use super::{Endpoint, Endpoints};
use crate::backend::Backend;
use crate::model::{Key, TableSpec, Value};
use crate::request::{Action, Mutation, Read, Request, Write};

/// Who knows whether endpoints are well, such as the [circuits](crate::layers::CircuitLayer).
pub trait Health: fmt::Debug + Send + Sync {
    /// Whether it would take a request now.
    fn is_well(&self, endpoint: Endpoint) -> bool;
}

/// Chooses endpoints for requests by the backend's [topology](crate::Topology): an owner of the partition that is well.
///
/// Owners that are as good as each other take turns, so that a partition that many ask for is served by all of its replicas.
/// Requests of many rows and conditional writes always go to the first of them: rows that were grouped by their first owner have
/// no other in common, and conditional writes of one row hinder each other less at one node. Cost: where there is one endpoint,
/// a question to the topology; else what the topology takes to find the owners.
#[derive(Debug, Clone)]
pub struct Router(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    backend: Arc<dyn Backend>,
    health: Option<Arc<dyn Health>>,
    takes_turns: bool,
}

impl Router {
    /// By the topology of this backend.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self(Arc::new(Inner { backend, health: None, takes_turns: true }))
    }

    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let Inner { backend, health, takes_turns } = &*self.0;
        let mut inner = Inner { backend: Arc::clone(backend), health: health.clone(), takes_turns: *takes_turns };
        change(&mut inner);
        Self(Arc::new(inner))
    }

    /// Prefers endpoints that are well, by what this says.
    #[must_use]
    pub fn health(self, health: Arc<dyn Health>) -> Self {
        self.with(|inner| inner.health = Some(health))
    }

    /// Always prefers the first owner, so that requests of one owner meet on their way and can be joined.
    #[must_use]
    pub fn first_owner(self) -> Self {
        self.with(|inner| inner.takes_turns = false)
    }

    /// Where a request should go, if it makes a difference and is known: not to `avoid`, if there is another endpoint that is
    /// well, and to that one, if it is the only one that is.
    #[inline]
    pub fn choose(&self, request: &Request, avoid: Option<Endpoint>) -> Option<Endpoint> {
        if self.endpoint_count() > 1 { self.choose_one(request, avoid) } else { None }
    }

    /// To how many endpoints requests may go now.
    #[inline]
    pub fn endpoint_count(&self) -> usize {
        self.0.backend.topology().endpoint_count()
    }

    fn choose_one(&self, request: &Request, avoid: Option<Endpoint>) -> Option<Endpoint> {
        let found = self.owners(&request.action)?;
        let turn = if self.0.takes_turns && may_take_turns(&request.action) { fastrand::usize(..) } else { 0 };
        let is_well = |endpoint: &Endpoint| self.0.health.as_ref().is_none_or(|health| health.is_well(*endpoint));
        let others = || found.turned(turn).filter(|endpoint| Some(*endpoint) != avoid);
        let avoided = || avoid.filter(|avoid| found.iter().any(|endpoint| endpoint == *avoid));
        others().find(is_well).or_else(|| avoided().filter(is_well)).or_else(|| others().next()).or_else(avoided)
    }

    fn owners(&self, action: &Action) -> Option<Endpoints> {
        let topology = self.0.backend.topology();
        let one = |table: &TableSpec, key: &Key| topology.endpoints(table, &mut std::iter::once(partition(table, key)));
        Some(match action {
            Action::Read { table, read } => match read {
                Read::Get { key, .. } => one(table, key),
                Read::GetAll { keys, .. } => {
                    topology.endpoints(table, &mut keys.iter().map(|key| partition(table, key)))
                }
                Read::Query(query) => one(table, &query.partition),
                Read::Scan(_) => return None,
            },
            Action::Write { table, write } => match write {
                Write::Apply(Mutation { key, .. }) | Write::Increment { key, .. } => one(table, key),
                Write::CompareAndPut { mutation, .. } => one(table, &mutation.key),
                Write::ApplyAll(all) => {
                    topology.endpoints(table, &mut all.iter().map(|row| partition(table, &row.key)))
                }
            },
            Action::Schema(_) => return None,
        })
    }
}

fn partition<'a>(table: &TableSpec, key: &'a Key) -> &'a [Value] {
    key.prefix(table.partition_len())
}

fn may_take_turns(action: &Action) -> bool {
    match action {
        Action::Read { read, .. } => !matches!(read, Read::GetAll { .. }),
        Action::Write { write, .. } => matches!(write, Write::Apply(_) | Write::Increment { .. }),
        Action::Schema(_) => false,
    }
}
