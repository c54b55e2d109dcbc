//! Connections to gateways: one request at a time on each, asynchronous, and never used again once anything went wrong.

mod gateway;
mod gateways;
mod message;

use std::io;
use std::time::{Duration, Instant};

use thrift::protocol::TSerializable;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) use self::gateways::{Call, Gateways};
use self::message::{Decoded, Garbled, Pending, Wire};
pub(crate) use self::message::{
    Reader, ServerException, read_bool, read_bytes_list, read_i32, read_i64, read_list, read_nothing, read_optional,
    read_struct,
};

/// The least room for a read, and what a connection keeps between requests.
const READ_BYTES: usize = 16 << 10;

/// What broke a connection.
#[derive(Debug)]
pub(crate) enum Fault {
    Io(io::Error),
    /// The gateway closed it.
    Closed,
    Garbled(Garbled),
    /// The request can't be put into bytes; nothing was sent.
    Unsent(String),
}

/// One connection to a gateway.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    wire: Wire,
    sequence: i32,
    buffer: Vec<u8>,
    used: Instant,
}

impl Connection {
    async fn open(address: &str, wire: Wire) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        // Without it a batch waits some 40 ms for the gateway's acknowledgement.
        stream.set_nodelay(true)?;
        Ok(Self { stream, wire, sequence: 0, buffer: Vec::new(), used: Instant::now() })
    }

    /// Whether it can carry another request: it was used lately, and the gateway neither closed it nor said anything.
    fn is_fresh(&self, idle_timeout: Duration) -> bool {
        let silent =
            matches!(self.stream.try_read(&mut [0; 1]), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        silent && self.used.elapsed() < idle_timeout
    }

    /// The bytes of the next call.
    fn encode<A: TSerializable>(&mut self, method: &str, arguments: &A) -> Result<Vec<u8>, Fault> {
        self.sequence = self.sequence.wrapping_add(1);
        let call = Pending { method, sequence: self.sequence };
        self.wire.encode(call, arguments).map_err(|error| Fault::Unsent(error.to_string()))
    }

    /// Sends the bytes of a call and reads the reply. After a fault, or when it is dropped half-way, the connection is of no
    /// further use.
    async fn exchange<T>(
        &mut self,
        request: &[u8],
        method: &str,
        read: Reader<T>,
    ) -> Result<Result<T, ServerException>, Fault> {
        self.stream.write_all(request).await.map_err(Fault::Io)?;
        let call = Pending { method, sequence: self.sequence };
        self.buffer.clear();
        let mut least = 1;
        loop {
            self.receive(least).await?;
            match self.wire.decode(&self.buffer, call, read).map_err(Fault::Garbled)? {
                Decoded::Reply(reply) => {
                    self.used = Instant::now();
                    self.buffer.shrink_to(READ_BYTES);
                    return Ok(reply);
                }
                Decoded::Incomplete(bytes) => least = bytes,
            }
        }
    }

    /// Waits until so many bytes have come, then takes what else is there.
    async fn receive(&mut self, least: usize) -> Result<(), Fault> {
        while self.buffer.len() < least {
            self.buffer.reserve(READ_BYTES.max(least.saturating_sub(self.buffer.len())));
            if self.stream.read_buf(&mut self.buffer).await.map_err(Fault::Io)? == 0 {
                return Err(Fault::Closed);
            }
        }
        loop {
            self.buffer.reserve(READ_BYTES);
            match self.stream.try_read_buf(&mut self.buffer) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(Fault::Io(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
