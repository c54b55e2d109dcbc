//! The cases as tests with names.

use std::sync::Arc;

use libtest_mimic::{Failed, Trial};
use tokio::runtime::Handle;

use super::{Fixture, cases, random_histories};

/// Whether the environment variable `REQUIRE_BACKENDS`, a list with commas, has this backend: then its absence is a failure.
pub fn is_required(backend: &str) -> bool {
    let required = std::env::var("REQUIRE_BACKENDS").unwrap_or_default();
    required.split(',').any(|required| required.trim() == backend)
}

/// The contract suite over one backend.
#[derive(Debug)]
pub struct Suite {
    /// The backend's name, which starts the names of its tests.
    pub backend: &'static str,
    /// What is tested, or why it isn't there.
    pub fixture: Result<Fixture, String>,
    /// Runs the tests.
    pub runtime: Handle,
    /// How many random histories are run.
    pub histories: u32,
}

impl Suite {
    /// One test per case. A case whose capabilities are missing is ignored. If the backend isn't there, a single test says so:
    /// ignored, or failed where [required](is_required).
    pub fn trials(self) -> Vec<Trial> {
        let backend = self.backend;
        let fixture = match self.fixture {
            Ok(fixture) => Arc::new(fixture),
            Err(reason) => return vec![absent(backend, reason)],
        };
        let mut trials: Vec<Trial> = cases()
            .map(|case| {
                let able = fixture.client().require(case.needs).is_ok();
                let (fixture, runtime) = (Arc::clone(&fixture), self.runtime.clone());
                let run = move || {
                    runtime.block_on((case.run)(&fixture));
                    Ok(())
                };
                Trial::test(format!("{backend}::{}", case.name), run).with_ignored_flag(!able)
            })
            .collect();
        let (runtime, histories) = (self.runtime, self.histories);
        trials.push(Trial::test(format!("{backend}::random_histories_end_as_in_memory"), move || {
            random_histories(&runtime, &fixture, histories);
            Ok(())
        }));
        trials
    }
}

fn absent(backend: &str, reason: String) -> Trial {
    let required = is_required(backend);
    let fail = move || Err(Failed::from(reason));
    Trial::test(format!("{backend}::is_there"), fail).with_ignored_flag(!required)
}
