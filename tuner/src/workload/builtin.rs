//! The workloads that come with the program.

/// A workload that comes with the program.
#[derive(Debug)]
pub(crate) struct Builtin {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its file, to read and to copy.
    pub(crate) text: &'static str,
}

impl Builtin {
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name
    }
}

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        &[$(Builtin { name: $name, text: include_str!(concat!("builtin/", $name, ".toml")) }),*]
    };
}

/// Every built-in workload; the first is the default.
pub(crate) const BUILTIN: &[Builtin] = builtin![
    "write-30b",
    "write-150b",
    "point-read",
    "batch-read",
    "property-insert",
    "property-range",
    "title-write",
    "title-read",
];

/// The message for a name that isn't there.
pub(super) fn unknown(name: &str) -> String {
    let likeness = |builtin: &&Builtin| strsim::jaro_winkler(builtin.name, name);
    let nearest = BUILTIN.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let hint =
        nearest.filter(|nearest| likeness(nearest) > 0.7).map(|nearest| format!("; did you mean {}?", nearest.name));
    let names: Vec<&str> = BUILTIN.iter().map(|builtin| builtin.name).collect();
    format!(
        "there is no workload {name:?}{} The built-in ones are {}; a file of your own ends in .toml",
        hint.unwrap_or_else(|| ".".into()),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_gets_the_nearest_and_the_list() {
        let message = unknown("write-30");
        assert!(message.contains("did you mean write-30b?") && message.contains("title-read"), "{message}");
        assert!(!unknown("zzz").contains("did you mean"));
    }
}
