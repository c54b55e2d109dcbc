//! The client's own settings: in a URI, in the environment, in a file.

use std::num::{NonZeroU32, NonZeroUsize};
use std::str::FromStr;
use std::time::Duration;

use peristyle_core::client::ClientBuilder;
use peristyle_core::layers::{Autopilot, CircuitPolicy, RetryPolicy};
use peristyle_core::setting::choice;
use peristyle_core::{Error, Grouping, Result};
use url::form_urlencoded::{Serializer, parse};

use crate::Tuned;

/// What the names of environment variables begin with.
const ENVIRONMENT: &str = "PERISTYLE_CLIENT_";

/// The settings that the client takes for itself; the backend gets the others.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    deadline: Option<Duration>,
    attempt_timeout: Option<Duration>,
    rate_limit: Option<NonZeroU32>,
    batch_rows: Option<NonZeroUsize>,
    batch_concurrency: Option<NonZeroUsize>,
    batching: Option<Grouping>,
    concurrency: Option<Limit>,
    retry: Option<bool>,
    retry_attempts: Option<NonZeroU32>,
    hedge: Option<Duration>,
    circuit: Option<bool>,
    observe: Option<bool>,
    route: Option<bool>,
    tuned: Option<Tuned>,
}

impl Settings {
    /// The settings of a URI, of the process's environment, and of the file that either names, and the URI that is left for
    /// the backend.
    pub(crate) fn gather(uri: &str) -> Result<(Self, String)> {
        // Names and values that aren't Unicode are nobody's settings here.
        let environment =
            std::env::vars_os().filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
        Self::of(uri, environment)
    }

    /// What the URI says goes before what the environment says, and that before the file.
    fn of(uri: &str, environment: impl Iterator<Item = (String, String)>) -> Result<(Self, String)> {
        let (base, query) = uri.split_once('?').unwrap_or((uri, ""));
        let environment =
            environment.filter_map(|(name, value)| Some((name.strip_prefix(ENVIRONMENT)?.to_ascii_lowercase(), value)));
        let uri: Vec<(String, String)> = parse(query.as_bytes()).into_owned().collect();
        let near: Vec<(String, String)> = environment.chain(uri).collect();
        let file = near.iter().rev().find(|(name, _)| name == "config").map(|(_, path)| read_file(path)).transpose()?;
        let mut settings = Self::default();
        let mut rest: Vec<(String, String)> = Vec::new();
        for (name, value) in file.into_iter().flatten().chain(near) {
            if name != "config" && !settings.take(&name, &value)? {
                rest.retain(|(earlier, _)| *earlier != name);
                rest.push((name, value));
            }
        }
        if rest.is_empty() {
            return Ok((settings, base.to_owned()));
        }
        let rest = Serializer::new(String::new()).extend_pairs(rest).finish();
        Ok((settings, format!("{base}?{rest}")))
    }

