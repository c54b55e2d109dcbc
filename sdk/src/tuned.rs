//! What a sweep found, as a file.

use std::path::Path;

use peristyle_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// The best way to drive one database with one workload, as `tuner sweep` found it and wrote it to `tuned.toml`.
///
/// [`connect`](crate::connect) loads it with `?tuned=FILE`: `pool` becomes the connections per node, `batch` the rows per
/// request of `put_all` and `get_all`, and `threads` how many such requests run at a time, each unless the URI says
/// otherwise; with `concurrency=auto` they are where the autopilot starts. `io_threads` is for whoever builds the runtime.
///
/// ```
/// let tuned: peristyle::Tuned = "
///     schema = 1
///     target = 'cql://127.0.0.1/iot'
///     workload = 'write-30b'
///     threads = 64
///     io_threads = 2
///     pool = 2
///     batch = 50
///     rows_per_s = 144000.0
///     ci95 = [141000.0, 147000.0]
///     created = '2026-11-30T12:00:00Z'
/// "
/// .parse()?;
/// assert_eq!(tuned.batch, 50);
/// # Ok::<(), peristyle::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// The version of this file's form: [`Tuned::SCHEMA`].
    pub schema: u32,
    /// The database, as a URI without its password.
    pub target: String,
    /// The workload.
    pub workload: String,
    /// Requests in flight.
    pub threads: u64,
    /// Worker threads of the runtime.
    pub io_threads: u64,
    /// Connections per node, or per shard.
    pub pool: u64,
    /// Rows per request.
    pub batch: u64,
    /// Rows per second in the confirming run.
    pub rows_per_s: f64,
    /// The 95 % confidence interval of that figure.
    pub ci95: [f64; 2],
    /// When it was found, in UTC by RFC 3339.
    pub created: String,
}

impl Tuned {
    /// The version of the form that this version writes, and the newest that it reads.
    pub const SCHEMA: u32 = 1;

    /// Reads a file.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) and [`InvalidArgument`](ErrorKind::InvalidArgument), each with the file's name.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message = format!("{}: {error}; `tuner sweep` writes such a file", path.display());
            Error::new(ErrorKind::NotFound, message)
        })?;
        text.parse().map_err(|error: Error| Error::invalid(format!("{}: {}", path.display(), error.message())))
    }
}

impl std::str::FromStr for Tuned {
    type Err = Error;

    /// Reads the file's text. Fields that a newer version added are passed over; a newer form is refused.
    fn from_str(text: &str) -> Result<Self> {
        let fault = |error: toml::de::Error| Error::invalid(error.to_string().trim_end().replace('\n', "; "));
        let document: toml::Table = text.parse().map_err(fault)?;
        if let Some(schema) = document.get("schema").and_then(toml::Value::as_integer)
            && schema > i64::from(Self::SCHEMA)
        {
            let known = Self::SCHEMA;
            return Err(Error::invalid(format!(
                "form {schema} is newer than {known}, which this version reads; update it"
            )));
        }
        let tuned: Self = toml::from_str(text).map_err(fault)?;
        for (name, number) in [("threads", tuned.threads), ("pool", tuned.pool), ("batch", tuned.batch)] {
            if number == 0 {
                return Err(Error::invalid(format!("{name} = 0: give at least 1")));
            }
        }
        Ok(tuned)
    }
}

impl std::fmt::Display for Tuned {
    /// The file's text.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&toml::to_string(self).map_err(|_| std::fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuned() -> Tuned {
        Tuned {
            schema: 1,
            target: "cql://h/ks".into(),
            workload: "write-30b".into(),
            threads: 64,
            io_threads: 2,
            pool: 3,
            batch: 50,
            rows_per_s: 1234.5,
            ci95: [1200.0, 1269.0],
            created: "2026-11-30T12:00:00Z".into(),
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        assert_eq!(tuned().to_string().parse::<Tuned>().unwrap(), tuned());
    }

    #[test]
    fn fields_of_a_newer_version_are_passed_over_and_a_newer_form_is_refused() {
        let text = format!("{}colour = 'x'\n", tuned());
        assert_eq!(text.parse::<Tuned>().unwrap(), tuned());
        let newer = tuned().to_string().replace("schema = 1", "schema = 2");
        assert!(newer.parse::<Tuned>().unwrap_err().to_string().contains("newer"));
    }

    #[test]
    fn faults_name_the_field() {
        let zero = tuned().to_string().replace("pool = 3", "pool = 0").parse::<Tuned>().unwrap_err().to_string();
        assert!(zero.contains("pool = 0"), "{zero}");
        let missing = tuned().to_string().replace("batch = 50", "").parse::<Tuned>().unwrap_err().to_string();
        assert!(missing.contains("batch") && !missing.contains('\n'), "{missing}");
    }
}
