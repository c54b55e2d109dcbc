//! What waits and what is under way: who may be sent next, and what became of it.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use std::iter::once;

use tokio::sync::oneshot;

use super::epochs::Epochs;
use super::report::StreamReport;
use crate::error::{Error, ErrorKind, Outcome, Result, TimeoutPhase};
use crate::grouping::{Place, U64Hasher};
use crate::layers::places;
use crate::request::{Mutation, Wipe};
use crate::response::Response;

/// Who is told what became of a row.
pub(crate) type Receiver = oneshot::Sender<Result<()>>;

type ByHash<T> = HashMap<u64, T, BuildHasherDefault<U64Hasher>>;

/// The group of what is left of others. One that has the same number by chance just joins it.
const REST: u64 = u64::MAX;

/// What goes into one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caps {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

/// The rows that have no outcome yet.
#[derive(Debug)]
pub(crate) struct Buffer {
    caps: Caps,
    rows: ByHash<Row>,
    groups: ByHash<Group>,
    /// Groups that have something to send, in the order in which they came to have it.
    ready: VecDeque<u64>,
    /// Whether requests that aren't full wait for [`release`](Self::release).
    holds: bool,
    /// Whether what is left of several groups goes together.
    joins: bool,
    /// Whether a delete and a put behind it may become one replace.
    replaces: bool,
    epochs: Epochs,
    report: StreamReport,
}

/// All writes of one row, by the hash of its key. Rows whose hashes are the same by chance wait for one another.
#[derive(Debug)]
struct Row {
    group: u64,
    is_under_way: bool,
    /// What is sent next, and what after it where it can't be folded. Hardly ever more than one.
    next: Option<Item>,
    later: VecDeque<Item>,
}

/// What is sent for one or more rows that were added.
#[derive(Debug)]
struct Item {
    mutation: Mutation,
    bytes: usize,
    ticket: Ticket,
    folded: Vec<Ticket>,
}

/// A row that was added.
#[derive(Debug)]
struct Ticket {
    place: u64,
    epoch: u64,
    bytes: usize,
    receipt: Option<Receiver>,
}

#[derive(Debug, Default)]
struct Group {
    queue: VecDeque<u64>,
    bytes: usize,
    under_way: usize,
    is_ready: bool,
}

/// One request.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) mutations: Vec<Mutation>,
    pub(crate) sent: Sent,
}

/// The rows of a request, in its order.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    group: u64,
    rows: Vec<(u64, Ticket, Vec<Ticket>)>,
}

/// What a request that has ended leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    /// For the listener.
    pub(crate) failures: Vec<(u64, Error)>,
}

impl Buffer {
    pub(crate) fn new(caps: Caps) -> Self {
        Self {
            caps,
            rows: ByHash::default(),
            groups: ByHash::default(),
            ready: VecDeque::new(),
            holds: false,
            joins: false,
            replaces: true,
            epochs: Epochs::new(),
            report: StreamReport::default(),
        }
    }

    /// Keeps requests that aren't full until [`release`](Self::release): for one who has all rows at hand.
    pub(crate) fn holding(self) -> Self {
        Self { holds: true, ..self }
    }

    /// Sends what is left of several groups together, where that `joins` them as well.
    pub(crate) fn joining(self, joins: bool) -> Self {
        Self { joins, ..self }
    }

    /// Makes one replace of a delete and a put behind it only where that is possible.
    pub(crate) fn replacing(self, replaces: bool) -> Self {
        Self { replaces, ..self }
    }

    /// Moves all that waits into one group, the rows of each side by side.
    fn join(&mut self) {
        let mut rest = Group::default();
        for group in self.groups.values_mut().filter(|group| !group.is_ready) {
            rest.bytes += std::mem::take(&mut group.bytes);
            rest.queue.append(&mut group.queue);
        }
        for hash in &rest.queue {
            if let Some(row) = self.rows.get_mut(hash) {
                row.group = REST;
            }
        }
        let group = self.groups.entry(REST).or_default();
        group.bytes += rest.bytes;
        group.queue.append(&mut rest.queue);
    }

