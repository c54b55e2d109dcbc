//! Where the engine keeps its data and how.

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use peristyle_core::clock::Clock;
use peristyle_core::{Error, Result};
use url::form_urlencoded;

const MIB: u64 = 1 << 20;

/// What a write survives once it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Durability {
    /// The end of the process and a power loss: the journal is on the disk first. Concurrent writers share one flush.
    #[default]
    Durable,
    /// The end of the process, `kill -9` included, but not a power loss: the operating system has the journal.
    Buffered,
    /// Neither: the last few KiB may still be in the process. A clean close loses nothing.
    Relaxed,
}

impl Durability {
    /// Every mode, the safest first.
    pub const ALL: [Self; 3] = [Self::Durable, Self::Buffered, Self::Relaxed];

    /// The name in URIs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Buffered => "buffered",
            Self::Relaxed => "relaxed",
        }
    }
}

/// How to open the engine. The default is a temporary folder, durable, with the sizes below.
///
/// ```
/// use peristyle_embedded::{Durability, EmbeddedConfig};
///
/// let config = EmbeddedConfig::from_uri("embedded:/var/lib/iot?durability=buffered&cache=256MiB")?;
/// assert_eq!(config.durability, Durability::Buffered);
/// assert_eq!(config.cache_bytes, 256 << 20);
/// # Ok::<(), peristyle_core::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EmbeddedConfig {
    /// The folder, made if it isn't there; `None` is a temporary one that is removed when the engine closes.
    pub path: Option<PathBuf>,
    /// What an acknowledged write survives. Default: [`Durability::Durable`].
    pub durability: Durability,
    /// The cache for blocks read from disk, in bytes. Default: 64 MiB.
    pub cache_bytes: u64,
    /// How much a table holds in memory before it is written out, in bytes; at least 1 MiB. A write that is synced waits for
    /// other data on its way to the disk, so more makes longer pauses. Default: 8 MiB.
    pub write_buffer_bytes: u64,
    /// How much the journals take on disk before old data is written out, in bytes; at least 64 MiB, the size of one
    /// journal. Default: 512 MiB.
    pub journal_bytes: u64,
    /// How long a delete is remembered, counted from its write time, so that an older write which arrives late stays hidden.
    /// Default: 1 hour.
    pub tombstone_grace: Duration,
    /// What tells the time, for times to live and for the write times that the engine assigns. Default: the system's clock.
    pub clock: Clock,
}

impl Default for EmbeddedConfig {
    fn default() -> Self {
        Self {
            path: None,
            durability: Durability::default(),
            cache_bytes: 64 * MIB,
            write_buffer_bytes: 8 * MIB,
            journal_bytes: 512 * MIB,
            tombstone_grace: Duration::from_secs(3600),
            clock: Clock::system(),
        }
    }
}

impl EmbeddedConfig {
    /// In a temporary folder, removed when the engine closes.
    pub fn temporary() -> Self {
        Self::default()
    }

    /// In this folder, made if it isn't there.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: Some(path.into()), ..Self::default() }
    }

    /// With this durability.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// With this clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// With deletes remembered for this long.
    #[must_use]
    pub fn tombstone_grace(mut self, grace: Duration) -> Self {
        self.tombstone_grace = grace;
        self
    }

    /// With a block cache of this size.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// With a write buffer of this size for each table.
    #[must_use]
    pub fn write_buffer_bytes(mut self, bytes: u64) -> Self {
        self.write_buffer_bytes = bytes;
        self
    }

    /// Reads `embedded:PATH?NAME=VALUE&…`; without a path the folder is temporary.
    ///
    /// The parameters are `durability` (`durable`, `buffered`, `relaxed`), `cache`, `write_buffer`, `journal` (sizes such as
    /// `64MiB`, `512KiB`, `1GiB` or a number of bytes) and `tombstone_grace` (a duration such as `1h`).
    ///
    /// # Errors
    /// [`InvalidArgument`](peristyle_core::ErrorKind::InvalidArgument) that names the wrong part and lists what is known.
    pub fn from_uri(uri: &str) -> Result<Self> {
        let rest = uri.strip_prefix("embedded:").ok_or_else(|| {
            Error::invalid(format!("{uri:?} is no URI of the embedded engine; write embedded:/path or embedded:"))
        })?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut config = Self { path: parse_path(path)?, ..Self::default() };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            config.set(&name, &value)?;
        }
        config.validate()?;
        Ok(config)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "durability" => self.durability = parse_durability(value)?,
            "cache" => self.cache_bytes = parse_size(name, value)?,
            "write_buffer" => self.write_buffer_bytes = parse_size(name, value)?,
            "journal" => self.journal_bytes = parse_size(name, value)?,
            "tombstone_grace" => {
                self.tombstone_grace = humantime::parse_duration(value)
                    .map_err(|error| Error::invalid(format!("tombstone_grace={value}: {error}; write 1h or 90s")))?;
            }
            _ => {
                return Err(Error::invalid(format!(
                    "unknown parameter {name:?} of the embedded engine; known are durability, cache, write_buffer, journal, \
                     tombstone_grace"
                )));
            }
        }
        Ok(())
    }

    /// Checks the sizes.
    pub(crate) fn validate(&self) -> Result<()> {
        let at_least = |name: &str, bytes: u64, least: u64| {
            if bytes >= least {
                return Ok(());
            }
            Err(Error::invalid(format!("{name} of {bytes} bytes is too small; give at least {}MiB", least / MIB)))
        };
        at_least("a write buffer", self.write_buffer_bytes, MIB)?;
        at_least("a journal", self.journal_bytes, 64 * MIB)?;
        at_least("a cache", self.cache_bytes, MIB)
    }
}

