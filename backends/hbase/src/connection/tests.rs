//! Connections against a gateway that misbehaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use peristyle_core::request::RequestOptions;
use peristyle_core::testkit::Kept;
use peristyle_core::{Endpoint, Endpoints, ErrorKind, Outcome, TimeoutPhase};
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TFieldIdentifier, TInputProtocol, TListIdentifier, TMessageIdentifier,
    TMessageType, TOutputProtocol, TType,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::HBaseConfig;
use crate::wire::Server;
use crate::wire::hbase2::TableArgs;

/// What the mock gateway does with one request.
#[derive(Debug, Clone, Copy)]
enum Reply {
    /// Says whether the table's name is `yes`.
    Right,
    /// The same, after so many milliseconds.
    Late(u64),
    /// The same, to another request.
    Shifted,
    /// Nothing.
    Never,
    /// Closes the connection.
    Hangup,
    /// The right reply, and then closes.
    Last,
}

struct Mock {
    address: String,
    connections: Arc<AtomicUsize>,
}

/// A gateway that treats its requests as this list says, over all connections, and the rest right.
async fn mock(replies: &'static [Reply]) -> Mock {
    mock_at("127.0.0.1:0", replies).await
}

async fn mock_at(address: &str, replies: &'static [Reply]) -> Mock {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let connections = Arc::new(AtomicUsize::new(0));
    let (counted, served) = (Arc::clone(&connections), Arc::new(AtomicUsize::new(0)));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve(stream, replies, Arc::clone(&served)));
        }
    });
    Mock { address, connections }
}

async fn serve(mut stream: TcpStream, replies: &'static [Reply], served: Arc<AtomicUsize>) {
    let mut buffer = vec![0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        let (name, sequence) = header(&buffer[..length]);
        let yes = buffer[..length].windows(3).any(|window| window == b"yes");
        let reply = replies.get(served.fetch_add(1, Ordering::SeqCst)).copied().unwrap_or(Reply::Right);
        match reply {
            Reply::Never => continue,
            Reply::Hangup => return,
            Reply::Late(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
            Reply::Right | Reply::Shifted | Reply::Last => {}
        }
        let shift = i32::from(matches!(reply, Reply::Shifted));
        if stream.write_all(&answer(&name, sequence + shift, yes)).await.is_err() || matches!(reply, Reply::Last) {
            return;
        }
    }
}

fn header(bytes: &[u8]) -> (String, i32) {
    let message = TBinaryInputProtocol::new(bytes, true).read_message_begin().unwrap();
    (message.name, message.sequence_number)
}

fn answer(name: &str, sequence: i32, yes: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = TBinaryOutputProtocol::new(&mut bytes, true);
    out.write_message_begin(&TMessageIdentifier::new(name, TMessageType::Reply, sequence)).unwrap();
    out.write_field_begin(&TFieldIdentifier::new("success", TType::Bool, 0)).unwrap();
    out.write_bool(yes).unwrap();
    out.write_field_stop().unwrap();
    bytes
}

fn config(gateways: &[&str]) -> HBaseConfig {
    HBaseConfig::new(gateways).request_timeout(Duration::from_millis(100))
}

async fn ask(gateways: &Gateways, config: &HBaseConfig, table: &str) -> peristyle_core::Result<bool> {
    let call = Call::new(&Arc::from(table), true, &RequestOptions::default(), config);
    gateways.call(&call, "ask", &TableArgs { table: table.into() }, read_bool).await
}

#[tokio::test]
async fn a_reply_that_comes_too_late_is_given_to_no_other_request() {
    let mock = mock(&[Reply::Late(200)]).await;
    let config = config(&[&mock.address]);
    let gateways = Gateways::new(&config).unwrap();
    let error = ask(&gateways, &config, "yes").await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Timeout(TimeoutPhase::Attempt), Outcome::Unknown));
    tokio::time::sleep(Duration::from_millis(250)).await;
    assert!(!ask(&gateways, &config, "no").await.unwrap(), "the answer to its own question");
    assert_eq!(mock.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_reply_to_another_request_closes_the_connection() {
    let mock = mock(&[Reply::Shifted]).await;
    let config = config(&[&mock.address]);
    let gateways = Gateways::new(&config).unwrap();
    let error = ask(&gateways, &config, "yes").await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Corrupt, Outcome::Unknown), "{error}");
    assert!(ask(&gateways, &config, "yes").await.unwrap());
    assert_eq!(mock.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_request_that_is_given_up_takes_its_connection_along() {
    let mock = mock(&[Reply::Late(30)]).await;
    let config = config(&[&mock.address]).pool(std::num::NonZeroUsize::MIN);
    let gateways = Gateways::new(&config).unwrap();
    let given_up = timeout(Duration::from_millis(10), ask(&gateways, &config, "yes")).await;
    assert!(given_up.is_err());
    assert!(!ask(&gateways, &config, "no").await.unwrap(), "the only place in the pool is free again");
    assert_eq!(mock.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_gateway_that_never_answers_costs_one_attempt_each_time() {
    let mock = mock(&[Reply::Never, Reply::Never]).await;
    let config = config(&[&mock.address]);
    let gateways = Gateways::new(&config).unwrap();
    for _ in 0..2 {
        let start = Instant::now();
        let error = ask(&gateways, &config, "yes").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout(TimeoutPhase::Attempt));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
    assert!(ask(&gateways, &config, "yes").await.unwrap());
}

#[tokio::test]
async fn requests_wait_for_a_connection_no_longer_than_their_limit() {
    let mock = mock(&[Reply::Late(5_000)]).await;
    let slow = config(&[&mock.address]).pool(std::num::NonZeroUsize::MIN).request_timeout(Duration::from_secs(5));
    let gateways = Arc::new(Gateways::new(&slow).unwrap());
    let first = {
        let (gateways, slow) = (Arc::clone(&gateways), slow.clone());
        tokio::spawn(async move { ask(&gateways, &slow, "yes").await })
    };
    while mock.connections.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let error = ask(&gateways, &config(&[&mock.address]), "no").await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Timeout(TimeoutPhase::Queue), Outcome::NotApplied));
    first.abort();
}

#[tokio::test]
async fn a_connection_that_the_gateway_closed_is_replaced_without_an_error() {
    let mock = mock(&[Reply::Last]).await;
    let config = config(&[&mock.address]);
    let gateways = Gateways::new(&config).unwrap();
    assert!(ask(&gateways, &config, "yes").await.unwrap());
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(ask(&gateways, &config, "yes").await.unwrap());
}

#[tokio::test]
async fn a_connection_that_breaks_under_a_write_leaves_doubt() {
    let mock = mock(&[Reply::Hangup]).await;
    let config = config(&[&mock.address]);
    let gateways = Gateways::new(&config).unwrap();
    let error = ask(&gateways, &config, "yes").await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::ConnectionLost, Outcome::Unknown));
    assert_eq!(error.attempts()[0].endpoint, mock.address);
}

