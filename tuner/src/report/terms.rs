//! What was asked for: enough to see whether two runs can be compared, or one be resumed.

use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::space::Axis;

/// Its name in the folder.
pub(crate) const FILE: &str = "settings.json";

/// The settings of a run or sweep.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Terms {
    pub(crate) target: String,
    pub(crate) workload: String,
    pub(crate) seed: u64,
    pub(crate) threads: String,
    pub(crate) io_threads: String,
    pub(crate) pool: String,
    pub(crate) batch: String,
    pub(crate) objectives: Vec<String>,
    /// Requests per second in open loop; in a ramp those of its steps.
    pub(crate) rates: Vec<f64>,
    /// T of the APDEX, in milliseconds.
    pub(crate) apdex_ms: Option<f64>,
}

impl Terms {
    /// The settings of a plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        let [threads, io_threads, pool, batch] = Axis::ALL.map(|axis| plan.space.on(axis).to_string());
        Self {
            target: plan.target.to_string(),
            workload: plan.workload.name.clone(),
            seed: plan.seed,
            threads,
            io_threads,
            pool,
            batch,
            objectives: plan.objectives.iter().map(ToString::to_string).collect(),
            rates: plan.rates.clone(),
            apdex_ms: plan.apdex.map(|t| t.as_secs_f64() * 1e3),
        }
    }

    /// The first setting in which two differ, with both values.
    pub(crate) fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let rates = |terms: &Self| format!("{:?}", terms.rates);
        let apdex = |terms: &Self| format!("{:?}", terms.apdex_ms);
        let pairs = [
            ("--target", self.target.clone(), other.target.clone()),
            ("--workload", self.workload.clone(), other.workload.clone()),
            ("--seed", self.seed.to_string(), other.seed.to_string()),
            ("--threads", self.threads.clone(), other.threads.clone()),
            ("--io-threads", self.io_threads.clone(), other.io_threads.clone()),
            ("--pool", self.pool.clone(), other.pool.clone()),
            ("--batch", self.batch.clone(), other.batch.clone()),
            ("--objective", self.objectives.join(" "), other.objectives.join(" ")),
            ("--rate", rates(self), rates(other)),
            ("--apdex", apdex(self), apdex(other)),
        ];
        pairs.into_iter().find(|(_, mine, its)| mine != its)
    }
}