fn parse_path(path: &str) -> Result<Option<PathBuf>> {
    let local = match path.strip_prefix("//") {
        Some(rest) if !rest.starts_with('/') => {
            return Err(Error::invalid(format!(
                "embedded://{rest} names a host, but the engine is in this process; write embedded:/{rest}"
            )));
        }
        Some(rest) => rest,
        None => path,
    };
    let decoded = percent_decode_str(local)
        .decode_utf8()
        .map_err(|_| Error::invalid(format!("the folder {path:?} is not UTF-8 when its %-escapes are read")))?;
    Ok((!decoded.is_empty()).then(|| PathBuf::from(decoded.as_ref())))
}

fn parse_durability(value: &str) -> Result<Durability> {
    Durability::ALL.into_iter().find(|mode| mode.name() == value).ok_or_else(|| {
        let known = Durability::ALL.map(Durability::name).join(", ");
        Error::invalid(format!("durability={value}: use one of {known}"))
    })
}

/// Bytes, with an optional binary unit.
fn parse_size(name: &str, value: &str) -> Result<u64> {
    let digits = value.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let unit = match value.get(digits.len()..).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(MIB),
        "g" | "gib" => Some(1 << 30),
        _ => None,
    };
    let size = digits.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    size.ok_or_else(|| {
        Error::invalid(format!("{name}={value} is no size; write 64MiB, 512KiB, 1GiB or a number of bytes"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(uri: &str) -> String {
        EmbeddedConfig::from_uri(uri).unwrap_err().to_string()
    }

    #[test]
    fn a_uri_without_a_path_is_a_temporary_folder_and_durable() {
        let config = EmbeddedConfig::from_uri("embedded:").unwrap();
        assert_eq!((config.path, config.durability), (None, Durability::Durable));
    }

    #[test]
    fn a_uri_sets_the_folder_and_every_parameter() {
        let uri =
            "embedded:/a%20b/c?durability=relaxed&cache=2MiB&write_buffer=1048576&journal=1GiB&tombstone_grace=90s";
        let config = EmbeddedConfig::from_uri(uri).unwrap();
        assert_eq!(config.path, Some(PathBuf::from("/a b/c")));
        assert_eq!(config.durability, Durability::Relaxed);
        assert_eq!((config.cache_bytes, config.write_buffer_bytes, config.journal_bytes), (2 << 20, 1 << 20, 1 << 30));
        assert_eq!(config.tombstone_grace, Duration::from_secs(90));
        let config = EmbeddedConfig::from_uri("embedded:///x").unwrap();
        assert_eq!(config.path, Some(PathBuf::from("/x")));
    }

    #[test]
    fn a_wrong_part_is_named_and_the_right_ones_listed() {
        let message = refused("embedded:/x?durabilty=durable");
        assert!(message.contains("durabilty") && message.contains("durability, cache"), "{message}");
        assert!(refused("embedded:/x?durability=never").contains("durable, buffered, relaxed"));
        for value in ["64MB", "-1", "many", "99999999999GiB", ""] {
            assert!(refused(&format!("embedded:/x?cache={value}")).contains("cache="), "{value}");
        }
        assert!(refused("embedded:/x?journal=1MiB").contains("at least 64MiB"));
        assert!(refused("embedded:/x?tombstone_grace=soon").contains("tombstone_grace=soon"));
        assert!(refused("embedded://data/x").contains("embedded:/data/x"));
        assert!(refused("embedded:/%ff").contains("UTF-8"));
        assert!(refused("cql://x").contains("embedded:/path"));
    }
}
