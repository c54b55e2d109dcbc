//! That the generated code is what the compiler makes of the interface.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::{env, fs, io};

use libtest_mimic::{Arguments, Failed, Trial};

/// The compiler whose output is committed.
const VERSION: &str = "Thrift version 0.17.0";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let there = Command::new("thrift")
        .arg("--version")
        .output()
        .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == VERSION);
    let trial = |name: &'static str| {
        let run = move || is_current(name).map_err(|error| Failed::from(error.to_string()));
        Trial::test(format!("{name}_is_what_the_compiler_makes_of_its_interface"), move || {
            if run()? { Ok(()) } else { Err(Failed::from(format!("src/wire/{name}.rs is old; generate it again"))) }
        })
        .with_ignored_flag(!there && env::var_os("CI").is_none())
    };
    libtest_mimic::run(&arguments, ["hbase1", "hbase2"].map(trial).into()).exit_code()
}

fn is_current(name: &str) -> io::Result<bool> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder)?;
    let interface = root.join("idl").join(format!("{name}.thrift"));
    let status = Command::new("thrift").args(["--gen", "rs", "-out"]).arg(&folder).arg(interface).status()?;
    let file = format!("{name}.rs");
    let made = fs::read(folder.join(&file))?;
    Ok(status.success() && made == fs::read(root.join("src/wire").join(file))?)
}
