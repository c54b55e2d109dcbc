//! The target's URI: what kind of target it is, its pool, and its secrets.

use std::fmt;

use url::form_urlencoded;

use crate::failure::{Failure, Result};
use crate::space::Span;

/// The kinds of target that there are.
const SCHEMES: [&str; 5] = ["embedded", "memory", "cql", "hbase", "sim"];

/// A target's URI. It is shown without its secrets.
#[derive(Clone)]
pub(crate) struct TargetUri {
    text: String,
}

impl TargetUri {
    /// Checks the scheme; the rest is for the backend to check.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let scheme = text.split_once(':').map(|(scheme, _)| scheme);
        match scheme.filter(|scheme| SCHEMES.contains(scheme)) {
            Some(_) => Ok(Self { text: text.to_owned() }),
            None => {
                let what = match scheme {
                    Some(scheme) => format!("unknown scheme {scheme:?} in --target"),
                    None => format!("--target {text:?} has no scheme"),
                };
                Err(Failure::input(format!(
                    "{what}; use embedded:, embedded:/folder, memory:, cql://host:9042/keyspace, hbase://gateway:9090/namespace or sim://usl"
                )))
            }
        }
    }

    fn scheme(&self) -> &str {
        self.text.split_once(':').map_or("", |(scheme, _)| scheme)
    }

    /// The text of a simulated server's URI.
    pub(crate) fn simulated(&self) -> Option<&str> {
        (self.scheme() == "sim").then_some(self.text.as_str())
    }

    /// Whether the engine runs in this process.
    pub(crate) fn is_in_process(&self) -> bool {
        matches!(self.scheme(), "embedded" | "memory")
    }

    /// Whether the data goes with the process, so that tables and rows must be made in it.
    pub(crate) fn is_temporary(&self) -> bool {
        self.scheme() == "memory" || (self.scheme() == "embedded" && self.location().trim_start_matches('/').is_empty())
    }

    /// How many of HBase's gateways it names; `None` where connections carry many requests at once.
    pub(crate) fn gateways(&self) -> Option<usize> {
        let hosts = self.location().trim_start_matches('/').split('/').next().unwrap_or_default();
        (self.scheme() == "hbase").then(|| hosts.split(',').filter(|host| !host.is_empty()).count().max(1))
    }

    /// Whether a server would be on this machine.
    pub(crate) fn is_on_this_machine(&self) -> bool {
        let hosts = self.location().trim_start_matches('/').split('/').next().unwrap_or_default();
        let hosts = hosts.rsplit_once('@').map_or(hosts, |(_, hosts)| hosts);
        let local = |host: &str| ["127.", "localhost", "[::1]"].iter().any(|prefix| host.starts_with(prefix));
        self.is_in_process() || hosts.split(',').any(local)
    }

    /// Between scheme and parameters.
    fn location(&self) -> &str {
        let (before, _) = self.split();
        before.split_once(':').map_or("", |(_, location)| location)
    }

    fn split(&self) -> (&str, &str) {
        self.text.split_once('?').unwrap_or((&self.text, ""))
    }

    /// The pool that the URI asks for.
    pub(crate) fn pool(&self) -> Option<Result<Span>> {
        let (_, parameters) = self.split();
        let pool = form_urlencoded::parse(parameters.as_bytes()).find(|(name, _)| name == "pool")?.1;
        Some(pool.parse().map_err(|why| Failure::input(format!("pool={pool} in --target: {why}"))))
    }

    /// The URI to connect with, for a pool of this size.
    ///
    /// The client sends everything once and queues nothing, unless the URI says otherwise: its own limits would bend the
    /// curve, and its retries would hide the errors that end the range.
    pub(crate) fn with_pool(&self, pool: u32) -> String {
        let (before, parameters) = self.split();
        let mut settings: Vec<String> = parameters
            .split('&')
            .filter(|pair| !pair.is_empty() && (self.is_in_process() || !pair.starts_with("pool=")))
            .map(str::to_owned)
            .collect();
        for name in ["retry", "concurrency"] {
            if !settings.iter().any(|pair| pair.split('=').next() == Some(name)) {
                settings.push(format!("{name}=off"));
            }
        }
        if !self.is_in_process() {
            settings.push(format!("pool={pool}"));
        }
        format!("{before}?{}", settings.join("&"))
    }

    /// A text in which the URI's secrets are hidden, as they stand there and as they are meant.
    pub(crate) fn hide(&self, text: &str) -> String {
        self.secrets().iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "***"))
    }

    fn secrets(&self) -> Vec<String> {
        let (before, parameters) = self.split();
        let login = before.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@')).map(|(login, _)| login);
        let password = login.and_then(|login| login.split_once(':')).map(|(_, password)| password);
        let secret = |pair: &&str| {
            let name = pair.split_once('=').map_or("", |(name, _)| name).to_ascii_lowercase();
            ["password", "secret", "token", "passphrase"].iter().any(|word| name.contains(word))
        };
        let values = parameters.split('&').filter(secret).filter_map(|pair| Some(pair.split_once('=')?.1));
        let raw: Vec<&str> = password.into_iter().chain(values).filter(|secret| !secret.is_empty()).collect();
        let decoded = raw.iter().map(|secret| decode(secret));
        let mut secrets: Vec<String> = raw.iter().map(|secret| (*secret).to_owned()).chain(decoded).collect();
        // The longest first: one secret may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        secrets
    }
}

