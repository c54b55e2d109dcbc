//! The native half of `io.peristyle.ycsb.PeristyleClient`. A panic or an error becomes a Java exception or a status: neither
//! reaches the virtual machine.

mod natives;
mod sessions;
mod wire;
