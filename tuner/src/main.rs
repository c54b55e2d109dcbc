//! The binary `tuner`.

use std::process::ExitCode;

/// A load generator that costs less leaves more of the machine to what is measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    peristyle_tuner::run(std::env::args_os())
}
