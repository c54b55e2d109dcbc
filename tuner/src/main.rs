//! The binary `tuner`.

use std::process::ExitCode;

fn main() -> ExitCode {
    peristyle_tuner::run(std::env::args_os())
}
