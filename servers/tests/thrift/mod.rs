//! As much of Thrift's binary protocol as it takes to call a gateway: strict messages, and of a
//! reply all its strings in their order.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const CALL: u32 = 0x8001_0001;
const REPLY: u32 = 0x8001_0002;

/// A value to be sent, with the field numbers of structs.
pub(crate) enum Value<'a> {
    Text(&'a str),
    List(Vec<Value<'a>>),
    Struct(Vec<(i16, Value<'a>)>),
}

use Value::{List, Struct, Text};

impl Value<'_> {
    fn kind(&self) -> u8 {
        match self {
            Text(_) => 11,
            Struct(_) => 12,
            List(_) => 15,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Text(text) => string(out, text),
            List(items) => {
                out.push(items[0].kind());
                out.extend(u32::try_from(items.len()).unwrap().to_be_bytes());
                for item in items {
                    item.write(out);
                }
            }
            Struct(fields) => {
                for (number, value) in fields {
                    out.push(value.kind());
                    out.extend(number.to_be_bytes());
                    value.write(out);
                }
                out.push(0);
            }
        }
    }
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
    out.extend(text.bytes());
}

/// A connection to a gateway.
pub(crate) struct Gateway {
    socket: TcpStream,
    framed: bool,
}

impl Gateway {
    pub(crate) fn connect(address: SocketAddr, framed: bool) -> io::Result<Gateway> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Gateway { socket, framed })
    }

    /// Calls, and gives the strings of the result; an exception is an error.
    pub(crate) fn call(&mut self, method: &str, arguments: Vec<(i16, Value<'_>)>) -> io::Result<Vec<String>> {
        let mut message = CALL.to_be_bytes().to_vec();
        string(&mut message, method);
        message.extend([0, 0, 0, 7]);
        Struct(arguments).write(&mut message);
        if self.framed {
            message.splice(0..0, u32::try_from(message.len()).unwrap().to_be_bytes());
        }
        self.socket.write_all(&message)?;
        if self.framed {
            self.number()?;
        }
        let kind = self.number()?;
        let mut strings = Vec::new();
        self.skip(11, &mut strings)?;
        self.number()?;
        let result = self.byte()?;
        if kind == REPLY && result == 0 {
            return Ok(Vec::new());
        }
        let [high, low] = self.bytes()?;
        self.skip(result, &mut strings)?;
        self.byte()?;
        let strings = strings.split_off(1);
        if kind == REPLY && [high, low] == [0, 0] { Ok(strings) } else { Err(io::Error::other(strings.concat())) }
    }

    fn skip(&mut self, kind: u8, strings: &mut Vec<String>) -> io::Result<()> {
        match kind {
            2 | 3 => drop(self.bytes::<1>()?),
            6 => drop(self.bytes::<2>()?),
            8 => drop(self.bytes::<4>()?),
            4 | 10 => drop(self.bytes::<8>()?),
            11 => {
                let mut text = vec![0; self.number()? as usize];
                self.socket.read_exact(&mut text)?;
                strings.push(String::from_utf8_lossy(&text).into_owned());
            }
            12 => loop {
                let field = self.byte()?;
                if field == 0 {
                    break;
                }
                self.bytes::<2>()?;
                self.skip(field, strings)?;
            },
            15 => {
                let item = self.byte()?;
                for _ in 0..self.number()? {
                    self.skip(item, strings)?;
                }
            }
            other => return Err(io::Error::other(format!("type {other} in a reply"))),
        }
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.socket.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn byte(&mut self) -> io::Result<u8> {
        Ok(self.bytes::<1>()?[0])
    }

    fn number(&mut self) -> io::Result<u32> {
        Ok(u32::from_be_bytes(self.bytes()?))
    }
}
