//! What the tests of metrics share: a recorder that keeps every value.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

/// Keeps the values of all metrics by `name{labels}`.
#[derive(Default, Clone)]
pub(crate) struct Kept(Arc<Mutex<BTreeMap<String, Vec<f64>>>>);

struct One(Kept, String, AtomicU64);

impl One {
    fn add(&self, value: f64) {
        self.0.0.lock().unwrap().entry(self.1.clone()).or_default().push(value);
    }
}

impl CounterFn for One {
    fn increment(&self, value: u64) {
        self.add(f64::from(u32::try_from(value).unwrap()));
    }

    fn absolute(&self, value: u64) {
        self.2.store(value, Ordering::SeqCst);
    }
}

impl GaugeFn for One {
    fn increment(&self, value: f64) {
        self.add(value);
    }

    fn decrement(&self, value: f64) {
        self.add(-value);
    }

    fn set(&self, value: f64) {
        self.add(value);
    }
}

impl HistogramFn for One {
    fn record(&self, value: f64) {
        self.add(value);
    }
}

impl Kept {
    fn one(&self, key: &Key) -> Arc<One> {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        Arc::new(One(self.clone(), format!("{}{{{}}}", key.name(), labels.join(",")), AtomicU64::new(0)))
    }

    pub(crate) fn values(&self, name: &str) -> Vec<f64> {
        self.0.lock().unwrap().get(name).cloned().unwrap_or_default()
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.one(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.one(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.one(key))
    }
}

/// Runs on a runtime whose time is paused, under this recorder.
pub(crate) fn recorded<F: Future>(test: impl FnOnce() -> F) -> Kept {
    let kept = Kept::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&kept, || runtime.block_on(async { drop(test().await) }));
    kept
}
