//! The client's own settings in a URI.

use std::num::NonZeroUsize;
use std::time::Duration;

use peristyle_core::client::ClientBuilder;
use peristyle_core::layers::Autopilot;
use peristyle_core::setting::choice;
use peristyle_core::{Error, Grouping, Result};
use url::form_urlencoded::{Serializer, parse};

use crate::Tuned;

/// The settings that the client takes out of a URI; the backend gets the others.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    deadline: Option<Duration>,
    batch_rows: Option<NonZeroUsize>,
    batch_concurrency: Option<NonZeroUsize>,
    batching: Option<Grouping>,
    concurrency: Option<Limit>,
    retry: Option<bool>,
    tuned: Option<Tuned>,
}

impl Settings {
    /// Splits a URI into the client's settings and what is left for the backend.
    pub(crate) fn split(uri: &str) -> Result<(Self, String)> {
        let Some((base, query)) = uri.split_once('?') else { return Ok((Self::default(), uri.to_owned())) };
        let mut settings = Self::default();
        let mut rest = Serializer::new(String::new());
        let mut left = false;
        for (name, value) in parse(query.as_bytes()) {
            if !settings.take(&name, &value)? {
                rest.append_pair(&name, &value);
                left = true;
            }
        }
        let base = base.to_owned();
        Ok((settings, if left { format!("{base}?{}", rest.finish()) } else { base }))
    }

    /// Takes a setting if it is the client's.
    fn take(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "deadline" => self.deadline = Some(duration(name, value)?),
            "batch_rows" => self.batch_rows = Some(count(name, value)?),
            "batch_concurrency" => self.batch_concurrency = Some(count(name, value)?),
            "batching" => self.batching = Some(choice(name, value, &Grouping::NAMES)?),
            "concurrency" if value == "off" => self.concurrency = Some(Limit::Off),
            "concurrency" if value == "auto" => self.concurrency = Some(Limit::Auto),
            "concurrency" => self.concurrency = Some(Limit::Requests(count(name, value)?)),
            "retry" => self.retry = Some(switch(name, value)?),
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
        if self.retry == Some(false) { builder.without_retry() } else { builder }
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

fn clamp(count: u64) -> Option<NonZeroUsize> {
    usize::try_from(count).ok().and_then(NonZeroUsize::new)
}

fn duration(name: &str, value: &str) -> Result<Duration> {
    let parsed = humantime::parse_duration(value).ok().filter(|duration| !duration.is_zero());
    parsed.ok_or_else(|| Error::invalid(format!("{name}={value}: give a duration above 0, such as 500ms or 10s")))
}

fn count(name: &str, value: &str) -> Result<NonZeroUsize> {
    value.parse().map_err(|_| Error::invalid(format!("{name}={value}: give a whole number above 0")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backend_gets_what_is_not_the_clients() {
        let uri = "cql://h1,h2/ks?pool=4&deadline=5s&consistency=local_quorum&batch_rows=10";
        let (settings, rest) = Settings::split(uri).unwrap();
        assert_eq!(rest, "cql://h1,h2/ks?pool=4&consistency=local_quorum");
        assert_eq!(settings.deadline, Some(Duration::from_secs(5)));
        assert_eq!(settings.batch_rows, NonZeroUsize::new(10));
        assert_eq!(Settings::split("embedded:/tmp/x?deadline=1s").unwrap().1, "embedded:/tmp/x");
        let (settings, rest) = Settings::split("memory:?concurrency=off&retry=off").unwrap();
        assert_eq!((settings.concurrency, settings.retry, &*rest), (Some(Limit::Off), Some(false), "memory:"));
        assert_eq!(Settings::split("memory:?batching=partition").unwrap().0.batching, Some(Grouping::Partition));
        assert_eq!(Settings::split("memory:?concurrency=auto").unwrap().0.concurrency, Some(Limit::Auto));
        assert_eq!(Settings::split("memory:").unwrap().1, "memory:");
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
            ("memory:?tuned=/no/such/file", "/no/such/file"),
        ] {
            let message = Settings::split(uri).unwrap_err().to_string();
            assert!(message.contains(text), "{message}");
        }
    }
}