/// A gateway that closes each connection behind its first answer, and counts the requests that came whole.
async fn closing(transport: Transport) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let whole = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&whole);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let counted = Arc::clone(&counted);
            tokio::spawn(async move {
                let mut request = Vec::new();
                let message = loop {
                    if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                        return;
                    }
                    let headers = request.windows(4).position(|window| window == b"\r\n\r\n");
                    let start = if transport == Transport::Http { headers.map(|end| end + 4) } else { Some(0) };
                    match start {
                        Some(start) if request.len() > start => break request.split_off(start),
                        _ => {}
                    }
                };
                counted.fetch_add(1, Ordering::SeqCst);
                let (name, sequence) = header(&message);
                let body = answer(&name, sequence, true);
                if transport == Transport::Http {
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                    stream.write_all(head.as_bytes()).await.unwrap();
                }
                stream.write_all(&body).await.unwrap();
            });
        }
    });
    (address, whole)
}

async fn requests_that_meet_connections_being_closed(transport: Transport) {
    let (address, whole) = closing(transport).await;
    let config = config(&[&address]).request_timeout(Duration::from_secs(5)).transport(transport);
    let gateways = Gateways::new(&config).unwrap();
    let mut applied = 0;
    for round in 0..300 {
        // From at once to when the connection is known to be closed.
        for _ in 0..round % 12 {
            tokio::task::yield_now().await;
        }
        let before = whole.load(Ordering::SeqCst);
        let outcome = ask(&gateways, &config, "yes").await;
        let came = whole.load(Ordering::SeqCst) - before;
        match outcome {
            Ok(yes) => {
                assert_eq!((yes, came), (true, 1), "once, in round {round}");
                applied += 1;
            }
            Err(error) => {
                assert_eq!((error.kind(), error.outcome()), (ErrorKind::ConnectionLost, Outcome::Unknown), "{error}");
                assert!(came <= 1, "in round {round}");
            }
        }
    }
    assert!(applied > 20, "{applied}");
}

#[tokio::test]
async fn a_request_on_a_socket_that_is_being_closed_is_made_once_or_in_doubt() {
    requests_that_meet_connections_being_closed(Transport::Buffered).await;
}

#[tokio::test]
async fn a_request_over_http_on_a_connection_that_is_being_closed_is_made_once_or_in_doubt() {
    requests_that_meet_connections_being_closed(Transport::Http).await;
}

