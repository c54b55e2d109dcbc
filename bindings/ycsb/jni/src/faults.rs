//! Panics for tests, by the key that is read; without the feature `faults` there are none.

use crate::clerk::Order;

/// Panics in the native method itself.
pub(crate) fn panic_in_call(order: &Order) {
    panic_if(order, "panic in the call");
}

/// Panics in the task that serves the call.
pub(crate) fn panic_on_io_thread(order: &Order) {
    panic_if(order, "panic on the io thread");
}

#[cfg(feature = "faults")]
fn panic_if(order: &Order, fault: &str) {
    assert!(!matches!(order, Order::Read { key, .. } if key == fault), "a test asked for it");
}

#[cfg(not(feature = "faults"))]
fn panic_if(_: &Order, _: &str) {}