    /// Takes a setting if it is the client's.
    fn take(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "deadline" => self.deadline = Some(duration(name, value)?),
            "attempt_timeout" => self.attempt_timeout = Some(duration(name, value)?),
            "rate_limit" => self.rate_limit = Some(count(name, value)?),
            "batch_rows" => self.batch_rows = Some(count(name, value)?),
            "batch_concurrency" => self.batch_concurrency = Some(count(name, value)?),
            "batching" => self.batching = Some(choice(name, value, &Grouping::NAMES)?),
            "concurrency" if value == "off" => self.concurrency = Some(Limit::Off),
            "concurrency" if value == "auto" => self.concurrency = Some(Limit::Auto),
            "concurrency" => self.concurrency = Some(Limit::Requests(count(name, value)?)),
            "retry" => self.retry = Some(switch(name, value)?),
            "retry_attempts" => self.retry_attempts = Some(count(name, value)?),
            "hedge" => self.hedge = Some(duration(name, value)?),
            "circuit" => self.circuit = Some(switch(name, value)?),
            "observe" => self.observe = Some(switch(name, value)?),
            "route" => self.route = Some(switch(name, value)?),
            "tuned" => self.tuned = Some(Tuned::load(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Adds the tuned pool to what is left for a backend that pools connections, unless the URI sets one.
    pub(crate) fn with_pool(&self, uri: String) -> String {
        let Some(tuned) = &self.tuned else { return uri };
        let query = uri.split_once('?').map_or("", |(_, query)| query);
        if parse(query.as_bytes()).any(|(name, _)| name == "pool") {
            return uri;
        }
        let separator = if query.is_empty() { '?' } else { '&' };
        format!("{uri}{separator}pool={}", tuned.pool)
    }

    /// Applies the settings; what the URI says goes before what the tuned file says.
    pub(crate) fn apply(&self, mut builder: ClientBuilder) -> ClientBuilder {
        let tuned = self.tuned.as_ref();
        if let Some(deadline) = self.deadline {
            builder = builder.deadline(deadline);
        }
        if let Some(rows) = self.batch_rows.or_else(|| tuned.and_then(|tuned| clamp(tuned.batch))) {
            builder = builder.batch_rows(rows);
        }
        if let Some(requests) = self.batch_concurrency.or_else(|| tuned.and_then(|tuned| clamp(tuned.threads))) {
            builder = builder.batch_concurrency(requests);
        }
        if let Some(grouping) = self.batching {
            builder = builder.batch(grouping);
        }
        builder = match self.concurrency {
            Some(Limit::Off) => builder.without_concurrency(),
            Some(Limit::Requests(requests)) => builder.concurrency(requests),
            Some(Limit::Auto) => builder.autopilot(self.autopilot()),
            None => builder,
        };
        self.protect(builder)
    }

    /// Applies what concerns failures and load.
    fn protect(&self, mut builder: ClientBuilder) -> ClientBuilder {
        if let Some(limit) = self.attempt_timeout {
            builder = builder.attempt_timeout(limit);
        }
        if let Some(rows) = self.rate_limit {
            builder = builder.rate_limit(rows);
        }
        if let Some(delay) = self.hedge {
            builder = builder.hedge(delay);
        }
        if self.circuit == Some(true) {
            builder = builder.circuit(CircuitPolicy::default());
        }
        if self.observe == Some(false) {
            builder = builder.without_observe();
        }
        if self.route == Some(false) {
            builder = builder.without_route();
        }
        match (self.retry, self.retry_attempts) {
            (Some(false), _) => builder.without_retry(),
            (_, Some(attempts)) => builder.retry(RetryPolicy::default().attempts(attempts.get())),
            _ => builder,
        }
    }

    /// The autopilot, from where the tuned file says that the knee was.
    fn autopilot(&self) -> Autopilot {
        let threads = self.tuned.as_ref().and_then(|tuned| clamp(tuned.threads));
        threads.map_or_else(Autopilot::default, |threads| Autopilot::default().start(threads.get()))
    }
}

/// How many requests may be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Off,
    Requests(NonZeroUsize),
    Auto,
}

fn switch(name: &str, value: &str) -> Result<bool> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(Error::invalid(format!("{name}={value}: say on or off"))),
    }
}