/// A connection whose gateway has closed it, as far as this side knows by now.
async fn closed_connection(transport: Transport) -> Connection {
    let (address, _) = closing(transport).await;
    let wire = Wire { transport, protocol: crate::Protocol::Binary };
    let mut connection = Connection::open(&address, wire, None).await.unwrap();
    let request = connection.encode("ask", &TableArgs { table: "yes".into() }).unwrap();
    assert!(connection.exchange(request, "ask", read_bool).await.unwrap().unwrap());
    tokio::time::sleep(Duration::from_millis(20)).await;
    connection
}

#[tokio::test]
async fn a_request_over_http_that_finds_its_connection_closed_was_not_sent() {
    let mut connection = closed_connection(Transport::Http).await;
    let request = connection.encode("ask", &TableArgs { table: "yes".into() }).unwrap();
    let fault = connection.exchange(request, "ask", read_bool).await.unwrap_err();
    assert!(matches!(fault, Fault::Unfinished(_)), "{fault:?}");
}

#[tokio::test]
async fn a_request_that_the_system_takes_no_more_of_was_not_sent() {
    let mut connection = closed_connection(Transport::Buffered).await;
    let Link::Socket(stream) = &mut connection.link else { panic!("no socket") };
    // The first bytes draw a reset, at which writing ends.
    stream.write_all(&[0]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let request = connection.encode("ask", &TableArgs { table: "yes".into() }).unwrap();
    let fault = connection.exchange(request, "ask", read_bool).await.unwrap_err();
    assert!(matches!(fault, Fault::Unfinished(_)), "{fault:?}");
}

#[tokio::test]
async fn a_connection_that_was_idle_for_too_long_is_not_used_again() {
    let mock = mock(&[]).await;
    let mut config = config(&[&mock.address]);
    config.idle_timeout = Duration::from_millis(30);
    let gateways = Gateways::new(&config).unwrap();
    for pause in [0, 0, 60] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        assert!(ask(&gateways, &config, "yes").await.unwrap());
    }
    assert_eq!(mock.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn another_gateway_takes_over_where_one_cannot_be_reached() {
    let mock = mock(&[]).await;
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let both = config(&[&closed, &mock.address]);
    let gateways = Gateways::new(&both).unwrap();
    for _ in 0..4 {
        assert!(ask(&gateways, &both, "yes").await.unwrap());
    }
    let alone = config(&[&closed]);
    let error = ask(&Gateways::new(&alone).unwrap(), &alone, "yes").await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unavailable, Outcome::NotApplied));
    assert!(error.to_string().contains(&closed), "{error}");
}

#[tokio::test]
async fn a_request_over_the_limit_is_not_sent() {
    let mock = mock(&[]).await;
    let mut config = config(&[&mock.address]);
    config.max_request_bytes = 128 << 10;
    let error = ask(&Gateways::new(&config).unwrap(), &config, &"a".repeat(128 << 10)).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::TooLarge, Outcome::NotApplied));
}

#[tokio::test]
async fn a_request_goes_to_the_gateway_of_its_host_while_that_can_be_reached() {
    let here = mock(&[]).await;
    let there = mock_at("127.0.0.2:0", &[]).await;
    let config = config(&[&here.address, &there.address]);
    let gateways = Gateways::new(&config).unwrap();
    let place = |host: &str| gateways.place_of(&Server { host: host.into(), port: 16020 });
    assert_eq!((place("127.0.0.2").as_deref(), place("127.0.0.3")), (Some("127.0.0.2"), None));
    let call = Call::new(&Arc::from("yes"), true, &RequestOptions::default(), &config).at(Some("127.0.0.2".into()));
    for _ in 0..4 {
        assert!(gateways.call(&call, "ask", &TableArgs { table: "yes".into() }, read_bool).await.unwrap());
    }
    let counted = [&here, &there].map(|mock| mock.connections.load(Ordering::SeqCst));
    assert_eq!(counted, [0, 1]);
}

#[tokio::test]
async fn a_request_goes_to_the_gateway_that_is_said_to_sit_with_its_server() {
    let (one, other) = (mock(&[]).await, mock(&[]).await);
    let mut config = config(&[&one.address, &other.address]);
    config.colocated = vec![("rs:16021".into(), other.address.clone()), ("rs".into(), one.address.clone())];
    let gateways = Gateways::new(&config).unwrap();
    let places = [16020, 16021].map(|port| gateways.place_of(&Server { host: "rs".into(), port }).unwrap());
    assert_eq!(places.each_ref().map(|place| &**place), [&*one.address, &*other.address]);
    let [_, place] = places;
    let call = Call::new(&Arc::from("yes"), true, &RequestOptions::default(), &config).at(Some(place));
    for _ in 0..4 {
        assert!(gateways.call(&call, "ask", &TableArgs { table: "yes".into() }, read_bool).await.unwrap());
    }
    let counted = [&one, &other].map(|mock| mock.connections.load(Ordering::SeqCst));
    assert_eq!(counted, [0, 1]);
}

