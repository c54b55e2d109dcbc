//! Commands to a running HBase, over the launcher's control port.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::Error;

/// Longer than the launcher itself waits for a command.
const LIMIT: Duration = Duration::from_secs(90);

/// A region of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its encoded name, 32 hexadecimal digits.
    pub name: String,
    /// Its first key; empty if it has no bound.
    pub start: Vec<u8>,
    /// The first key after it; empty if it has no bound.
    pub end: Vec<u8>,
    /// The region server that holds it, or empty while none does.
    pub server: String,
}

/// Sends a command and gives the lines of its result.
pub(super) fn send(address: SocketAddr, words: &[&str]) -> Result<Vec<String>, Error> {
    let command = words.join(" ");
    let doing = || Error::io(format!("sending `{command}` to {address}"));
    let mut socket = TcpStream::connect_timeout(&address, LIMIT).map_err(doing())?;
    socket.set_read_timeout(Some(LIMIT)).map_err(doing())?;
    socket.write_all(format!("{command}\n").as_bytes()).map_err(doing())?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).map_err(doing())?;
    let mut lines = answer.lines().map(str::to_owned);
    match lines.next() {
        Some(first) if first == "ok" => Ok(lines.collect()),
        Some(first) => {
            let reason = first.strip_prefix("error ").unwrap_or(&first).to_owned();
            Err(Error::Command { command, reason })
        }
        None => Err(Error::Command { command, reason: "it closed the connection".into() }),
    }
}

/// A line of `regions`.
pub(super) fn region(line: &str) -> Result<Region, Error> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [name, start, end, server] = fields[..] else {
        return Err(Error::Command { command: "regions".into(), reason: format!("it answered {line:?}") });
    };
    Ok(Region { name: name.into(), start: unescape(start), end: unescape(end), server: server.into() })
}

/// Bytes as HBase's `toStringBinary` writes them, and without spaces.
pub(super) fn escape(bytes: &[u8]) -> String {
    let escaped = bytes.iter().map(|&byte| match byte {
        b'!'..=b'~' if byte != b'\\' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02X}"),
    });
    escaped.collect()
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, escaped)) = rest.split_once("\\x") {
        bytes.extend(before.bytes());
        let (digits, after) = escaped.split_at_checked(2).unwrap_or((escaped, ""));
        bytes.extend(u8::from_str_radix(digits, 16).ok());
        rest = after;
    }
    bytes.extend(rest.bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_back_from_their_escapes() {
        let all: Vec<u8> = (0..=255).collect();
        let text = escape(&all);
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
        assert_eq!(unescape(&text), all);
    }

    #[test]
    fn a_region_is_read_with_its_open_bounds() {
        let region = region("0123\t\tb\\x00 \t127.0.0.1,4,5").unwrap();
        assert_eq!((region.start, region.end), (vec![], b"b\0 ".to_vec()));
        assert_eq!(region.server, "127.0.0.1,4,5");
    }

    #[test]
    fn a_line_that_is_no_region_is_refused() {
        assert!(region("ok").is_err());
    }
}
