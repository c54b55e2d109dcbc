//! The native half of `io.peristyle.ycsb.PeristyleClient`. A panic or an error becomes a Java exception or a status: neither
//! reaches the virtual machine.

mod clerk;
mod desk;
mod faults;
mod natives;
mod sessions;
mod wire;
