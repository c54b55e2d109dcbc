//! Requests that may be joined, and those of them that wait.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::endpoint::Endpoint;
use crate::error::Result;
use crate::grouping::Place;
use crate::model::{Key, TableSpec};
use crate::request::{
    Action, Consistency, Mutation, Projection, Read, Request, RequestOptions, SerialConsistency, Write,
};
use crate::response::Response;

/// What one request may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caps {
    pub(super) rows: usize,
    pub(super) bytes: usize,
    pub(super) partitions: usize,
}

/// What requests that may be joined have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct GroupKey {
    /// The address of the table, which the group keeps.
    table: usize,
    place: u64,
    endpoint: Option<Endpoint>,
    columns: Option<Projection>,
    consistency: Option<Consistency>,
    serial_consistency: Option<SerialConsistency>,
    attempt_timeout: Option<Duration>,
}

impl GroupKey {
    pub(super) fn new(table: &Arc<TableSpec>, place: u64, request: &Request) -> Self {
        let options = &request.options;
        let columns = match &request.action {
            Action::Read { read, .. } => Some(read.columns().clone()),
            _ => None,
        };
        Self {
            table: Arc::as_ptr(table).addr(),
            place,
            endpoint: options.endpoint,
            columns,
            consistency: options.consistency,
            serial_consistency: options.serial_consistency,
            attempt_timeout: options.attempt_timeout,
        }
    }
}

/// The table and the key of a request that may be joined.
pub(super) fn row(action: &Action) -> Option<(&Arc<TableSpec>, &Key)> {
    let (table, key) = match action {
        Action::Write { table, write: Write::Apply(mutation) } => (table, &mutation.key),
        Action::Read { table, read: Read::Get { key, .. } } => (table, key),
        _ => return None,
    };
    // A partition has a shorter one.
    (key.values().len() == table.key_len()).then_some((table, key))
}

/// Where a queued request stands: its caller and the task that sends agree on it.
#[derive(Debug, Default)]
pub(super) struct Phase(AtomicU8);

impl Phase {
    const WAITING: u8 = 0;
    const TAKEN: u8 = 1;
    const GONE: u8 = 2;

    fn leave(&self, next: u8) -> bool {
        self.0.compare_exchange(Self::WAITING, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Takes it to be sent, unless its caller gave it up.
    pub(super) fn take(&self) -> bool {
        self.leave(Self::TAKEN)
    }

    /// Gives it up, unless it was taken.
    pub(super) fn give_up(&self) -> bool {
        self.leave(Self::GONE)
    }

    fn is_gone(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::GONE
    }
}

/// A request in a queue.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) request: Request,
    pub(super) place: Place,
    pub(super) phase: Arc<Phase>,
    pub(super) answer: oneshot::Sender<Result<Response>>,
}

impl Entry {
    fn write(&self) -> Option<&Mutation> {
        match &self.request.action {
            Action::Write { write: Write::Apply(mutation), .. } => Some(mutation),
            _ => None,
        }
    }

    fn read(&self) -> Option<&Key> {
        match &self.request.action {
            Action::Read { read: Read::Get { key, .. }, .. } => Some(key),
            _ => None,
        }
    }
}

/// Requests that may be joined.
#[derive(Debug)]
pub(super) struct Group {
    /// Kept, so that no other table gets its address.
    pub(super) table: Arc<TableSpec>,
    pub(super) under_way: usize,
    pub(super) queue: VecDeque<Entry>,
    /// Of the caller that queued last.
    pub(super) runtime: Option<Handle>,
}

impl Group {
    pub(super) fn new(table: Arc<TableSpec>) -> Self {
        Self { table, under_way: 0, queue: VecDeque::new(), runtime: None }
    }

    /// Takes what goes into the next request, in order. A second write of a row stays for a later one, without holding up
    /// those behind it.
    pub(super) fn take(&mut self, caps: Caps) -> Vec<Entry> {
        let mut taken: Vec<Entry> = Vec::new();
        let (mut rows, mut partitions, mut bytes) = (HashSet::new(), HashSet::new(), 0);
        let mut later = Vec::new();
        while taken.len() < caps.rows
            && let Some(entry) = self.queue.pop_front()
        {
            if entry.phase.is_gone() {
                continue;
            }
            let (row, size) = (entry.place.row, entry.write().map(Mutation::size));
            if size.is_some() && rows.contains(&row) {
                later.push(entry);
                continue;
            }
            let partition = (caps.partitions < caps.rows).then_some(entry.place.partition);
            let is_full = bytes + size.unwrap_or_default() > caps.bytes
                || partition.is_some_and(|one| partitions.len() >= caps.partitions && !partitions.contains(&one));
            if is_full && !taken.is_empty() {
                self.queue.push_front(entry);
                break;
            }
            if entry.phase.take() {
                rows.extend(size.is_some().then_some(row));
                partitions.extend(partition);
                bytes += size.unwrap_or_default();
                taken.push(entry);
            }
        }
        for entry in later.into_iter().rev() {
            self.queue.push_front(entry);
        }
        taken
    }
}

/// One request for all of these: alone as it was, or as many.
pub(super) fn joined(table: &Arc<TableSpec>, entries: &[Entry]) -> Option<Request> {
    let first = &entries.first()?.request;
    if entries.len() == 1 {
        return Some(first.clone());
    }
    let table = Arc::clone(table);
    let action = match &first.action {
        Action::Read { read, .. } => {
            let keys = entries.iter().filter_map(Entry::read).cloned().collect();
            Action::Read { table, read: Read::GetAll { keys, columns: read.columns().clone() } }
        }
        _ => {
            Action::Write { table, write: Write::ApplyAll(entries.iter().filter_map(Entry::write).cloned().collect()) }
        }
    };
    let options = entries.iter().fold(first.options, |options, entry| patient(options, &entry.request.options));
    Some(Request { action, options })
}

/// The options of both, with the later of their ends.
fn patient(mut options: RequestOptions, other: &RequestOptions) -> RequestOptions {
    let later = |one: Option<Instant>, two: Option<Instant>| one.zip(two).map(|(one, two)| one.max(two));
    options.deadline = later(options.deadline, other.deadline);
    options.attempt_deadline = later(options.attempt_deadline, other.attempt_deadline);
    options
}
