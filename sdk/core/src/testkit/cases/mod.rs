//! The cases of the contract.

mod bulk;
mod conditional;
mod counter;
mod order;
mod point;
mod query;
mod refusal;
mod salt;
mod scan;
mod schema;
mod time;

use futures::future::BoxFuture;

use super::Fixture;
use crate::capability::Capability;

/// One case of the contract.
#[derive(Clone, Copy)]
pub struct Case {
    /// What it shows, as a sentence with underscores.
    pub name: &'static str,
    /// What the backend must be able to do for it to make sense.
    pub needs: &'static [Capability],
    /// Runs it; panics if the contract is broken.
    pub run: for<'a> fn(&'a Fixture) -> BoxFuture<'a, ()>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("name", &self.name).field("needs", &self.needs).finish_non_exhaustive()
    }
}

/// Lists case functions, with what they need.
macro_rules! cases {
    ($($name:ident $(: $($need:ident),+)?;)*) => {
        pub(super) const CASES: &[$crate::testkit::Case] = &[$($crate::testkit::Case {
            name: stringify!($name),
            needs: &[$($($crate::Capability::$need),+)?],
            run: |fixture| Box::pin($name(fixture)),
        }),*];
    };
}
use cases;

/// Every case.
pub fn all() -> impl Iterator<Item = Case> {
    let groups = [
        point::CASES,
        order::CASES,
        bulk::CASES,
        query::CASES,
        scan::CASES,
        time::CASES,
        conditional::CASES,
        counter::CASES,
        schema::CASES,
        refusal::CASES,
        salt::CASES,
    ];
    groups.into_iter().flatten().copied()
}