/// Undoes percent-encoding, in which a plus sign is itself.
fn decode(text: &str) -> String {
    let plain = text.replace('+', "%2B");
    form_urlencoded::parse(plain.as_bytes()).next().map(|(name, _)| name.into_owned()).unwrap_or_default()
}

impl fmt::Display for TargetUri {
    /// Only where secrets stand they are hidden: a password of `a` must not hide every `a` of the host.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, parameters) = self.split();
        match before.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
            Some((scheme, (login, hosts))) => {
                let user = login.split_once(':').map_or(login, |(user, _)| user);
                let password = if login.contains(':') { ":***" } else { "" };
                write!(f, "{scheme}://{user}{password}@{hosts}")?;
            }
            None => f.write_str(before)?,
        }
        for (place, pair) in parameters.split('&').filter(|pair| !pair.is_empty()).enumerate() {
            f.write_str(if place == 0 { "?" } else { "&" })?;
            match pair.split_once('=') {
                Some((name, value)) if self.secrets().iter().any(|secret| secret == value) => write!(f, "{name}=***")?,
                _ => f.write_str(pair)?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for TargetUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> TargetUri {
        TargetUri::parse(text).unwrap()
    }

    #[test]
    fn secrets_are_never_shown() {
        let login = uri("cql://me:a@abc:9042/ks?tls_key_password=b%2Fc&pool=3");
        assert_eq!(login.to_string(), "cql://me:***@abc:9042/ks?tls_key_password=***&pool=3");
        assert_eq!(uri("cql://me:s3cret@h/ks").hide("login me/s3cret refused"), "login me/*** refused");
        assert!(!login.hide("key b/c is wrong").contains("b/c"));
        assert_eq!(format!("{login:?}"), login.to_string());
    }

    #[test]
    fn the_pool_of_a_point_replaces_that_of_the_uri() {
        assert_eq!(uri("cql://h/ks?pool=3&x=1").with_pool(2), "cql://h/ks?x=1&retry=off&concurrency=off&pool=2");
        assert_eq!(uri("cql://h/ks?retry=on&concurrency=9").with_pool(2), "cql://h/ks?retry=on&concurrency=9&pool=2");
        assert_eq!(uri("embedded:").with_pool(2), "embedded:?retry=off&concurrency=off");
        assert!(uri("cql://h/ks?pool=3").pool().unwrap().unwrap().is_fixed());
        assert!(uri("cql://h/ks?pool=x").pool().unwrap().is_err());
    }

    #[test]
    fn an_unknown_scheme_names_those_there_are() {
        for text in ["foo://h", "h:9042", "", "/tmp/x"] {
            let message = TargetUri::parse(text).unwrap_err().to_string();
            assert!(message.contains("cql://host:9042/keyspace"), "{message}");
        }
    }

    #[test]
    fn the_kind_of_target_is_known_from_its_uri() {
        assert!(uri("embedded:").is_temporary() && uri("memory:").is_temporary());
        assert!(!uri("embedded:/tmp/x").is_temporary() && uri("embedded:/tmp/x").is_in_process());
        assert!(uri("embedded:?durability=relaxed").is_temporary());
        assert!(
            uri("cql://127.0.0.2:9042/ks").is_on_this_machine() && uri("cql://u:p@localhost/ks").is_on_this_machine()
        );
        assert!(!uri("cql://db.example/ks").is_on_this_machine());
    }
}
