//! Where requests go: endpoints, what is kept for each of them, and which one a request gets.

mod router;
mod table;

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{LazyLock, Mutex, PoisonError};

pub use self::router::{Health, Router};
pub use self::table::PerEndpoint;

/// What a request is sent to, and what fails or is slow as one: a node of a CQL cluster, a gateway of HBase.
///
/// It is a number for a name: of four bytes, to be copied and compared at no cost, and the same for all clients of the process. Names
/// are kept as long as the process runs, some hundred bytes for each.
///
/// ```
/// use peristyle_core::Endpoint;
///
/// let node = Endpoint::named("10.0.0.1:9042");
/// assert_eq!((node, node.name()), (Endpoint::named("10.0.0.1:9042"), "10.0.0.1:9042"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Endpoint(NonZeroU32);

/// The names of all endpoints.
static NAMES: PerEndpoint<String> = PerEndpoint::new();

impl Endpoint {
    /// The endpoint of this name, such as an address with its port. Takes a lock: to be kept, not asked for with each request.
    /// Names beyond some 65 000 stand for one endpoint.
    pub fn named(name: &str) -> Self {
        static KNOWN: LazyLock<Mutex<HashMap<String, Endpoint>>> = LazyLock::new(Mutex::default);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(name) {
            return *found;
        }
        let number = u32::try_from(known.len().min(table::CAPACITY - 1)).unwrap_or_default();
        let new = Self(NonZeroU32::MIN.saturating_add(number));
        NAMES.get_or_make(new, || name.to_owned());
        known.insert(name.to_owned(), new);
        new
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES.get(self).map_or("", String::as_str)
    }

    /// Its number: from 0 on, without gaps.
    fn index(self) -> usize {
        usize::try_from(self.0.get() - 1).unwrap_or_default()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.name())
    }
}

/// Endpoints that may do one request, best first: at most eight, in place.
#[derive(Debug, Clone, Copy, Default)]
pub struct Endpoints {
    all: [Option<Endpoint>; 8],
    equals: usize,
}

impl Endpoints {
    /// These, best first, of which the first `equals` are as good as each other. What is beyond eight is left out.
    pub fn new(best_first: impl IntoIterator<Item = Endpoint>, equals: usize) -> Self {
        let mut all = [None; 8];
        all.iter_mut().zip(best_first).for_each(|(place, endpoint)| *place = Some(endpoint));
        Self { all, equals }
    }

    /// None is known.
    pub fn unknown() -> Self {
        Self::default()
    }

    /// All of them, best first.
    pub fn iter(&self) -> impl Iterator<Item = Endpoint> + '_ {
        self.all.iter().map_while(|endpoint| *endpoint)
    }

    /// All of them, of which those that are as good as the first begin at another one: the `turn`th.
    fn turned(&self, turn: usize) -> impl Iterator<Item = Endpoint> + '_ {
        let equals = self.equals.min(self.iter().count());
        let first = if equals > 1 { turn % equals } else { 0 };
        let order = (first..equals).chain(0..first).chain(equals..self.all.len());
        order.map_while(|place| self.all.get(place).copied().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number() {
        let [one, two] = ["of mod 1", "of mod 2"].map(Endpoint::named);
        assert!(one == Endpoint::named("of mod 1") && one != two);
        assert_eq!((one.name(), two.to_string()), ("of mod 1", "of mod 2".to_owned()));
        // It is moved with every request from layer to layer, in room that there was.
        assert_eq!(size_of::<Option<Endpoint>>(), 4);
        assert!(size_of::<crate::request::RequestOptions>() <= 56);
    }

    #[test]
    fn equals_take_turns_and_the_others_stay_behind_them() {
        let named = |names: &[&str]| names.iter().map(|name| Endpoint::named(name)).collect::<Vec<_>>();
        let all = Endpoints::new(named(&["a", "b", "c", "d"]), 3);
        let turned = |turn| all.turned(turn).collect::<Vec<_>>();
        assert_eq!(turned(0), named(&["a", "b", "c", "d"]));
        assert_eq!(turned(4), named(&["b", "c", "a", "d"]));
        assert_eq!(Endpoints::new(named(&["a"]), 5).turned(3).collect::<Vec<_>>(), named(&["a"]));
        assert_eq!(Endpoints::unknown().turned(1).count(), 0);
        let many: Vec<_> = (0..20).map(|number| Endpoint::named(&number.to_string())).collect();
        assert!(Endpoints::new(many.clone(), 0).iter().eq(many.into_iter().take(8)));
    }
}
