//! A front before a CQL server, some time away from the client, that takes so many requests at once on each connection and
//! refuses further ones as overloaded: what an overloaded node, a proxy or a driver's own limit does to a connection.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};

const ERROR: u8 = 0x00;
const EXECUTE: u8 = 0x0a;
const BATCH: u8 = 0x0d;
/// The code of an overloaded server.
const OVERLOADED: u32 = 0x1001;
/// The version byte of an answer in protocol 4.
const ANSWER: u8 = 0x84;

/// The streams of a connection that wait for an answer, of requests that read or write rows.
type Waiting = Arc<Mutex<HashSet<[u8; 2]>>>;
/// Answers, each with the time when it is due.
type Answers = UnboundedSender<(Instant, Frame)>;

/// A frame of protocol version 4: nine bytes of header, of which the third and fourth are the stream, the fifth is the opcode
/// and the last four are the length.
struct Frame {
    header: [u8; 9],
    body: Vec<u8>,
}

impl Frame {
    async fn read(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<Self> {
        let mut header = [0; 9];
        stream.read_exact(&mut header).await.ok()?;
        let mut body = vec![0; usize::try_from(u32::from_be_bytes(header[5..].try_into().unwrap())).unwrap()];
        stream.read_exact(&mut body).await.ok()?;
        Some(Self { header, body })
    }

    async fn write(&self, stream: &mut (impl AsyncWriteExt + Unpin)) -> Option<()> {
        stream.write_all(&[&self.header[..], &self.body].concat()).await.ok()
    }

    fn stream(&self) -> [u8; 2] {
        [self.header[2], self.header[3]]
    }

    /// The refusal of a request on this stream.
    fn overloaded([high, low]: [u8; 2]) -> Self {
        let reason = b"too many requests on this connection";
        let length = u16::try_from(reason.len()).unwrap().to_be_bytes();
        let body = [&OVERLOADED.to_be_bytes()[..], &length, reason].concat();
        let mut header = [ANSWER, 0, high, low, ERROR, 0, 0, 0, 0];
        header[5..].copy_from_slice(&u32::try_from(body.len()).unwrap().to_be_bytes());
        Self { header, body }
    }
}

/// What a front does.
#[derive(Clone, Copy)]
pub(crate) struct Front {
    /// The server behind it.
    pub(crate) server: SocketAddr,
    /// Requests at once on a connection.
    pub(crate) most: usize,
    /// The time that an answer takes on its way.
    pub(crate) away: Duration,
}

impl Front {
    /// Begins to listen, beside the server, for as long as the runtime lives.
    pub(crate) fn listen(self) -> (SocketAddr, Runtime) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind((self.server.ip(), 0))).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(self.relay(client));
            }
        });
        (address, runtime)
    }

    async fn relay(self, client: TcpStream) {
        let server = TcpStream::connect(self.server).await.unwrap();
        client.set_nodelay(true).unwrap();
        server.set_nodelay(true).unwrap();
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let (answers, due) = unbounded_channel();
        let waiting = Waiting::default();
        tokio::select! {
            _ = self.requests(from_client, to_server, answers.clone(), &waiting) => {}
            _ = self.answers(from_server, answers) => {}
            _ = deliver(due, to_client, &waiting) => {}
        }
    }

    async fn requests(
        self,
        from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        answers: Answers,
        waiting: &Waiting,
    ) -> Option<()> {
        let mut from = BufReader::new(from);
        loop {
            let frame = Frame::read(&mut from).await?;
            if matches!(frame.header[4], EXECUTE | BATCH) {
                let mut waiting = waiting.lock().unwrap();
                if waiting.len() >= self.most {
                    let refusal = (Instant::now() + self.away, Frame::overloaded(frame.stream()));
                    answers.send(refusal).ok()?;
                    continue;
                }
                waiting.insert(frame.stream());
            }
            frame.write(&mut to).await?;
        }
    }

    async fn answers(self, from: OwnedReadHalf, answers: Answers) -> Option<()> {
        let mut from = BufReader::new(from);
        loop {
            let frame = Frame::read(&mut from).await?;
            answers.send((Instant::now() + self.away, frame)).ok()?;
        }
    }
}

/// Gives the client each answer when it is due; its stream waits until then.
async fn deliver(
    mut due: UnboundedReceiver<(Instant, Frame)>,
    mut to: OwnedWriteHalf,
    waiting: &Waiting,
) -> Option<()> {
    loop {
        let (at, frame) = due.recv().await?;
        sleep_until(at).await;
        waiting.lock().unwrap().remove(&frame.stream());
        frame.write(&mut to).await?;
    }
}