    /// Lets all that waits now go, full or not.
    pub(crate) fn release(&mut self) {
        if self.joins {
            self.join();
        }
        for (id, group) in &mut self.groups {
            if !group.queue.is_empty() && !group.is_ready {
                group.is_ready = true;
                self.ready.push_back(*id);
            }
        }
    }

    pub(super) fn report(&self) -> &StreamReport {
        &self.report
    }

    /// A barrier behind all rows that were added; see [`Epochs`].
    pub(super) fn cut(&mut self) -> u64 {
        self.epochs.cut()
    }

    /// The barriers up to this one are passed.
    pub(super) fn passed(&self) -> u64 {
        self.epochs.first()
    }

    /// Adds a row, behind all earlier writes of it. Its place is what failures tell it by.
    pub(crate) fn add(&mut self, place: u64, key: Place, mutation: Mutation, receipt: Option<Receiver>) {
        self.report.added += 1;
        let (bytes, hash, group) = (mutation.size(), key.row, key.group);
        let ticket = Ticket { place, epoch: self.epochs.add(), bytes, receipt };
        let item = Item { mutation, bytes, ticket, folded: Vec::new() };
        let row = self.rows.entry(hash).or_insert_with(|| Row {
            group,
            is_under_way: false,
            next: None,
            later: VecDeque::new(),
        });
        let (group, before) = (row.group, row.waiting_bytes());
        let is_new = row.add(item, self.replaces);
        let grown = row.waiting_bytes();
        if !row.is_under_way {
            self.wait(group, is_new.then_some(hash), grown, before);
        }
    }

    /// Puts a row into the queue of its group, or notes that what waits there has grown.
    fn wait(&mut self, id: u64, new: Option<u64>, bytes: usize, before: usize) {
        let group = self.groups.entry(id).or_default();
        group.bytes = (group.bytes + bytes).saturating_sub(before);
        group.queue.extend(new);
        self.make_ready(id);
    }

    fn make_ready(&mut self, id: u64) {
        let caps = self.caps;
        if let Some(group) = self.groups.get_mut(&id) {
            if group.may_go(caps, self.holds) && !group.is_ready {
                group.is_ready = true;
                self.ready.push_back(id);
            }
            if group.queue.is_empty() && group.under_way == 0 && !group.is_ready {
                self.groups.remove(&id);
            }
        }
    }

    /// Whether a request may be sent.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next request.
    pub(crate) fn next(&mut self) -> Option<Batch> {
        let id = self.ready.pop_front()?;
        let group = self.groups.get_mut(&id)?;
        group.is_ready = false;
        group.under_way += 1;
        let most = group.queue.len().min(self.caps.rows);
        let mut batch =
            Batch { mutations: Vec::with_capacity(most), sent: Sent { group: id, rows: Vec::with_capacity(most) } };
        let mut bytes = 0;
        while let Some(hash) = group.queue.front().filter(|_| batch.mutations.len() < most) {
            let row = self.rows.get_mut(hash);
            let size = row.as_ref().map_or(0, |row| row.waiting_bytes());
            if bytes + size > self.caps.bytes && !batch.mutations.is_empty() {
                break;
            }
            bytes += size;
            if let Some(row) = row
                && let Some(item) = row.next.take()
            {
                row.is_under_way = true;
                batch.sent.rows.push((*hash, item.ticket, item.folded));
                batch.mutations.push(item.mutation);
            }
            group.queue.pop_front();
        }
        group.bytes = group.bytes.saturating_sub(bytes);
        self.make_ready(id);
        Some(batch)
    }

