//! The run of all steps and its summary.

use std::time::{Duration, Instant};

use clap::ValueEnum;

use crate::servers::Servers;
use crate::step::{Step, seconds};

/// What came of a step.
#[derive(Debug)]
struct Outcome {
    step: Step,
    result: Result<(), String>,
    time: Duration,
}

/// Runs the chosen steps, all of them if none is named. A failure does not keep the later ones
/// from running, and makes the whole fail.
pub(crate) fn run(only: &[Step]) -> Result<(), String> {
    let mut servers = Servers::default();
    let mut outcomes = Vec::new();
    for step in chosen(only) {
        println!("\n=== {} ===", step.name());
        let begun = Instant::now();
        let result = step.run(&mut servers);
        if let Err(reason) = &result {
            println!("{} failed: {reason}", step.name());
        }
        outcomes.push(Outcome { step, result, time: begun.elapsed() });
    }
    drop(servers);
    println!("\n=== summary ===\n{}", table(&outcomes));
    verdict(&outcomes)
}

fn chosen(only: &[Step]) -> Vec<Step> {
    let wanted = |step: &Step| only.is_empty() || only.contains(step);
    let for_others = |step: &Step| only.iter().any(|other| other.needs(*step));
    let all = Step::value_variants().iter();
    all.filter(|step| wanted(step) || for_others(step)).copied().collect()
}

fn table(outcomes: &[Outcome]) -> String {
    let mut lines = vec![format!("{:<10} {:<6} {:>9}", "step", "result", "time")];
    for Outcome { step, result, time } in outcomes {
        let (word, reason) = match result {
            Ok(()) => ("ok", ""),
            Err(reason) => ("FAILED", reason.as_str()),
        };
        let line = format!("{:<10} {word:<6} {:>9}  {reason}", step.name(), seconds(*time));
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n")
}

fn verdict(outcomes: &[Outcome]) -> Result<(), String> {
    let failed: Vec<String> =
        outcomes.iter().filter(|outcome| outcome.result.is_err()).map(|outcome| outcome.step.name()).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_steps_run_in_order_when_none_is_named() {
        assert_eq!(chosen(&[]), Step::value_variants());
    }

    #[test]
    fn a_server_comes_with_the_steps_that_need_it() {
        assert_eq!(chosen(&[Step::Docs, Step::Fmt]), [Step::Fmt, Step::Docs]);
        assert_eq!(chosen(&[Step::Tests]), [Step::Cassandra, Step::Hbase, Step::Tests]);
        assert_eq!(chosen(&[Step::Examples]), [Step::Cassandra, Step::Examples]);
    }

    #[test]
    fn the_summary_names_what_failed_and_why() {
        let outcome = |step, result| Outcome { step, result, time: Duration::from_millis(1250) };
        let outcomes = [outcome(Step::Fmt, Ok(())), outcome(Step::Tests, Err("2 tests failed".into()))];
        let expected = "step       result      time\n\
                        fmt        ok         1.2 s\n\
                        tests      FAILED     1.2 s  2 tests failed";
        assert_eq!(table(&outcomes), expected);
        assert_eq!(verdict(&outcomes).unwrap_err(), "failed: tests");
        assert_eq!(verdict(&outcomes[..1]), Ok(()));
    }
}
