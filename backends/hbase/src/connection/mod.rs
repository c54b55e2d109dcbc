//! Connections to gateways: one request at a time on each, asynchronous, and never used again once anything went wrong.

mod gateway;
mod gateways;
mod gauges;
mod http;
mod message;
mod tls;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use rustls::ClientConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub(crate) use self::gateways::{Call, Gateways};
use self::gauges::Counted;
use self::http::Http;
use self::message::Garbled;
pub(crate) use self::message::{
    Arguments, Fields, Input, Kind, Output, OutputKind, Part, Reader, ServerException, Unread, read_bool,
    read_bytes_list, read_i32, read_i64, read_list, read_nothing, read_optional, read_struct, read_with,
};
pub(crate) use self::message::{Decoded, Pending, Wire};

use crate::config::Transport;

/// The least room for a read.
const READ_BYTES: usize = 16 << 10;
/// From so many bytes on a reply is long.
const LONG_BYTES: usize = 64 << 10;
/// The largest buffer of a request or a reply that is kept for the next one.
const KEPT_BYTES: usize = 1 << 20;
/// How long a long reply may stop before it is looked at.
const PAUSE: Duration = Duration::from_millis(1);

/// What broke a connection.
#[derive(Debug)]
pub(crate) enum Fault {
    Io(io::Error),
    /// The gateway closed it.
    Closed,
    /// It broke before the whole request was sent, so that the gateway can't do what it says: most often the gateway closed it
    /// while it was idle.
    Unfinished(io::Error),
    Garbled(Garbled),
    /// The request can't be put into bytes; nothing was sent.
    Unsent(String),
    /// The gateway's HTTP server answered instead of it.
    Refused(hyper::StatusCode),
}

/// One connection to a gateway.
#[derive(Debug)]
struct Connection {
    link: Link,
    wire: Wire,
    sequence: i32,
    used: Instant,
    /// Room for the next request, from one before.
    spare: Vec<u8>,
    /// The last reply: room for the next one, if nothing holds it any more.
    kept: Bytes,
    /// That it is open, for the metrics.
    counted: Option<Counted>,
}

/// What carries messages.
#[derive(Debug)]
enum Link {
    Socket(TcpStream),
    Http(Http),
}

impl Connection {
    async fn open(address: &str, wire: Wire, tls: Option<&Arc<ClientConfig>>) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        // Without it a batch waits some 40 ms for the gateway's acknowledgement.
        stream.set_nodelay(true)?;
        let link = match wire.transport {
            Transport::Buffered | Transport::Framed => Link::Socket(stream),
            Transport::Http => Link::Http(Http::open(stream, address, tls).await?),
        };
        Ok(Self { link, wire, sequence: 0, used: Instant::now(), spare: Vec::new(), kept: Bytes::new(), counted: None })
    }

    /// Whether it can carry another request: it was used lately, and the gateway neither closed it nor said anything.
    fn is_fresh(&self, idle_timeout: Duration) -> bool {
        let silent = match &self.link {
            Link::Socket(stream) => {
                matches!(stream.try_read(&mut [0; 1]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
            }
            Link::Http(http) => http.is_open(),
        };
        silent && self.used.elapsed() < idle_timeout
    }

    /// The bytes of the next call.
    fn encode<A: Arguments>(&mut self, method: &str, arguments: &A) -> Result<Vec<u8>, Fault> {
        self.sequence = self.sequence.wrapping_add(1);
        let call = Pending { method, sequence: self.sequence };
        let mut request = std::mem::take(&mut self.spare);
        match self.wire.encode(call, arguments, &mut request) {
            Ok(()) => Ok(request),
            Err(error) => Err(Fault::Unsent(error.to_string())),
        }
    }

    /// Sends the bytes of a call and reads the reply. After a fault, or when it is dropped half-way, the connection is of no
    /// further use.
    async fn exchange<T>(
        &mut self,
        request: Vec<u8>,
        method: &str,
        read: Reader<T>,
    ) -> Result<Result<T, ServerException>, Fault> {
        let (wire, call) = (self.wire, Pending { method, sequence: self.sequence });
        let reply = match &mut self.link {
            Link::Socket(stream) => {
                stream.write_all(&request).await.map_err(Fault::Unfinished)?;
                if request.capacity() <= KEPT_BYTES {
                    self.spare = request;
                    self.spare.clear();
                }
                read_reply(stream, &mut self.kept, wire, call, read).await?
            }
            Link::Http(http) => {
                let bytes = http.post(request).await?;
                match wire.decode(&bytes, call, read).map_err(Fault::Garbled)? {
                    Decoded::Reply(reply) => reply,
                    Decoded::Incomplete(_) => {
                        let message = format!("{} bytes that end too early", bytes.len());
                        return Err(Fault::Garbled(Garbled::Malformed(message)));
                    }
                }
            }
        };
        self.used = Instant::now();
        Ok(reply)
    }
}

async fn read_reply<T>(
    stream: &mut TcpStream,
    kept: &mut Bytes,
    wire: Wire,
    call: Pending<'_>,
    read: Reader<T>,
) -> Result<Result<T, ServerException>, Fault> {
    let mut buffer = std::mem::take(kept).try_into_mut().unwrap_or_default();
    buffer.clear();
    let (mut least, mut hoped) = (1, 1);
    loop {
        receive(stream, &mut buffer, least, hoped).await?;
        let bytes = buffer.freeze();
        match wire.decode(&bytes, call, read).map_err(Fault::Garbled)? {
            Decoded::Reply(reply) => {
                *kept = if bytes.len() <= KEPT_BYTES { bytes } else { Bytes::new() };
                return Ok(reply);
            }
            Decoded::Incomplete(more) => {
                // Each look begins at the start: a long reply is looked at again when it has doubled, or stops coming.
                let is_long = wire.transport == Transport::Buffered && more > LONG_BYTES;
                (least, hoped) = (more, if is_long { 2 * more } else { more });
            }
        }
        buffer = BytesMut::from(bytes);
    }
}

/// Waits until so many bytes have come, and for as many as are hoped for as long as they come without a pause.
async fn receive(stream: &mut TcpStream, buffer: &mut BytesMut, least: usize, hoped: usize) -> Result<(), Fault> {
    while buffer.len() < hoped {
        let is_enough = buffer.len() >= least;
        buffer.reserve(READ_BYTES.max(buffer.len()));
        let read = stream.read_buf(buffer);
        let read = if is_enough { timeout(PAUSE, read).await } else { Ok(read.await) };
        match read {
            Ok(Ok(0)) => return Err(Fault::Closed),
            Ok(Ok(_)) => {}
            Ok(Err(cause)) => return Err(Fault::Io(cause)),
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// The host of an address, without the port.
fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']'])
}

#[cfg(test)]
mod tests;
