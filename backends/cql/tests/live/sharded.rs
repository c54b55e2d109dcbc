//! Requests on the connection of the shard that owns their partition: a real Cassandra behind a front that passes for a
//! `ScyllaDB` node, as that server's `docs/dev/protocol-extensions.md` describes intranode sharding.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use peristyle_core::client::Client;
use peristyle_core::model::{Row, TableSpec, Type};
use peristyle_cql::{CqlBackend, PoolPer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::support::{address, config, connect, keyspace};

const SHARDS: u16 = 4;
const IGNORED_BITS: u32 = 12;
const ROWS: i64 = 400;

const SUPPORTED: u8 = 0x06;
const QUERY: u8 = 0x07;
const PREPARE: u8 = 0x09;
const EXECUTE: u8 = 0x0a;

/// What the front has seen.
#[derive(Default)]
struct Seen {
    /// By key, as the server tells them.
    tokens: HashMap<i64, i64>,
    /// Requests on the connection of the owning shard, and on others.
    right: usize,
    wrong: usize,
    /// Connections by shard.
    connections: HashMap<u16, usize>,
}

type Shared = Arc<Mutex<Seen>>;

/// A frame of protocol version 4: nine bytes of header, of which the fifth is the opcode and the last four are the length.
struct Frame {
    header: [u8; 9],
    body: Vec<u8>,
}

impl Frame {
    async fn read(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<Self> {
        let mut header = [0; 9];
        stream.read_exact(&mut header).await.ok()?;
        let length = u32::from_be_bytes(header[5..].try_into().unwrap());
        let mut body = vec![0; usize::try_from(length).unwrap()];
        stream.read_exact(&mut body).await.ok()?;
        Some(Self { header, body })
    }

    async fn write(mut self, stream: &mut (impl AsyncWriteExt + Unpin)) -> Option<()> {
        self.header[5..].copy_from_slice(&u32::try_from(self.body.len()).unwrap().to_be_bytes());
        stream.write_all(&[&self.header[..], &self.body].concat()).await.ok()
    }

    /// Adds to a SUPPORTED, which is a multimap of strings, what a node with shards says of this connection.
    fn add_sharding(&mut self, shard: u16, aware_port: u16) {
        let entries = [
            ("SCYLLA_SHARD", shard.to_string()),
            ("SCYLLA_NR_SHARDS", SHARDS.to_string()),
            ("SCYLLA_SHARDING_IGNORE_MSB", IGNORED_BITS.to_string()),
            ("SCYLLA_SHARD_AWARE_PORT", aware_port.to_string()),
        ];
        let count = u16::from_be_bytes([self.body[0], self.body[1]]) + u16::try_from(entries.len()).unwrap();
        self.body[..2].copy_from_slice(&count.to_be_bytes());
        for (key, value) in entries {
            for (text, list) in [(key, false), (value.as_str(), true)] {
                self.body.extend(list.then_some([0, 1]).into_iter().flatten());
                self.body.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
                self.body.extend(text.as_bytes());
            }
        }
    }

    /// Takes the time limit off, which such nodes understand and Cassandra doesn't.
    fn strip_timeout(&mut self) {
        let length = usize::try_from(u32::from_be_bytes(self.body[..4].try_into().unwrap())).unwrap();
        let text = String::from_utf8(self.body[4..4 + length].to_vec()).unwrap();
        if let Some((statement, _)) = text.split_once(" USING TIMEOUT ") {
            let rest = self.body.split_off(4 + length);
            self.body.truncate(0);
            self.body.extend(u32::try_from(statement.len()).unwrap().to_be_bytes());
            self.body.extend(statement.as_bytes());
            self.body.extend(rest);
        }
    }

    /// The last value of an EXECUTE, if it is a bigint: the key in all statements of this test.
    fn key(&self) -> Option<i64> {
        let last = self.body.len().checked_sub(12)?;
        let id = usize::from(u16::from_be_bytes([self.body[0], self.body[1]]));
        let flags = *self.body.get(2 + id + 2)?;
        // Behind the values come, where the flags say so, page size (04) and default timestamp (20) and others.
        let behind = if flags & 0x04 == 0 { 0 } else { 4 } + if flags & 0x10 == 0 { 0 } else { 2 };
        let value = self.body.get(last.checked_sub(behind)?..)?;
        let length = u32::from_be_bytes(value[..4].try_into().unwrap());
        (length == 8).then(|| i64::from_be_bytes(value[4..12].try_into().unwrap()))
    }
}

/// Which shard owns a token: the token as an unsigned number, without its most significant bits, in equal parts.
fn shard_of(token: i64) -> u16 {
    let biased = (token.cast_unsigned() ^ (1 << 63)) << IGNORED_BITS;
    u16::try_from((u128::from(biased) * u128::from(SHARDS)) >> 64).unwrap()
}

async fn relay(mut client: TcpStream, shard: u16, aware_port: u16, seen: Shared) {
    let server = TcpStream::connect(address()).await.unwrap();
    *seen.lock().unwrap().connections.entry(shard).or_default() += 1;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.into_split();
    let requests = async {
        while let Some(mut frame) = Frame::read(&mut from_client).await {
            match frame.header[4] {
                QUERY | PREPARE => frame.strip_timeout(),
                EXECUTE => {
                    let mut seen = seen.lock().unwrap();
                    let owner = frame.key().and_then(|key| seen.tokens.get(&key).copied()).map(shard_of);
                    seen.right += usize::from(owner == Some(shard));
                    seen.wrong += usize::from(owner.is_some_and(|owner| owner != shard));
                }
                _ => {}
            }
            frame.write(&mut to_server).await?;
        }
        Some(())
    };
    let answers = async {
        while let Some(mut frame) = Frame::read(&mut from_server).await {
            if frame.header[4] == SUPPORTED {
                frame.add_sharding(shard, aware_port);
            }
            frame.write(&mut to_client).await?;
        }
        Some(())
    };
    tokio::select! { _ = requests => {}, _ = answers => {} }
}

/// Serves on two ports: on the plain one the front chooses the shard, on the other the client does by its own port.
async fn front(seen: &Shared) -> SocketAddr {
    let host = address().parse::<SocketAddr>().unwrap().ip();
    let plain = TcpListener::bind((host, 0)).await.unwrap();
    let aware = TcpListener::bind((host, 0)).await.unwrap();
    let (address, aware_port) = (plain.local_addr().unwrap(), aware.local_addr().unwrap().port());
    for (listener, is_aware) in [(plain, false), (aware, true)] {
        let (seen, next) = (Arc::clone(seen), AtomicU16::new(0));
        tokio::spawn(async move {
            while let Ok((client, peer)) = listener.accept().await {
                let number = if is_aware { peer.port() } else { next.fetch_add(1, Ordering::Relaxed) };
                tokio::spawn(relay(client, number % SHARDS, aware_port, Arc::clone(&seen)));
            }
        });
    }
    address
}

/// The tokens of the keys, as the server computes them.
async fn tokens(backend: &CqlBackend) -> HashMap<i64, i64> {
    let session = backend.session().unwrap();
    let text = format!("SELECT id, token(id) FROM \"{}\".sharded", keyspace());
    let answer = session.query_unpaged(text, ()).await.unwrap().into_rows_result().unwrap();
    answer.rows::<(i64, i64)>().unwrap().map(|row| row.unwrap()).collect()
}

fn row(id: i64) -> Row {
    Row::new().with("id", id).with("v", "x")
}

async fn wait_for_every_shard(seen: &Shared) {
    for _ in 0..200 {
        // The control connection, too, is one to some shard.
        if seen.lock().unwrap().connections.len() == usize::from(SHARDS) {
            tokio::time::sleep(Duration::from_millis(200)).await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("connections by shard: {:?}", seen.lock().unwrap().connections);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_go_to_the_connection_of_the_shard_that_owns_the_partition() {
    let direct = Client::builder(connect().await).build();
    let spec = TableSpec::builder("sharded").partition("id", Type::I64).column("v", Type::Text).build().unwrap();
    direct.create_table(&spec).await.unwrap();
    let table = direct.table(spec.clone()).await.unwrap();
    table.put_all((0..ROWS).map(row)).await.unwrap().into_result().unwrap();

    let seen = Shared::default();
    seen.lock().unwrap().tokens = tokens(direct.native().unwrap()).await;
    let mut sharded = config().pool(1, PoolPer::Shard);
    sharded.hosts = vec![front(&seen).await.to_string()];
    let client = Client::builder(CqlBackend::connect(sharded).await.unwrap()).build();
    wait_for_every_shard(&seen).await;
    let table = client.table(spec).await.unwrap();
    for id in 0..ROWS {
        table.put(&row(id)).await.unwrap();
        assert_eq!(table.get(id).await.unwrap(), Some(row(id)));
    }
    client.close().await.unwrap();
    let seen = seen.lock().unwrap();
    let all = usize::try_from(2 * ROWS).unwrap();
    assert_eq!(seen.right + seen.wrong, all, "the front counts every request");
    assert!(seen.right * 100 >= all * 99, "{} right, {} wrong", seen.right, seen.wrong);
}
