//! Messages over HTTP: one POST for each call.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::rt::{Read, Write};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Fault;
use super::message::{Garbled, MAX_REPLY_BYTES};

/// A connection that speaks HTTP/1.1. A task of the runtime moves its bytes, and ends with it.
pub(super) struct Http {
    sender: SendRequest<Full<Bytes>>,
    host: HeaderValue,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Http {
    /// Speaks HTTP on a connection to this address, encrypted where there is something to do so.
    pub(super) async fn open(stream: TcpStream, address: &str, tls: Option<&Arc<ClientConfig>>) -> io::Result<Self> {
        let host = HeaderValue::from_str(address).map_err(io::Error::other)?;
        let sender = match tls {
            None => start(TokioIo::new(stream)).await?,
            Some(config) => {
                let tls = TlsConnector::from(Arc::clone(config));
                let name = super::host_of(address).to_owned();
                let name = ServerName::try_from(name).map_err(io::Error::other)?;
                start(TokioIo::new(tls.connect(name, stream).await?)).await?
            }
        };
        Ok(Self { sender, host })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Sends a message and gives the one that answers it.
    pub(super) async fn post(&mut self, message: Vec<u8>) -> Result<Bytes, Fault> {
        let request = Request::builder()
            .method(Method::POST)
            .uri("/")
            .header(HOST, &self.host)
            .header(CONTENT_TYPE, "application/x-thrift")
            .body(Full::from(message))
            .map_err(|error| Fault::Unsent(error.to_string()))?;
        self.sender.ready().await.map_err(|error| Fault::Unfinished(io::Error::other(error)))?;
        let answer = self.sender.try_send_request(request).await.map_err(|mut error| match error.take_message() {
            // It comes back if none of it was sent.
            Some(_) => Fault::Unfinished(io::Error::other(error.into_error())),
            None => broken(error.into_error()),
        })?;
        if answer.status() != StatusCode::OK {
            return Err(Fault::Refused(answer.status()));
        }
        match Limited::new(answer.into_body(), MAX_REPLY_BYTES).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) => match error.downcast::<hyper::Error>() {
                Ok(error) => Err(broken(*error)),
                Err(_) => Err(Fault::Garbled(Garbled::TooLong)),
            },
        }
    }
}

async fn start<S: Read + Write + Send + Unpin + 'static>(stream: S) -> io::Result<SendRequest<Full<Bytes>>> {
    let (sender, connection) = handshake(stream).await.map_err(io::Error::other)?;
    // What goes wrong on it the sender tells too.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn broken(error: hyper::Error) -> Fault {
    Fault::Io(io::Error::other(error))
}
