use std::io;
use std::net::SocketAddr;

/// Why a server could not be fetched, started, reached or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program this machine needs is missing or does not fit.
    #[error("{problem}; install {install}")]
    Tool {
        /// What is missing, or what was found instead.
        problem: String,
        /// The package to install, by its Debian name.
        install: &'static str,
    },
    /// A server, or what is needed with one, could not be fetched.
    #[error("fetching {product} failed {attempts} times: {reason}; check the way to {from}")]
    Fetch {
        /// What was to be fetched.
        product: &'static str,
        /// Where from.
        from: &'static str,
        /// How often it was tried.
        attempts: u32,
        /// The last error line.
        reason: String,
    },
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done, with the path or address.
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The server did not come up, or ended by itself; its log's tail was printed to standard
    /// error.
    #[error("{server} at {address} failed: {reason}; see the log lines above")]
    Server {
        /// What kind of server it is.
        server: &'static str,
        /// The address it was to serve.
        address: SocketAddr,
        /// How it failed.
        reason: String,
    },
    /// A setting that cannot work.
    #[error("{0}")]
    Setting(String),
    /// Certificates could not be made or used.
    #[error("certificates: {0}")]
    Certificates(String),
    /// The server answered with an error frame.
    #[error("{address} refused: {message} (code {code:#06x})")]
    Refused {
        /// The server.
        address: SocketAddr,
        /// The error code of the CQL protocol v4, section 9.
        code: u32,
        /// The server's words.
        message: String,
    },
    /// HBase did not carry out a command.
    #[error("hbase refused `{command}`: {reason}")]
    Command {
        /// The command and its arguments.
        command: String,
        /// HBase's words.
        reason: String,
    },
    /// The server sent something that is not CQL v4.
    #[error("{address} broke the protocol: {message}")]
    Protocol {
        /// The server.
        address: SocketAddr,
        /// What was wrong.
        message: String,
    },
}

impl Error {
    /// Wraps an I/O error with what was being done.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Io { doing, source }
    }
}
