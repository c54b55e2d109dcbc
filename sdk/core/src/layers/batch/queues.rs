//! All groups: who goes at once, who queues, and the tasks that send what queued.

use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::group::{Entry, Group, GroupKey, Phase, row};
use super::{Inner, Setting, join};
use crate::error::{Error, ErrorKind, Outcome, Result, TimeoutPhase};
use crate::model::TableSpec;
use crate::request::{Request, RequestOptions};
use crate::response::Response;

pub(super) struct Queues<S> {
    setting: Arc<Setting>,
    service: Mutex<S>,
    groups: Mutex<HashMap<GroupKey, Group>>,
}

impl<S: Inner> Queues<S> {
    pub(super) fn new(setting: Arc<Setting>, service: S) -> Arc<Self> {
        Arc::new(Self { setting, service: Mutex::new(service), groups: Mutex::default() })
    }

    fn groups(&self) -> MutexGuard<'_, HashMap<GroupKey, Group>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.groups().is_empty()
    }

    /// Lets a request go on, with a slot if it is one that may be joined, or queues it.
    pub(super) fn admit(self: &Arc<Self>, request: Request) -> Result<(Request, Option<Slot<S>>), Ticket> {
        let topology = self.setting.backend.topology();
        let place = |(table, key)| (Arc::clone(table), self.setting.grouping.place(topology, table, key));
        let found = row(&request.action).map(place);
        let (Some((table, place)), Ok(runtime)) = (found, Handle::try_current()) else { return Ok((request, None)) };
        let key = GroupKey::new(&table, place.group, &request);
        let mut groups = self.groups();
        let group = groups.entry(key.clone()).or_insert_with(|| Group::new(table));
        if group.under_way < self.setting.under_way {
            group.under_way += 1;
            return Ok((request, Some(Slot { queues: Arc::clone(self), key: Some(key) })));
        }
        let (answer, receiver) = oneshot::channel();
        let phase = Arc::<Phase>::default();
        let ticket = Ticket { phase: Arc::clone(&phase), options: request.options, receiver };
        group.queue.push_back(Entry { request, place, phase, answer });
        group.runtime = Some(runtime);
        Err(ticket)
    }

    /// Gives a slot back: to a task that sends what has queued, if anything has.
    fn release(self: &Arc<Self>, key: GroupKey) {
        let mut groups = self.groups();
        let MapEntry::Occupied(mut entry) = groups.entry(key) else { return };
        let group = entry.get_mut();
        if group.queue.is_empty() {
            group.under_way -= 1;
            if group.under_way == 0 {
                entry.remove();
            }
            return;
        }
        let (runtime, key) = (group.runtime.clone(), entry.key().clone());
        drop(groups);
        let sender = Sender { queues: Arc::clone(self), key: Some(key) };
        match runtime {
            Some(runtime) => drop(runtime.spawn(sender.run())),
            None => drop(sender),
        }
    }

    /// What goes next, or the slot back.
    fn take(&self, key: &GroupKey) -> Option<(Arc<TableSpec>, Vec<Entry>)> {
        let mut groups = self.groups();
        let group = groups.get_mut(key)?;
        let entries = group.take(self.setting.caps);
        if !entries.is_empty() {
            return Some((Arc::clone(&group.table), entries));
        }
        group.under_way -= 1;
        if group.under_way == 0 {
            groups.remove(key);
        }
        None
    }
}

/// The right to be under way in a group, given back when it is dropped.
pub(super) struct Slot<S: Inner> {
    queues: Arc<Queues<S>>,
    key: Option<GroupKey>,
}

impl<S: Inner> Drop for Slot<S> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.queues.release(key);
        }
    }
}

/// A task with a slot, which sends while there is something to send.
struct Sender<S: Inner> {
    queues: Arc<Queues<S>>,
    /// The group whose slot it holds.
    key: Option<GroupKey>,
}

impl<S: Inner> Sender<S> {
    async fn run(mut self) {
        let service = self.queues.service.lock().unwrap_or_else(PoisonError::into_inner).clone();
        while let Some(key) = &self.key {
            match self.queues.take(key) {
                Some((table, entries)) => join::send(service.clone(), &table, entries).await,
                None => self.key = None,
            }
        }
    }
}

impl<S: Inner> Drop for Sender<S> {
    /// Dropped with its slot, it was ended by a panic below, and another goes on, or by the end of the runtime, and nobody will.
    fn drop(&mut self) {
        let Some(key) = self.key.take() else { return };
        if !std::thread::panicking()
            && let Some(group) = self.queues.groups().get_mut(&key)
        {
            group.queue.clear();
        }
        self.queues.release(key);
    }
}

/// A caller's end of a queued request.
#[derive(Debug)]
pub(super) struct Ticket {
    phase: Arc<Phase>,
    options: RequestOptions,
    receiver: oneshot::Receiver<Result<Response>>,
}

impl Ticket {
    /// The answer. One that waits says so when its time is over; no timer of its own: the layer that set the limit polls
    /// everything below it when it runs out.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Response>> {
        if let Poll::Ready(answer) = self.receiver.poll_unpin(context) {
            return Poll::Ready(answer.unwrap_or_else(|_| Err(self.abandoned())));
        }
        if self.options.is_over() && self.phase.give_up() {
            let message = "waited for its time behind other requests, and was not sent; send less, or allow more";
            let error = Error::new(ErrorKind::Timeout(TimeoutPhase::Queue), message);
            return Poll::Ready(Err(error.with_outcome(Outcome::NotApplied)));
        }
        Poll::Pending
    }

    /// The task that was to send it has ended.
    fn abandoned(&self) -> Error {
        let outcome = if self.phase.give_up() { Outcome::NotApplied } else { Outcome::Unknown };
        Error::new(ErrorKind::Closed, "the task that sends joined requests has ended").with_outcome(outcome)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.phase.give_up();
    }
}
