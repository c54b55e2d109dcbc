use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use tokio::time::{Instant, sleep, timeout};

use super::ring::{NODES, Ring};
use crate::client::{Client, ClientBuilder};
use crate::endpoint::Endpoint;
use crate::error::{Error, ErrorKind, Outcome};
use crate::layers::testing::{get_of, ok, put_all};
use crate::layers::{Autopilot, Budget, CircuitPolicy, RetryPolicy};
use crate::request::{Action, Condition, Mutation, Request, Write};

const LATENCY: Duration = Duration::from_millis(10);

fn busy() -> Error {
    Error::new(ErrorKind::Overloaded, "busy")
}

/// A ring whose first node fails everything, after as long as others take to answer.
fn failing(replicas: usize) -> Ring {
    Ring::new(replicas, |node, request| async move {
        sleep(LATENCY).await;
        if node == 0 { Err(busy()) } else { ok(&request) }
    })
}

/// A ring whose first node takes requests and never answers.
fn hanging(replicas: usize) -> Ring {
    Ring::new(replicas, |node, request| async move {
        if node == 0 {
            std::future::pending::<()>().await;
        }
        sleep(LATENCY).await;
        ok(&request)
    })
}

fn client(ring: &Ring, setting: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Client {
    setting(Client::builder(ring.clone()).without_observe()).build()
}

fn few(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

/// Callers of one partition without end; how many of their calls succeeded within that time, and how many failed.
async fn drive(client: &Client, callers: usize, partition: i64, seconds: u64) -> (usize, usize) {
    let end = Instant::now() + Duration::from_secs(seconds);
    let caller = async || {
        let mut done = (0, 0);
        while Instant::now() < end {
            match client.call(get_of(partition)).await {
                Ok(_) => done.0 += 1,
                Err(_) => {
                    done.1 += 1;
                    sleep(LATENCY).await;
                }
            }
        }
        done
    };
    let done = join_all((0..callers).map(|_| caller())).await;
    done.into_iter().fold((0, 0), |(all, failed), (more, more_failed)| (all + more, failed + more_failed))
}

#[tokio::test(start_paused = true)]
async fn with_one_endpoint_nobody_asks_for_owners() {
    let ring = failing(1).width(1);
    client(&ring, ClientBuilder::without_retry).call(get_of(1)).await.unwrap_err();
    assert_eq!(ring.calls(), [None]);
}

#[tokio::test(start_paused = true)]
async fn off_it_leaves_the_choice_to_the_backend() {
    let ring = failing(1);
    client(&ring, ClientBuilder::without_route).call(get_of(0)).await.unwrap_err();
    assert_eq!(ring.calls(), [None; 4]);
}

#[tokio::test(start_paused = true)]
async fn replicas_take_turns_and_what_needs_the_first_owner_goes_there() {
    let ring = Ring::new(2, |_, request| async move { ok(&request) });
    let client = client(&ring, |builder| builder);
    for _ in 0..100 {
        client.call(get_of(4)).await.unwrap();
    }
    let shares = [0, 1, 2].map(|node| ring.calls_of(node));
    assert!(shares[0] == 0 && shares[1].min(shares[2]) > 20, "{shares:?}");

    let pinned = get_of(4).with_options(crate::request::RequestOptions {
        endpoint: Some(Endpoint::named(NODES[0])),
        ..Default::default()
    });
    client.call(pinned).await.unwrap();
    assert_eq!(ring.calls_of(0), 1, "a request that brings an endpoint keeps it");

    let mut requests = vec![put_all([5, 8, 11])];
    let Action::Write { table, write: Write::ApplyAll(rows) } = put_all([5]).action else { panic!() };
    let mutation: Mutation = rows.into_iter().next().unwrap();
    requests.push(Request::write(table, Write::CompareAndPut { mutation, condition: Condition::RowAbsent }));
    let router = crate::endpoint::Router::new(Arc::new(ring));
    for request in requests {
        for _ in 0..20 {
            assert_eq!(router.choose(&request, None), Some(Endpoint::named(NODES[2])), "{}", request.operation());
        }
        assert_eq!(router.choose(&request, Some(Endpoint::named(NODES[2]))), Some(Endpoint::named(NODES[0])));
    }
}

#[tokio::test(start_paused = true)]
async fn a_circuit_that_is_open_at_one_of_three_leaves_the_others_at_full_speed() {
    let ring = failing(1);
    let client = client(&ring, |builder| builder.without_retry().circuit(CircuitPolicy::default()));
    let (of_0, of_1, of_2) =
        futures::join!(drive(&client, 4, 0, 10), drive(&client, 4, 1, 10), drive(&client, 4, 2, 10));
    // 4 callers, 10 s, 10 ms each.
    assert_eq!((of_1, of_2), ((4_000, 0), (4_000, 0)));
    assert!(of_0.0 == 0 && of_0.1 > 1_000, "{of_0:?}");
    assert!(ring.calls_of(0) < 50, "{} calls to the one that fails", ring.calls_of(0));
    let refusal = client.call(get_of(0)).await.unwrap_err();
    assert_eq!((refusal.kind(), refusal.outcome()), (ErrorKind::Unavailable, Outcome::NotApplied));
    assert!(refusal.to_string().contains(NODES[0]), "{refusal}");
}

#[tokio::test(start_paused = true)]
async fn where_there_are_replicas_an_open_circuit_fails_nothing() {
    let ring = failing(3);
    let client = client(&ring, |builder| builder.circuit(CircuitPolicy::default()));
    let partitions: Vec<_> = (0..3).map(|partition| drive(&client, 4, partition, 20)).collect();
    let done = join_all(partitions).await;
    assert!(done.iter().all(|(_, failed)| *failed == 0), "{done:?}");
    // It is probed after 1, 2, 4 and 8 s.
    assert!((20..60).contains(&ring.calls_of(0)), "{}", ring.calls_of(0));
}

#[tokio::test(start_paused = true)]
async fn a_retry_goes_to_another_replica() {
    let ring = failing(3);
    let policy = RetryPolicy::default().attempts(2);
    let client = client(&ring, |builder| builder.retry(policy));
    let answers = join_all((0..60).map(|partition| client.call(get_of(partition)))).await;
    assert!(answers.iter().all(Result::is_ok));
    let failed = ring.calls_of(0);
    assert!(failed > 5, "some are sent to each first: {failed}");
    assert_eq!(ring.calls().len(), 60 + failed);
}

#[tokio::test(start_paused = true)]
async fn the_errors_of_all_replicas_are_told_by_name() {
    let ring = Ring::new(3, |_, _| async { Err(busy()) });
    let client = client(&ring, |builder| builder.retry(RetryPolicy::default().attempts(3)));
    let error = client.call(get_of(0)).await.unwrap_err();
    let mut names: Vec<&str> = error.attempts().iter().map(|attempt| attempt.endpoint.as_str()).collect();
    // The third one may go to any but the second.
    assert!(names.len() == 3 && names[0] != names[1] && names[1] != names[2], "{names:?}");
    names.sort_unstable();
    assert!(names.iter().all(|name| NODES.contains(name)), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_spends_its_own_budget_of_retries_and_no_other() {
    let first = Arc::new(AtomicUsize::new(0));
    let ring = Ring::new(1, move |node, request| {
        let first = Arc::clone(&first);
        async move {
            let is_first = node == 1 && first.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
            if node == 0 || is_first { Err(busy()) } else { ok(&request) }
        }
    });
    let policy = RetryPolicy::default().budget(Budget::new(20, 0.0));
    let client = client(&ring, |builder| builder.retry(policy.clone()));
    let lost = join_all((0..500).map(|_| client.call(get_of(0)))).await;
    assert!(lost.iter().all(Result::is_err));
    assert_eq!(ring.calls_of(0), 500 + 20);
    for _ in 0..20 {
        assert!(client.call(get_of(1)).await.is_ok(), "retries of another one are left");
    }
    assert!(client.call(get_of(1)).await.is_err(), "and theirs are bounded too");
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_takes_no_more_than_its_share_of_the_permits() {
    let ring = hanging(1);
    let client = client(&ring, |builder| builder.concurrency(few(12)).without_retry());
    // It hangs from the first request on, before there was one to the others.
    let stuck = join_all((0..100).map(|_| client.call(get_of(0))));
    let others = async {
        sleep(Duration::from_secs(1)).await;
        futures::join!(drive(&client, 3, 1, 10), drive(&client, 3, 2, 10))
    };
    let (stuck, others) = futures::join!(timeout(Duration::from_secs(12), stuck), others);
    assert!(stuck.is_err());
    assert_eq!(others, ((3_000, 0), (3_000, 0)));
    assert_eq!(ring.calls_of(0), 6);
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_fills_its_own_queue_and_no_other() {
    let ring = hanging(1);
    let router = crate::endpoint::Router::new(Arc::new(ring.clone()));
    let limit = crate::layers::ConcurrencyLayer::with_queue(few(3), 30).routed(&router);
    let service = tower::Layer::layer(&limit, crate::backend::BackendService::new(Arc::new(ring)));
    let send = |partition: i64| {
        let request = get_of(partition);
        let endpoint = router.choose(&request, None);
        let options = crate::request::RequestOptions { endpoint, ..request.options };
        tower::ServiceExt::oneshot(service.clone(), request.with_options(options))
    };
    let stuck = timeout(Duration::from_secs(5), join_all((0..100).map(|_| timeout(LATENCY, send(0)))));
    let (stuck, others) = futures::join!(stuck, join_all((0..8).map(|number| send(1 + number % 2))));
    let refused = stuck.unwrap().into_iter().flatten().filter(Result::is_err).count();
    // Two are under way, a third of the queue waits.
    assert_eq!(refused, 100 - 2 - 10);
    assert!(others.iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn a_second_read_goes_to_another_replica() {
    let ring = hanging(3);
    let client = client(&ring, |builder| builder.hedge(Duration::from_millis(5)).without_retry());
    let start = Instant::now();
    for partition in 0..30 {
        client.call(get_of(partition)).await.unwrap();
    }
    assert!(ring.calls_of(0) > 2 && start.elapsed() < Duration::from_millis(30 * 20), "{:?}", start.elapsed());
}

/// Nodes that answer so many at a time, each after 100 ms on average, and let the others wait.
fn plateaus(knees: [usize; 3]) -> (Ring, Arc<[AtomicUsize; 3]>) {
    let under_way = Arc::new([const { AtomicUsize::new(0) }; 3]);
    let counted = Arc::clone(&under_way);
    let dice = Arc::new(std::sync::Mutex::new(fastrand::Rng::with_seed(7)));
    let lanes = knees.map(|knee| Arc::new(tokio::sync::Semaphore::new(knee)));
    let ring = Ring::new(1, move |node, request| {
        let (counted, dice, lane) = (Arc::clone(&counted), Arc::clone(&dice), Arc::clone(&lanes[node]));
        async move {
            counted[node].fetch_add(1, Ordering::SeqCst);
            let turn = lane.acquire_owned().await.unwrap();
            let spread = 0.5 + dice.lock().unwrap().f64();
            sleep((10 * LATENCY).mul_f64(spread)).await;
            drop(turn);
            counted[node].fetch_sub(1, Ordering::SeqCst);
            ok(&request)
        }
    });
    (ring, under_way)
}

#[tokio::test(start_paused = true)]
async fn the_autopilot_finds_the_knee_of_each_endpoint() {
    let knees = [5, 20, 20];
    let (ring, under_way) = plateaus(knees);
    let client = client(&ring, |builder| builder.autopilot(Autopilot::default()));
    let load = |seconds| {
        let client = &client;
        async move { join_all((0..3).map(|partition| drive(client, 60, partition, seconds))).await }
    };
    load(100).await;
    let watch = async {
        let mut sums = [0; 3];
        for _ in 0..40 {
            sleep(Duration::from_secs(1)).await;
            sums.iter_mut().zip(&*under_way).for_each(|(sum, now)| *sum += now.load(Ordering::SeqCst));
        }
        sums.map(|sum| sum / 40)
    };
    let (done, mean) = futures::join!(load(40), watch);
    for ((knee, (done, _)), mean) in knees.into_iter().zip(done).zip(mean) {
        let most = knee * 10 * 40;
        assert!(done * 10 >= most * 9, "{done} answers of {most} possible");
        assert!(mean <= knee + knee / 2 + 1, "{mean} under way at a knee of {knee}");
    }
}
