//! What a contract case gets: a client, a name of its own, and time.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::client::Client;
use crate::clock::Clock;
use crate::model::TableBuilder;
use crate::model::{Order, Salt, TableSpec, Type};
use crate::table::Table;

/// A backend under test: its client, and the clock that it runs on if that is a manual one.
#[derive(Debug, Clone)]
pub struct Fixture {
    client: Client,
    clock: Option<Clock>,
    ties: bool,
    salt: Option<Salt>,
}

static TABLES: AtomicU32 = AtomicU32::new(0);

impl Fixture {
    /// A backend that runs on the system's time: cases that need time to pass sleep.
    pub fn new(client: Client) -> Self {
        Self { client, clock: None, ties: true, salt: None }
    }

    /// A backend on a manual clock, which cases move.
    pub fn with_clock(client: Client, clock: Clock) -> Self {
        Self { client, clock: Some(clock), ties: true, salt: None }
    }

    /// A backend that doesn't order values of equal write times: random histories give each step a time of its own.
    #[must_use]
    pub fn without_ties(self) -> Self {
        Self { ties: false, ..self }
    }

    /// The same backend, with every table salted.
    #[must_use]
    pub fn salted(self, salt: Salt) -> Self {
        Self { salt: Some(salt), ..self }
    }

    /// Whether values of equal write times have an order.
    pub(crate) fn has_ties(&self) -> bool {
        self.ties
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Lets time pass for the backend.
    pub async fn pass(&self, time: Duration) {
        match &self.clock {
            Some(clock) => clock.advance(time),
            None => tokio::time::sleep(time).await,
        }
    }

    /// Starts a table of a name that no other case has.
    pub fn table(&self) -> TableBuilder {
        let number = TABLES.fetch_add(1, Ordering::Relaxed);
        let table = TableSpec::builder(format!("contract_{}_{number}", std::process::id()));
        self.salt.into_iter().fold(table, TableBuilder::salt)
    }

    /// Makes a table, gives it to `case`, and drops it.
    pub async fn with_table<F: Future<Output = ()>>(&self, builder: TableBuilder, case: impl FnOnce(Table) -> F) {
        let spec = builder.build().unwrap();
        self.client.create_table(&spec).await.unwrap();
        let table = self.client.table(spec.clone()).await.unwrap();
        case(table).await;
        self.client.drop_table(spec.name()).await.unwrap();
        if self.client.capabilities().has(crate::Capability::Introspection) {
            assert_eq!(self.client.describe_table(spec.name()).await.unwrap(), None, "the case cleans up");
        }
    }

    /// `(id i64) → (title text, pages i64, note blob)`.
    pub fn books(&self) -> TableBuilder {
        let table = self.table().partition("id", Type::I64).column("title", Type::Text);
        table.column("pages", Type::I64).column("note", Type::Blob)
    }

    /// `(pk text), a i32 ascending, b text descending, c i64 ascending → (v blob)`.
    pub fn mixed_order(&self) -> TableBuilder {
        let table = self.table().partition("pk", Type::Text).clustering("a", Type::I32, Order::Ascending);
        let table = table.clustering("b", Type::Text, Order::Descending).clustering("c", Type::I64, Order::Ascending);
        table.column("v", Type::Blob)
    }
}
