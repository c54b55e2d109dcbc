//! The judgement of the search: simulated servers with a known answer, beside the searches of other tools.

mod baselines;
mod pairs;
mod servers;
mod table;
mod trial;

pub(crate) use self::pairs::Pairs;
#[cfg(test)]
pub(crate) use self::servers::RAYTRACER;
pub(crate) use self::servers::cases;
pub(crate) use self::table::{header, judge};
#[cfg(test)]
pub(crate) use self::{servers::Case, trial::sweep};

#[cfg(test)]
mod tests {
    use super::*;

    /// The full judgement has 200 searches for each server and noise, and noise of 5 % too: `tuner sim judge`.
    #[test]
    fn the_search_meets_its_bars_on_every_server() {
        for case in cases().unwrap() {
            for cv in [0.01, 0.02] {
                let row = judge(&case, cv, 4).expect("every search ends");
                assert!(row.missed().is_empty(), "{}\n{}", header(), row.text());
            }
        }
    }
}
