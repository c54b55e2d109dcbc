//! A minimal client of the CQL binary protocol, version 4: enough to see that a server answers,
//! to set up a schema, and to look into system tables. It is no driver.
//!
//! Sections in comments are those of `native_protocol_v4.spec`.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};

use crate::Error;
use crate::certificates::Certificates;

/// The bytes of a row's cells, in the order of the columns; `None` is null.
pub type Row = Vec<Option<Vec<u8>>>;

/// A name and a password.
#[derive(Clone, Copy, Debug)]
pub struct Login<'a> {
    /// The role's name.
    pub user: &'a str,
    /// Its password.
    pub password: &'a str,
}

const TIMEOUT: Duration = Duration::from_secs(10);
/// Section 2.4.
const ERROR: u8 = 0x00;
const STARTUP: u8 = 0x01;
const READY: u8 = 0x02;
const AUTHENTICATE: u8 = 0x03;
const QUERY: u8 = 0x07;
const RESULT: u8 = 0x08;
const AUTH_RESPONSE: u8 = 0x0f;
const AUTH_SUCCESS: u8 = 0x10;
/// Section 3: consistency levels.
const QUORUM: u16 = 0x0004;
/// Section 4.1.4: spares the client the parsing of column types.
const SKIP_METADATA: u8 = 0x02;
/// Section 4.2.5.
const ROWS: u32 = 0x0002;
const HAS_MORE_PAGES: u32 = 0x0002;
/// Larger frames are no answer to what this client asks.
const MAX_FRAME: usize = 64 << 20;

trait Wire: Read + Write + Send {}
impl<T: Read + Write + Send> Wire for T {}

/// One connection. Every call ends after at most 10 s without a byte.
pub struct Client {
    address: SocketAddr,
    wire: Box<dyn Wire>,
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Client {
    /// Connects without encryption.
    pub fn connect(address: SocketAddr, login: Option<Login<'_>>) -> Result<Client, Error> {
        let tcp = dial(address)?;
        Client { address, wire: Box::new(tcp) }.greet(login)
    }

    /// Connects over TLS, trusting the certificates' authority. With `present`, the client shows
    /// its own certificate, as mutual TLS demands.
    pub fn connect_tls(
        address: SocketAddr,
        certificates: &Certificates,
        present: bool,
        login: Option<Login<'_>>,
    ) -> Result<Client, Error> {
        let refused = |error: &dyn fmt::Display| Error::Certificates(error.to_string());
        let config = certificates.client_config(present)?;
        let tls = ClientConnection::new(Arc::new(config), address.ip().into()).map_err(|error| refused(&error))?;
        let wire = Box::new(StreamOwned::new(tls, dial(address)?));
        Client { address, wire }.greet(login)
    }

    /// Runs one statement at consistency QUORUM, and gives the rows of its only page.
    pub fn query(&mut self, statement: &str) -> Result<Vec<Row>, Error> {
        let mut body = Vec::new();
        put_bytes(&mut body, statement.as_bytes());
        body.extend(QUORUM.to_be_bytes());
        body.push(SKIP_METADATA);
        let (opcode, body) = self.call(QUERY, &body)?;
        if opcode != RESULT {
            return Err(self.broken(format!("opcode {opcode} answers a query")));
        }
        rows(&body).map_err(|message| self.broken(message.into()))
    }

    fn greet(mut self, login: Option<Login<'_>>) -> Result<Client, Error> {
        // Section 4.1.1: a map of one entry.
        let mut body = vec![0, 1];
        put_string(&mut body, "CQL_VERSION");
        put_string(&mut body, "3.0.0");
        match self.call(STARTUP, &body)? {
            (READY, _) => Ok(self),
            (AUTHENTICATE, _) => self.authenticate(login),
            (opcode, _) => Err(self.broken(format!("opcode {opcode} answers STARTUP"))),
        }
    }

    fn authenticate(mut self, login: Option<Login<'_>>) -> Result<Client, Error> {
        let Login { user, password } = login.unwrap_or(Login { user: "", password: "" });
        let token = [b"\0", user.as_bytes(), b"\0", password.as_bytes()].concat();
        let mut body = Vec::new();
        put_bytes(&mut body, &token);
        match self.call(AUTH_RESPONSE, &body)? {
            (AUTH_SUCCESS, _) => Ok(self),
            (opcode, _) => Err(self.broken(format!("opcode {opcode} answers the login"))),
        }
    }

    /// Sends one frame on stream 0 and reads its answer (section 2).
    fn call(&mut self, opcode: u8, body: &[u8]) -> Result<(u8, Vec<u8>), Error> {
        let (opcode, body) = self.exchange(opcode, body).map_err(Error::io(format!("talking to {}", self.address)))?;
        if opcode != ERROR {
            return Ok((opcode, body));
        }
        let mut reader = Reader(&body);
        let code = reader.int().unwrap_or_default();
        let message = reader.string().unwrap_or_default();
        Err(Error::Refused { address: self.address, code, message })
    }

    fn exchange(&mut self, opcode: u8, body: &[u8]) -> io::Result<(u8, Vec<u8>)> {
        let mut frame = vec![4, 0, 0, 0, opcode];
        put_bytes(&mut frame, body);
        self.wire.write_all(&frame)?;
        self.wire.flush()?;
        let mut header = [0; 9];
        self.wire.read_exact(&mut header)?;
        let [version, _, _, _, opcode, length @ ..] = header;
        let length = u32::from_be_bytes(length) as usize;
        if version != 0x84 || length > MAX_FRAME {
            return Err(io::Error::other("the answer is not a frame of CQL v4"));
        }
        let mut body = vec![0; length];
        self.wire.read_exact(&mut body)?;
        Ok((opcode, body))
    }

    fn broken(&self, message: String) -> Error {
        Error::Protocol { address: self.address, message }
    }
}

fn dial(address: SocketAddr) -> Result<TcpStream, Error> {
    let connect = || {
        let tcp = TcpStream::connect_timeout(&address, TIMEOUT)?;
        tcp.set_read_timeout(Some(TIMEOUT))?;
        tcp.set_write_timeout(Some(TIMEOUT))?;
        tcp.set_nodelay(true)?;
        Ok(tcp)
    };
    connect().map_err(Error::io(format!("connecting to {address}")))
}

/// The rows of a RESULT frame without metadata (section 4.2.5.2).
fn rows(body: &[u8]) -> Result<Vec<Row>, &'static str> {
    let mut reader = Reader(body);
    if reader.int()? != ROWS {
        return Ok(Vec::new());
    }
    let flags = reader.int()?;
    let columns = reader.int()?;
    if flags & HAS_MORE_PAGES != 0 {
        return Err("the result has pages");
    }
    let count = reader.int()?;
    (0..count).map(|_| (0..columns).map(|_| reader.cell()).collect()).collect()
}

