//! Panics for tests, by the key that is read; without the feature `faults` there are none.

/// Panics in the native method itself.
pub(crate) fn panic_in_call(order: &[u8]) {
    panic_if(order, "panic in the call");
}

/// Panics in the task that serves the call.
pub(crate) fn panic_on_io_thread(order: &[u8]) {
    panic_if(order, "panic on the io thread");
}

#[cfg(feature = "faults")]
fn panic_if(order: &[u8], fault: &str) {
    let key = order.get(5..).filter(|_| order.starts_with(&[0])).unwrap_or_default();
    assert!(!key.starts_with(fault.as_bytes()), "a test asked for it");
}

#[cfg(not(feature = "faults"))]
fn panic_if(_: &[u8], _: &str) {}
