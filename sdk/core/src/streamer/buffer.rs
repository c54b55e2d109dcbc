//! What waits and what is under way: who may be sent next, and what became of it.

use std::collections::hash_map::Entry;
use std::collections::vec_deque::Drain;
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
    /// Where the first write of each row is that has no outcome, by the hash of the row's key. Rows whose hashes are the same by
    /// chance wait for one another.
    rows: ByHash<Spot>,
    /// Writes that wait for an earlier one of their row, by the same hash. Hardly ever are there any.
    later: ByHash<VecDeque<Item>>,
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

/// The place of a write: so many were put into the queue of its group before it.
#[derive(Debug, Clone, Copy)]
struct Spot {
    group: u64,
    number: u64,
}

/// What is sent for one or more rows that were added.
#[derive(Debug)]
struct Item {
    hash: u64,
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
    queue: VecDeque<Item>,
    /// How many left the queue: the number of the first that is in it.
    left: u64,
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
            later: ByHash::default(),
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

    /// Moves all that waits into one group, the rows of each side by side, unless it is in one already.
    fn join(&mut self) {
        let waits = |group: &&mut Group| !group.is_ready && !group.queue.is_empty();
        if self.groups.values_mut().filter(waits).count() < 2 {
            return;
        }
        let mut rest = self.groups.remove(&REST).unwrap_or_default();
        for group in self.groups.values_mut().filter(|group| !group.is_ready) {
            for item in group.empty() {
                self.rows.insert(item.hash, Spot { group: REST, number: rest.next_number() });
                rest.push(item);
            }
        }
        self.groups.insert(REST, rest);
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

    /// Adds a row of so many bytes, behind all earlier writes of it. Its place is what failures tell it by.
    pub(crate) fn add(&mut self, place: u64, key: Place, mutation: Mutation, bytes: usize, receipt: Option<Receiver>) {
        self.report.added += 1;
        let ticket = Ticket { place, epoch: self.epochs.add(), bytes, receipt };
        let item = Item { hash: key.row, mutation, bytes, ticket, folded: Vec::new() };
        match self.rows.entry(key.row) {
            Entry::Vacant(row) => {
                let group = self.groups.entry(key.group).or_default();
                row.insert(Spot { group: key.group, number: group.next_number() });
                group.push(item);
                self.make_ready(key.group);
            }
            Entry::Occupied(row) => {
                let spot = *row.get();
                self.add_behind(spot, item);
            }
        }
    }

    /// Adds a write behind others of its row, or of one that has the same hash: to the last of them that waits, or behind it.
    fn add_behind(&mut self, spot: Spot, item: Item) {
        let (hash, replaces) = (item.hash, self.replaces);
        let unfolded = if let Some(last) = self.later.get_mut(&hash).and_then(VecDeque::back_mut) {
            last.fold(item, replaces)
        } else if let Some(group) = self.groups.get_mut(&spot.group) {
            let unfolded = group.fold(spot.number, item, replaces);
            self.make_ready(spot.group);
            unfolded
        } else {
            Some(item)
        };
        if let Some(item) = unfolded {
            self.later.entry(hash).or_default().push_back(item);
        }
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
        let taken = group.take(self.caps);
        let mut mutations = Vec::with_capacity(taken.len());
        let mut rows = Vec::with_capacity(taken.len());
        for Item { hash, mutation, ticket, folded, .. } in taken {
            mutations.push(mutation);
            rows.push((hash, ticket, folded));
        }
        self.make_ready(id);
        Some(Batch { mutations, sent: Sent { group: id, rows } })
    }

    /// Ends a request: tells its rows what became of them, and lets later writes of them go.
    pub(crate) fn end(&mut self, sent: Sent, answer: Result<Response>) -> Ended {
        let mut ended = Ended::default();
        let outcomes = places::outcomes(answer, sent.rows.len());
        if let Some(group) = self.groups.get_mut(&sent.group) {
            group.under_way = group.under_way.saturating_sub(1);
        }
        for ((hash, ticket, folded), outcome) in sent.rows.into_iter().zip(outcomes) {
            self.finish_all(ticket, folded, outcome, &mut ended);
            self.go_on(hash);
        }
        self.make_ready(sent.group);
        ended
    }

    fn finish_all(&mut self, ticket: Ticket, folded: Vec<Ticket>, outcome: Result<()>, ended: &mut Ended) {
        if folded.is_empty() {
            return self.finish(ticket, outcome, ended);
        }
        for ticket in once(ticket).chain(folded) {
            self.finish(ticket, outcome.as_ref().copied().map_err(Error::share), ended);
        }
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
        let Entry::Occupied(mut row) = self.rows.entry(hash) else { return };
        let Some((item, is_last)) =
            self.later.get_mut(&hash).and_then(|later| Some((later.pop_front()?, later.is_empty())))
        else {
            row.remove();
            return;
        };
        if is_last {
            self.later.remove(&hash);
        }
        let group = self.groups.entry(row.get().group).or_default();
        row.get_mut().number = group.next_number();
        group.push(item);
    }

    /// Gives up all that waits.
    pub(super) fn give_up(&mut self, error: &Error) -> Ended {
        let mut ended = Ended::default();
        let mut items: Vec<Item> = self.later.drain().flat_map(|(_, later)| later).collect();
        self.ready.clear();
        for group in self.groups.values_mut() {
            items.extend(group.empty());
            group.is_ready = false;
        }
        let groups = &self.groups;
        self.rows.retain(|_, spot| groups.get(&spot.group).is_some_and(|group| spot.number < group.left));
        self.groups.retain(|_, group| group.under_way > 0);
        items.sort_by_key(|item| item.ticket.place);
        for item in items {
            self.finish_all(item.ticket, item.folded, Err(error.share()), &mut ended);
        }
        ended
    }
}

impl Item {
    /// Adds a later write to this one; gives it back if that can't be.
    fn fold(&mut self, later: Self, replaces: bool) -> Option<Self> {
        // Two rows of one hash, or one row written in two ways, such as 1.0 and 1.00, go one after the other.
        let (first, next) = (&self.mutation, &later.mutation);
        let is_allowed = replaces || first.wipe == Wipe::Nothing || next.wipe != Wipe::Nothing || next.is_delete();
        if first.key != next.key || !is_allowed {
            return Some(later);
        }
        self.mutation.fold(later.mutation);
        self.bytes = self.mutation.size();
        self.folded.push(later.ticket);
        None
    }
}

impl Group {
    /// The number of the next write that is put into the queue.
    fn next_number(&self) -> u64 {
        self.left + to_u64(self.queue.len())
    }