fn put_string(body: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    body.extend(length.to_be_bytes());
    body.extend(text.as_bytes());
}

fn put_bytes(body: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    body.extend(length.to_be_bytes());
    body.extend(bytes);
}

/// The notations of section 3, read from the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Result<&[u8], &'static str> {
        let (front, rest) = self.0.split_at_checked(count).ok_or("the frame is cut short")?;
        self.0 = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        self.take(N)?.try_into().map_err(|_| "the frame is cut short")
    }

    fn int(&mut self) -> Result<u32, &'static str> {
        self.array().map(u32::from_be_bytes)
    }

    fn string(&mut self) -> Result<String, &'static str> {
        let length = u16::from_be_bytes(self.array()?);
        Ok(String::from_utf8_lossy(self.take(length.into())?).into_owned())
    }

    /// `[bytes]`: a negative length is null.
    fn cell(&mut self) -> Result<Option<Vec<u8>>, &'static str> {
        let length = self.int()?.cast_signed();
        usize::try_from(length).ok().map(|length| self.take(length).map(<[u8]>::to_vec)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kind ROWS, without metadata, 2 columns, 1 row of "ab" and null.
    const ONE_ROW: [u8; 26] =
        [0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, b'a', b'b', 255, 255, 255, 255];

    #[test]
    fn cells_and_nulls_are_read_apart() {
        assert_eq!(rows(&ONE_ROW).unwrap(), vec![vec![Some(b"ab".to_vec()), None]]);
    }

    #[test]
    fn a_frame_cut_anywhere_is_an_error() {
        for length in 0..ONE_ROW.len() {
            assert!(rows(&ONE_ROW[..length]).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn a_result_of_several_pages_is_refused_rather_than_cut() {
        let mut body = ONE_ROW;
        body[7] |= 2;
        assert_eq!(rows(&body), Err("the result has pages"));
    }

    #[test]
    fn a_result_without_rows_is_empty() {
        assert_eq!(rows(&[0, 0, 0, 1]), Ok(vec![]));
    }
}
