use tokio::runtime::Builder;

use super::*;
use crate::client::Client;
use crate::testkit::{Fixture, cases, random_histories};

fn fixture() -> Fixture {
    let clock = Clock::manual(Clock::system().micros());
    let backend = MemoryBackend::with_clock(clock.clone());
    Fixture::with_clock(Client::builder(backend).clock(clock.clone()).build(), clock)
}

#[tokio::test]
async fn the_contract_holds() {
    let fixture = fixture();
    let mut run = 0;
    for case in cases().filter(|case| fixture.client().require(case.needs).is_ok()) {
        println!("{}", case.name);
        (case.run)(&fixture).await;
        run += 1;
    }
    assert!(run > 50, "only {run} cases ran");
}

#[test]
fn histories_repeat_themselves() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    random_histories(runtime.handle(), &Fixture::new(Client::builder(MemoryBackend::new()).build()), 16);
}

#[tokio::test]
async fn a_closed_backend_says_so() {
    let client = Client::builder(MemoryBackend::new()).build();
    client.close().await.unwrap();
    let error = client.describe_table("t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
}
