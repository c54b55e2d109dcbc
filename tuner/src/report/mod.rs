//! Results for people and programs. Nothing is computed here that a search would decide by.

mod beside;
mod compare;
mod explain;
mod figures;
mod hdr;
mod html;
mod journal;
mod limit;
mod model;
mod out;
mod points;
mod result;
mod table;
mod terms;

use std::time::Duration;

pub(crate) use self::beside::Beside;
pub(crate) use self::compare::{Compared, compare};
pub(crate) use self::figures::Figures;
pub(crate) use self::hdr::log;
pub(crate) use self::html::html;
pub(crate) use self::journal::{Journal, Line, read};
pub(crate) use self::model::Model;
pub(crate) use self::out::OutFolder;
pub(crate) use self::result::ResultFile;
pub(crate) use self::table::{closing, header, opening, rate, row, sparkline};
pub(crate) use self::terms::Terms;
use crate::search::{Answer, Trial};
use crate::target::Measurement;

/// A window: what the search saw of it, and all the rest.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    pub(crate) trial: Trial,
    pub(crate) measurement: Measurement,
}

/// Everything a finished run leaves.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) answer: Answer,
    pub(crate) windows: Vec<Window>,
    pub(crate) spent: Duration,
    /// The chosen point beside the defaults, where that was asked for.
    pub(crate) beside: Option<Beside>,
    /// What is to be known of the target, in sentences.
    pub(crate) notes: Vec<String>,
}

impl Outcome {
    /// The windows at these indexes.
    pub(crate) fn windows_at(&self, indexes: &[usize]) -> Vec<&Window> {
        indexes.iter().filter_map(|index| self.windows.get(*index)).collect()
    }
}