    /// Ends a request: tells its rows what became of them, and lets later writes of them go.
    pub(crate) fn end(&mut self, sent: Sent, answer: Result<Response>) -> Ended {
        let mut ended = Ended::default();
        let outcomes = places::outcomes(answer, sent.rows.len());
        if let Some(group) = self.groups.get_mut(&sent.group) {
            group.under_way = group.under_way.saturating_sub(1);
        }
        for ((hash, ticket, folded), outcome) in sent.rows.into_iter().zip(outcomes) {
            for ticket in once(ticket).chain(folded) {
                let outcome = outcome.as_ref().copied().map_err(Error::share);
                self.finish(ticket, outcome, &mut ended);
            }
            self.go_on(hash);
        }
        self.make_ready(sent.group);
        ended
    }

    fn finish(&mut self, ticket: Ticket, outcome: Result<()>, ended: &mut Ended) {
        self.report.note(ticket.place, &outcome);
        self.epochs.finish(ticket.epoch);
        ended.rows += 1;
        ended.bytes += ticket.bytes;
        if let Err(error) = &outcome {
            ended.failures.push((ticket.place, error.share()));
        }
        // A receipt that was dropped needs no outcome.
        if let Some(receipt) = ticket.receipt {
            let _ = receipt.send(outcome);
        }
    }

    /// A write of this row has ended.
    fn go_on(&mut self, hash: u64) {
        let Some(row) = self.rows.get_mut(&hash) else { return };
        row.is_under_way = false;
        row.next = row.next.take().or_else(|| row.later.pop_front());
        if row.next.is_none() {
            self.rows.remove(&hash);
            return;
        }
        let (group, bytes) = (row.group, row.waiting_bytes());
        self.wait(group, Some(hash), bytes, 0);
    }

    /// Gives up all that waits.
    pub(super) fn give_up(&mut self, error: &Error) -> Ended {
        let mut ended = Ended::default();
        let mut items = Vec::new();
        self.rows.retain(|_, row| {
            items.extend(row.next.take());
            items.extend(row.later.drain(..));
            row.is_under_way
        });
        self.ready.clear();
        self.groups.retain(|_, group| {
            group.queue.clear();
            (group.bytes, group.is_ready) = (0, false);
            group.under_way > 0
        });
        items.sort_by_key(|item| item.ticket.place);
        for item in items {
            for ticket in once(item.ticket).chain(item.folded) {
                self.finish(ticket, Err(error.share()), &mut ended);
            }
        }
        ended
    }
}

impl Row {
    /// Adds a write; tells whether nothing of this row waited before.
    fn add(&mut self, item: Item, replaces: bool) -> bool {
        let last = self.later.back_mut().or(self.next.as_mut());
        let is_allowed = |last: &Mutation| {
            replaces || last.wipe == Wipe::Nothing || item.mutation.wipe != Wipe::Nothing || item.mutation.is_delete()
        };
        match last {
            // Two rows of one hash, or one row written in two ways, such as 1.0 and 1.00, go one after the other.
            Some(last) if last.mutation.key == item.mutation.key && is_allowed(&last.mutation) => {
                last.mutation.fold(item.mutation);
                last.bytes = last.mutation.size();
                last.folded.push(item.ticket);
                false
            }
            Some(_) => {
                self.later.push_back(item);
                false
            }
            None => {
                self.next = Some(item);
                true
            }
        }
    }

    /// The bytes of what is sent next.
    fn waiting_bytes(&self) -> usize {
        self.next.as_ref().map_or(0, |item| item.bytes)
    }
}

impl Group {
    /// A request that isn't full goes when no other of its group is under way: while the wire is free nothing waits, and
    /// while it isn't, requests fill up by themselves (RFC 896). Full ones always go.
    fn may_go(&self, caps: Caps, holds: bool) -> bool {
        let is_full = self.queue.len() >= caps.rows || self.bytes >= caps.bytes;
        !self.queue.is_empty() && (is_full || (self.under_way == 0 && !holds))
    }
}

/// The error of rows that are given up.
pub(super) fn given_up(message: &str) -> Error {
    Error::new(ErrorKind::Timeout(TimeoutPhase::Queue), message).with_outcome(Outcome::NotApplied)
}