    fn push(&mut self, item: Item) {
        self.bytes += item.bytes;
        self.queue.push_back(item);
    }

    /// Folds a later write into the one of this number; gives it back if that can't be, or the number has left.
    fn fold(&mut self, number: u64, later: Item, replaces: bool) -> Option<Item> {
        let place = number.checked_sub(self.left).and_then(|place| usize::try_from(place).ok());
        let Some(first) = place.and_then(|place| self.queue.get_mut(place)) else { return Some(later) };
        let before = first.bytes;
        let unfolded = first.fold(later, replaces);
        self.bytes = (self.bytes + first.bytes).saturating_sub(before);
        unfolded
    }

    /// Takes out what goes into one request.
    fn take(&mut self, caps: Caps) -> Drain<'_, Item> {
        let mut bytes = 0;
        let mut count = 0;
        for item in self.queue.iter().take(caps.rows) {
            if bytes + item.bytes > caps.bytes && count > 0 {
                break;
            }
            bytes += item.bytes;
            count += 1;
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        self.left += to_u64(count);
        self.queue.drain(..count)
    }

    /// Takes out all that waits.
    fn empty(&mut self) -> VecDeque<Item> {
        self.left = self.next_number();
        self.bytes = 0;
        std::mem::take(&mut self.queue)
    }

    /// A request that isn't full goes when no other of its group is under way: while the wire is free nothing waits, and
    /// while it isn't, requests fill up by themselves (RFC 896). Full ones always go.
    fn may_go(&self, caps: Caps, holds: bool) -> bool {
        let is_full = self.queue.len() >= caps.rows || self.bytes >= caps.bytes;
        !self.queue.is_empty() && (is_full || (self.under_way == 0 && !holds))
    }
}

fn to_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// The error of rows that are given up.
pub(super) fn given_up(message: &str) -> Error {
    Error::new(ErrorKind::Timeout(TimeoutPhase::Queue), message).with_outcome(Outcome::NotApplied)
}
