//! What the tests of metrics share.

use std::future::Future;

pub(crate) use crate::testkit::Kept;

/// Runs on a runtime whose time is paused, under this recorder.
pub(crate) fn recorded<F: Future>(test: impl FnOnce() -> F) -> Kept {
    let kept = Kept::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&kept, || runtime.block_on(async { drop(test().await) }));
    kept
}
