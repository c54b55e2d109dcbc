//! The native half of `io.peristyle.ycsb.PeristyleClient`. A panic or an error becomes a Java exception or a status: neither
//! reaches the virtual machine.

mod clerk;
mod desk;
mod faults;
mod natives;
mod sessions;
mod wire;

/// What Java threads and io threads hand each other is freed by other threads than allocated it, which this one is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
