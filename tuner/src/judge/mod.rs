//! The judgement of the search: simulated servers with a known answer, beside the searches of other tools.

mod bars;
mod baselines;
mod pairs;
mod servers;
mod table;
mod trial;

pub(crate) use self::bars::{bars, bars_header};
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

    #[test]
    fn every_bar_has_a_line_with_its_worst_figure_and_a_verdict() {
        let rows: Vec<_> = cases().unwrap().iter().filter_map(|case| judge(case, 0.02, 2)).collect();
        let noisy = judge(&cases().unwrap()[0], 0.05, 2);
        let rows: Vec<_> = rows.into_iter().chain(noisy).collect();
        let lines = bars(&rows, &[Pairs::judge(0.02, 20)]);
        assert_eq!(lines.len(), 14);
        assert!(lines.iter().all(|line| ["met", "within chance", "MISSED"].iter().any(|it| line.ends_with(it))));
        assert!(lines.iter().any(|line| line.contains("unstable") && line.contains("drift")), "{lines:?}");
        // Half of two intervals may miss the truth by chance, and windows never do.
        assert!(lines.iter().filter(|line| line.contains("windows")).all(|line| line.ends_with("met")), "{lines:?}");
    }

    #[test]
    fn it_meets_those_of_the_hardest_servers_in_much_noise() {
        let hard = ["D, no peak", "drift", "p99", "standstill", "warm-up"];
        for case in cases().unwrap().into_iter().filter(|case| hard.iter().any(|name| case.name.contains(name))) {
            let row = judge(&case, 0.05, 20).expect("every search ends");
            assert!(row.missed().is_empty(), "{}\n{}", header(), row.text());
        }
    }
}