/// A call for a gateway that the layers chose.
fn chosen(gateway: &str, config: &HBaseConfig) -> Call {
    let mut options = RequestOptions::default();
    options.endpoint = Some(Endpoint::named(gateway));
    Call::new(&Arc::from("yes"), true, &options, config)
}

#[tokio::test]
async fn a_request_goes_to_the_gateway_that_the_layers_chose_whatever_its_place() {
    let (one, other) = (mock(&[]).await, mock(&[]).await);
    let config = config(&[&one.address, &other.address]);
    let gateways = Gateways::new(&config).unwrap();
    let names = |endpoints: Endpoints| endpoints.iter().map(Endpoint::name).collect::<Vec<_>>();
    assert_eq!(names(gateways.endpoints(Some(&other.address))), [&*other.address, &*one.address]);
    assert_eq!((gateways.count(), gateways.only()), (2, None));
    let call = chosen(&other.address, &config).at(Some(one.address.as_str().into()));
    for _ in 0..4 {
        assert!(gateways.call(&call, "ask", &TableArgs { table: "yes".into() }, read_bool).await.unwrap());
    }
    let counted = [&one, &other].map(|mock| mock.connections.load(Ordering::SeqCst));
    assert_eq!(counted, [0, 1]);
}

#[tokio::test]
async fn one_that_cannot_be_reached_is_left_out_while_there_are_others() {
    let there = mock(&[]).await;
    let config = config(&["127.0.0.1:1", &there.address]);
    let gateways = Gateways::new(&config).unwrap();
    let call = chosen("127.0.0.1:1", &config);
    assert!(gateways.call(&call, "ask", &TableArgs { table: "yes".into() }, read_bool).await.unwrap());
    let left: Vec<_> = gateways.endpoints(Some("127.0.0.1:1")).iter().map(Endpoint::name).collect();
    assert_eq!(left, [&*there.address]);
    let alone = Gateways::new(&self::config(&["127.0.0.1:1"])).unwrap();
    assert_eq!(alone.only(), Some(Endpoint::named("127.0.0.1:1")));
}

#[test]
fn open_connections_and_room_for_more_are_told_by_gateway() {
    let kept = Kept::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let address = metrics::with_local_recorder(&kept, || {
        runtime.block_on(async {
            let mock = mock(&[Reply::Right, Reply::Hangup]).await;
            let config = config(&[&mock.address]).pool(3.try_into().unwrap());
            let gateways = Gateways::new(&config).unwrap();
            assert!(ask(&gateways, &config, "yes").await.unwrap());
            // The gateway closes this one, and another is opened for the next.
            assert!(ask(&gateways, &config, "yes").await.is_err());
            assert!(ask(&gateways, &config, "yes").await.unwrap());
            mock.address
        })
    });
    let gauge = |name: &str| kept.values(&format!("nodes.pool.{name}{{system=hbase,node={address}}}"));
    assert_eq!(gauge("open-connections"), [1.0, -1.0, 1.0, -1.0], "the last is closed with the gateways");
    assert_eq!(gauge("available-streams"), [3.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0]);
}

#[tokio::test]
async fn a_long_reply_that_comes_in_pieces_and_with_pauses_is_read_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let items: Vec<Vec<u8>> = (0..1_000).map(|place| vec![u8::try_from(place % 251).unwrap(); 1_000]).collect();
    let sent = items.clone();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = vec![0; 4096];
        let length = stream.read(&mut buffer).await.unwrap();
        let (name, sequence) = header(&buffer[..length]);
        for piece in listed(&name, sequence, &sent).chunks(70_000) {
            stream.write_all(piece).await.unwrap();
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        stream.read_u8().await.unwrap_err();
    });
    let config = config(&[&address]).request_timeout(Duration::from_secs(30));
    let gateways = Gateways::new(&config).unwrap();
    let call = Call::new(&Arc::from("t"), false, &RequestOptions::default(), &config);
    let found = gateways.call(&call, "ask", &TableArgs { table: "t".into() }, read_bytes_list).await.unwrap();
    assert!(found == items);
}

fn listed(name: &str, sequence: i32, items: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = TBinaryOutputProtocol::new(&mut bytes, true);
    out.write_message_begin(&TMessageIdentifier::new(name, TMessageType::Reply, sequence)).unwrap();
    out.write_field_begin(&TFieldIdentifier::new("success", TType::List, 0)).unwrap();
    out.write_list_begin(&TListIdentifier::new(TType::String, i32::try_from(items.len()).unwrap())).unwrap();
    for item in items {
        out.write_bytes(item).unwrap();
    }
    out.write_field_stop().unwrap();
    bytes
}
