//! `result.json` and `tuned.toml`.

use std::path::Path;
use std::time::Duration;

use peristyle::Tuned;
use serde::{Deserialize, Serialize};

use super::explain::explain;
use super::limit::{Explanation, Limit};
use super::{Beside, Figures, Model, Outcome, Terms};
use crate::failure::{Failure, Result};
use crate::machine::cores;
use crate::plan::Plan;
use crate::search::{Alternative, Ceiling, Choice, Verdict};

/// The form of `result.json`; fields are added, never changed, under the same number.
const SCHEMA: u32 = 1;

/// Its name in the folder.
pub(crate) const FILE: &str = "result.json";

/// The content of `result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResultFile {
    pub(crate) schema: u32,
    pub(crate) target: String,
    pub(crate) workload: String,
    pub(crate) seed: u64,
    pub(crate) verdict: Verdict,
    pub(crate) stop_reason: String,
    /// What ends the rise of throughput.
    #[serde(default)]
    pub(crate) limit: Option<Limit>,
    /// Why the knee is where it is: the reason, what to do, and what else is worth knowing.
    pub(crate) why: Vec<String>,
    /// How many were measured.
    pub(crate) windows: usize,
    pub(crate) knee: Option<Figures>,
    pub(crate) peak: Option<Figures>,
    pub(crate) ceiling: Option<Ceiling>,
    pub(crate) cheaper: Vec<Alternative>,
    /// The Universal Scalability Law over threads, at the chosen point's other settings.
    #[serde(default)]
    pub(crate) model: Option<Model>,
    /// The chosen point beside the defaults.
    #[serde(default)]
    pub(crate) beside: Option<Beside>,
    /// Bytes of a row, keys and values.
    #[serde(default)]
    pub(crate) row_bytes: Option<f64>,
    /// What was asked for.
    #[serde(default)]
    pub(crate) settings: Terms,
    pub(crate) environment: Environment,
}

/// Where and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Environment {
    pub(crate) version: String,
    pub(crate) os: String,
    pub(crate) arch: String,
    pub(crate) cores: u32,
    /// Whether the target ran on the client's machine, in its process even.
    pub(crate) same_machine: bool,
    pub(crate) same_process: bool,
    pub(crate) budget_s: f64,
    pub(crate) spent_s: f64,
    /// When it ended, in UTC by RFC 3339.
    pub(crate) finished: String,
}

impl Environment {
    pub(crate) fn now(plan: &Plan, spent: Duration) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            os: std::env::consts::OS.into(),
            arch: std::env::consts::ARCH.into(),
            cores: cores(),
            same_machine: plan.target.is_on_this_machine(),
            same_process: plan.target.is_in_process(),
            budget_s: plan.budget.as_secs_f64(),
            spent_s: spent.as_secs_f64(),
            finished: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
        }
    }
}

impl ResultFile {
    /// The result of a run or sweep.
    pub(crate) fn of(plan: &Plan, outcome: &Outcome) -> Self {
        let figures = |choice: &Option<Choice>| {
            let choice = choice.as_ref()?;
            Figures::of(choice.point, &outcome.windows_at(&choice.trials), plan.apdex)
        };
        let answer = &outcome.answer;
        let chosen = answer.knee.as_ref().or(answer.peak.as_ref());
        let model = chosen.and_then(|choice| Model::of(&outcome.windows, choice.point));
        let explanation = Explanation::of(plan, outcome, model.as_ref());
        Self {
            schema: SCHEMA,
            target: plan.target.to_string(),
            workload: plan.workload.name.clone(),
            seed: plan.seed,
            verdict: answer.verdict,
            stop_reason: answer.stop_reason.clone(),
            limit: Some(explanation.limit),
            why: explain(plan, outcome, &explanation),
            windows: outcome.windows.len(),
            knee: figures(&answer.knee),
            peak: figures(&answer.peak),
            ceiling: answer.ceiling.clone(),
            cheaper: answer.cheaper.clone(),
            model,
            beside: outcome.beside.clone(),
            row_bytes: Some(plan.workload.rows.mean_bytes()),
            settings: Terms::of(plan),
            environment: Environment::now(plan, outcome.spent),
        }
    }

    /// Reads the result of a folder, of this version or an older one.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let fail = |error: String| {
            Failure::input(format!(
                "can't read {}: {error}; give the folder of a finished run or sweep",
                path.display()
            ))
        };
        let text = std::fs::read_to_string(&path).map_err(|error| fail(error.to_string()))?;
        let result: Self = serde_json::from_str(&text).map_err(|error| fail(error.to_string()))?;
        if result.schema > SCHEMA {
            return Err(fail(format!("its schema {} is newer than {SCHEMA}", result.schema)));
        }
        Ok(result)
    }

    /// The point to use: the knee, or the best there is.
    pub(crate) fn chosen(&self) -> Option<&Figures> {
        self.knee.as_ref().or(self.peak.as_ref())
    }

    /// What applications load; `None` without a point to recommend.
    pub(crate) fn tuned(&self) -> Option<Tuned> {
        let chosen = self.chosen()?;
        Some(Tuned {
            schema: Tuned::SCHEMA,
            target: self.target.clone(),
            workload: self.workload.clone(),
            threads: chosen.point.threads.into(),
            io_threads: chosen.point.io_threads.into(),
            pool: chosen.point.pool.into(),
            batch: chosen.point.batch.into(),
            rows_per_s: chosen.rows_per_s,
            ci95: chosen.ci95,
            created: self.environment.finished.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the first version wrote it.
    const OLD: &str = r#"{"schema":1,"target":"memory:","workload":"write-30b","seed":1,"verdict":"knee_found","stop_reason":"done",
        "why":["no dearer point gains 2 %"],"windows":40,"knee":{"threads":8,"io_threads":1,"pool":1,"batch":4,
        "rows_per_s":1000.0,"ci95":[990.0,1010.0],"p50_ms":1.0,"p95_ms":2.0,"p99_ms":3.0,"errors":0},"peak":null,"ceiling":null,
        "cheaper":[],"environment":{"version":"0.1.0","os":"linux","arch":"x86_64","cores":2,"same_machine":true,
        "same_process":true,"budget_s":120.0,"spent_s":100.0,"finished":"2026-11-30T12:00:00Z"}}"#;

    #[test]
    fn results_of_older_versions_are_read_and_newer_schemas_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), OLD).unwrap();
        let old = ResultFile::read(folder.path()).unwrap();
        assert_eq!((old.chosen().unwrap().point.threads, old.limit, old.model), (8, None, None));
        std::fs::write(folder.path().join(FILE), OLD.replace("\"schema\":1", "\"schema\":9")).unwrap();
        assert!(ResultFile::read(folder.path()).unwrap_err().to_string().contains("newer"));
    }
}