/// The settings in a file, as a URI would have them.
fn read_file(path: &str) -> Result<Vec<(String, String)>> {
    let fail = |message: String| Error::invalid(format!("config={path}: {message}"));
    let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    let table: toml::Table = toml::from_str(&text).map_err(|error| fail(one_line(&error.to_string())))?;
    let setting = |(name, value): (String, toml::Value)| match value {
        toml::Value::String(text) => Ok((name, text)),
        toml::Value::Integer(number) => Ok((name, number.to_string())),
        toml::Value::Boolean(on) => Ok((name, if on { "on" } else { "off" }.to_owned())),
        other => {
            Err(fail(format!("{name} is {}; settings are texts, whole numbers, true and false", other.type_str())))
        }
    };
    table.into_iter().map(setting).collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn clamp(count: u64) -> Option<NonZeroUsize> {
    usize::try_from(count).ok().and_then(NonZeroUsize::new)
}

fn duration(name: &str, value: &str) -> Result<Duration> {
    let parsed = humantime::parse_duration(value).ok().filter(|duration| !duration.is_zero());
    parsed.ok_or_else(|| Error::invalid(format!("{name}={value}: give a duration above 0, such as 500ms or 10s")))
}

fn count<N: FromStr>(name: &str, value: &str) -> Result<N> {
    value.parse().map_err(|_| Error::invalid(format!("{name}={value}: give a whole number above 0")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(uri: &str) -> Result<(Settings, String)> {
        Settings::of(uri, std::iter::empty())
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn the_uri_goes_before_the_environment_and_that_before_the_file() {
        let file = file("deadline = \"1s\"\nbatch_rows = 7\nretry = false\npool = 3\ncompression = \"lz4\"\n");
        let environment = [("PERISTYLE_CLIENT_DEADLINE", "2s"), ("PERISTYLE_CLIENT_POOL", "4"), ("PERISTYLE_CQL", "x")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let uri = format!("cql://h/ks?config={}&deadline=3s", file.path().display());
        let (settings, rest) = Settings::of(&uri, environment.into_iter()).unwrap();
        assert_eq!(settings.deadline, Some(Duration::from_secs(3)));
        assert_eq!((settings.batch_rows, settings.retry), (NonZeroUsize::new(7), Some(false)));
        assert_eq!(rest, "cql://h/ks?compression=lz4&pool=4");
    }

    #[test]
    fn every_setting_of_a_layer_is_taken() {
        let uri =
            "memory:?attempt_timeout=1s&rate_limit=100&hedge=5ms&circuit=on&observe=off&route=off&retry_attempts=3";
        let (settings, rest) = split(uri).unwrap();
        assert_eq!(rest, "memory:");
        assert_eq!((settings.rate_limit, settings.retry_attempts), (NonZeroU32::new(100), NonZeroU32::new(3)));
        assert_eq!((settings.circuit, settings.observe, settings.route), (Some(true), Some(false), Some(false)));
        assert_eq!(
            (settings.attempt_timeout, settings.hedge),
            (Some(Duration::from_secs(1)), Some(Duration::from_millis(5)))
        );
    }

    #[test]
    fn a_file_that_is_none_is_named() {
        for (text, expected) in
            [("deadline", "config="), ("[pool]\nx = 1", "pool is table"), ("deadline = 1.5", "float")]
        {
            let file = file(text);
            let message = split(&format!("memory:?config={}", file.path().display())).unwrap_err().to_string();
            assert!(message.contains(expected) && !message.contains('\n'), "{message}");
        }
    }

    #[test]
    fn the_backend_gets_what_is_not_the_clients() {
        let uri = "cql://h1,h2/ks?pool=4&deadline=5s&consistency=local_quorum&batch_rows=10";
        let (settings, rest) = split(uri).unwrap();
        assert_eq!(rest, "cql://h1,h2/ks?pool=4&consistency=local_quorum");
        assert_eq!(settings.deadline, Some(Duration::from_secs(5)));
        assert_eq!(settings.batch_rows, NonZeroUsize::new(10));
        assert_eq!(split("embedded:/tmp/x?deadline=1s").unwrap().1, "embedded:/tmp/x");
        let (settings, rest) = split("memory:?concurrency=off&retry=off").unwrap();
        assert_eq!((settings.concurrency, settings.retry, &*rest), (Some(Limit::Off), Some(false), "memory:"));
        assert_eq!(split("memory:?batching=partition").unwrap().0.batching, Some(Grouping::Partition));
        assert_eq!(split("memory:?concurrency=auto").unwrap().0.concurrency, Some(Limit::Auto));
        assert_eq!(split("memory:").unwrap().1, "memory:");
    }

    #[test]
    fn wrong_settings_are_named() {
        for (uri, text) in [
            ("memory:?deadline=soon", "deadline=soon"),
            ("memory:?deadline=0s", "above 0"),
            ("memory:?batch_rows=0", "batch_rows=0"),
            ("memory:?concurrency=none", "concurrency=none"),
            ("memory:?batching=yes", "batching=yes: use one of off, partition, owner"),
            ("memory:?retry=3", "say on or off"),
            ("memory:?route=owner", "say on or off"),
            ("memory:?rate_limit=0", "rate_limit=0"),
            ("memory:?hedge=fast", "hedge=fast"),
            ("memory:?retry_attempts=-1", "retry_attempts=-1"),
            ("memory:?config=/no/such/file", "config=/no/such/file"),
            ("memory:?tuned=/no/such/file", "/no/such/file"),
        ] {
            let message = split(uri).unwrap_err().to_string();
            assert!(message.contains(text), "{message}");
        }
    }
}
