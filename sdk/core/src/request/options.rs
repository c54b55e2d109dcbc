//! How a request is done.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::endpoint::Endpoint;
use crate::error::Error;

/// How a request is done. The default leaves everything to the client's and the server's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RequestOptions {
    /// How many replicas must answer; needs [`Capability::ConsistencyLevel`](crate::Capability::ConsistencyLevel).
    pub consistency: Option<Consistency>,
    /// How many replicas must agree on a conditional write; needs the same capability.
    pub serial_consistency: Option<SerialConsistency>,
    /// The limit for one attempt at one server; default: the backend's setting.
    pub attempt_timeout: Option<Duration>,
    /// When all must be over, queues and pauses included; default: the client's limit from now.
    pub deadline: Option<Instant>,
    /// Where it goes, if it goes to one of several [endpoints](crate::Endpoint); set by the layer that routes, where the request
    /// brings none. A backend falls over to another one if it can't reach this one, and so do retries and hedges.
    pub endpoint: Option<Endpoint>,
    /// When the attempt under way must be over; set by the layer that limits attempts, for those below it.
    pub attempt_deadline: Option<Instant>,
}

impl RequestOptions {
    /// Whether the time of the request, or of the attempt under way, is over. What waits in the client then says that nothing
    /// was sent, rather than being cut off with an outcome that nobody knows.
    pub fn is_over(&self) -> bool {
        let end = match (self.deadline, self.attempt_deadline) {
            (Some(whole), Some(attempt)) => Some(whole.min(attempt)),
            (whole, attempt) => whole.or(attempt),
        };
        end.is_some_and(|end| tokio::time::Instant::now().into_std() >= end)
    }
}

macro_rules! levels {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "&'static str")]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// Every level.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in settings and URIs.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl From<$name> for &'static str {
            fn from(level: $name) -> Self {
                level.name()
            }
        }

        impl FromStr for $name {
            type Err = Error;

            /// Reads the name in any case, with `_` or `-`.
            fn from_str(text: &str) -> Result<Self, Error> {
                let name = text.to_ascii_lowercase().replace('-', "_");
                Self::ALL.iter().copied().find(|level| level.name() == name).ok_or_else(|| {
                    let known: Vec<_> = Self::ALL.iter().map(|level| level.name()).collect();
                    Error::invalid(format!("unknown consistency level {text:?}; use one of {}", known.join(", ")))
                })
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;

            fn try_from(text: String) -> Result<Self, Error> {
                text.parse()
            }
        }
    };
}

levels! {
    /// How many replicas must answer.
    Consistency {
        /// Any node, a hint included; writes only.
        Any = "any",
        /// One replica.
        One = "one",
        /// Two replicas.
        Two = "two",
        /// Three replicas.
        Three = "three",
        /// More than half of all replicas.
        Quorum = "quorum",
        /// All replicas.
        All = "all",
        /// More than half of the replicas in the local datacenter.
        LocalQuorum = "local_quorum",
        /// More than half of the replicas in each datacenter; writes only.
        EachQuorum = "each_quorum",
        /// One replica in the local datacenter.
        LocalOne = "local_one",
    }
}

levels! {
    /// How many replicas must agree on a conditional write.
    SerialConsistency {
        /// More than half of all replicas.
        Serial = "serial",
        /// More than half of the replicas in the local datacenter.
        LocalSerial = "local_serial",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_reads_its_name_in_any_case() {
        assert_eq!("LOCAL-QUORUM".parse::<Consistency>().unwrap(), Consistency::LocalQuorum);
        let message = "most".parse::<Consistency>().unwrap_err().to_string();
        assert!(message.contains("\"most\"") && message.contains("each_quorum"), "{message}");
    }
}
