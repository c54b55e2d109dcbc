//! `tuner compare`.

use std::path::Path;

use crate::console::Console;
use crate::failure::{Exit, Failure, Result};
use crate::report::{Compared, compare};

/// Prints two results side by side.
pub(crate) fn run(first: &Path, second: &Path, json: bool) -> Result<Exit> {
    let compared = compare(first, second)?;
    if json {
        Console::result(&serde_json::to_string(&compared).map_err(|error| Failure::input(error.to_string()))?);
    } else {
        print(&compared);
    }
    Ok(Exit::Done)
}

fn print(compared: &Compared) {
    Console::result(&format!("first     {}", compared.first));
    Console::result(&format!("second    {}\n", compared.second));
    Console::result(&format!("{:<20} {:>14} {:>14} {:>9}", "", "first", "second", "ratio"));
    for column in &compared.columns {
        let cell = |value: Option<f64>| value.map_or_else(|| "-".into(), number);
        let ratio = column.first.zip(column.second).filter(|(first, _)| *first > 0.0);
        let ratio = ratio.map_or_else(|| "-".into(), |(first, second)| format!("{:.3}", second / first));
        Console::result(&format!(
            "{:<20} {:>14} {:>14} {ratio:>9}",
            column.name,
            cell(column.first),
            cell(column.second)
        ));
    }
    Console::result("");
    if let Some(throughout) = &compared.throughout {
        let word = if throughout.is_different() { "more than chance" } else { "not more than chance" };
        Console::result(&format!(
            "points    {} measured by both; the second gives {:+.1} % throughout, {word}",
            compared.common.len(),
            (throughout.ratio - 1.0) * 100.0
        ));
    }
    for common in compared.different() {
        Console::result(&format!("differs   {}: {:+.1} %", common.point, (common.ratio - 1.0) * 100.0));
    }
    for warning in &compared.warnings {
        Console::result(&format!("note      {warning}"));
    }
    Console::result(&format!("verdict   {}", compared.verdict()));
}

/// A number in about four digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}
