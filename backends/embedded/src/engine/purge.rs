//! Dropping what is expired or deleted for good, while tables are compacted anyway.

use std::sync::Arc;
use std::time::Duration;

use fjall::compaction::filter::{CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict};
use peristyle_core::clock::Clock;
use peristyle_core::model::WriteTime;

use crate::codec::Stored;

/// When a tombstone may go: once it is older than the grace.
#[derive(Debug, Clone)]
pub(crate) struct Grace {
    pub(crate) clock: Clock,
    pub(crate) grace: Duration,
}

impl Grace {
    /// The newest write time that may be forgotten now.
    pub(crate) fn before(&self) -> Option<WriteTime> {
        let grace = i64::try_from(self.grace.as_micros()).unwrap_or(i64::MAX);
        WriteTime::from_micros(self.clock.micros().saturating_sub(grace)).ok()
    }
}

/// Makes the filter for one compaction of a table.
pub(crate) struct Purge(pub(crate) Grace);

impl Purge {
    pub(crate) fn factory(grace: Grace) -> Arc<dyn Factory> {
        Arc::new(Self(grace))
    }
}

// The clock is a number behind an Arc: a panic can't leave it half-changed.
impl std::panic::RefUnwindSafe for Purge {}

impl Factory for Purge {
    fn name(&self) -> &'static str {
        "peristyle-purge"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(Filter { before: self.0.before(), now: self.0.clock.seconds() })
    }
}

struct Filter {
    before: Option<WriteTime>,
    now: i64,
}

impl CompactionFilter for Filter {
    /// A row that is left empty is replaced by the tombstone of the engine below, which hides the row's older versions.
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        let Some(before) = self.before else { return Ok(Verdict::Keep) };
        // A damaged row is the reader's to report; it must not stop compactions.
        let Ok(mut stored) = Stored::decode(item.value()?) else { return Ok(Verdict::Keep) };
        let whole = stored.record.clone();
        if !stored.record.purge(before, self.now) {
            return Ok(Verdict::Remove);
        }
        if stored.record == whole {
            return Ok(Verdict::Keep);
        }
        Ok(Verdict::ReplaceValue(stored.encode().into()))
    }
}
