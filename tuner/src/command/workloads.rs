//! `tuner workloads`.

use crate::console::Console;
use crate::failure::{Exit, Result};
use crate::workload::{BUILTIN, Workload};

/// Lists the built-in workloads, or prints one.
pub(crate) fn run(name: Option<&str>) -> Result<Exit> {
    let Some(name) = name else {
        for builtin in BUILTIN {
            let workload = Workload::find(builtin.name, 0)?;
            let data = if workload.reads() { "; needs tuner load" } else { "" };
            Console::result(&format!("{:<16} {}{data}", builtin.name, workload.about));
        }
        return Ok(Exit::Done);
    };
    match BUILTIN.iter().find(|builtin| builtin.name == name) {
        Some(builtin) => Console::result(builtin.text.trim_end()),
        // The message for an unknown name is that of every command.
        None => drop(Workload::find(name, 0)?),
    }
    Ok(Exit::Done)
}
