//! What is prepared, found again without a lock and without an allocation.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use peristyle_core::model::TableSpec;
use peristyle_core::{Error, Result};
use scylla::statement::batch::Batch;
use scylla::statement::prepared::PreparedStatement;

use super::batches::Batches;
use super::{Shape, Slot};
use crate::spread::Spread;

/// The most shapes kept of one table. A program has a few; one that makes shapes without end must not fill the memory.
const MAX_SHAPES: usize = 1_024;

/// The most declarations kept. A program has one for each table; one that declares without end must not fill the memory.
const MAX_DECLARATIONS: usize = 256;

/// A prepared statement and how its answers are read.
#[derive(Debug, Clone)]
#[repr(align(128))]
pub(crate) struct Statement {
    pub(crate) prepared: PreparedStatement,
    /// The columns of the answer; empty for a write.
    pub(crate) slots: Vec<Slot>,
    batches: Arc<Batches>,
}

impl Statement {
    pub(crate) fn new(prepared: PreparedStatement, slots: Vec<Slot>) -> Self {
        Self { prepared, slots, batches: Arc::default() }
    }

    /// An unlogged batch of so many of it.
    pub(crate) fn repeated(&self, count: usize) -> Arc<Batch> {
        self.batches.of(&self.prepared, count)
    }
}

/// What is kept, and whether it was used again since the last time room was made.
#[derive(Debug)]
struct Kept<T> {
    content: Spread<T>,
    used: AtomicBool,
}

/// One preparation, awaited by all who need it. Whoever of them polls it drives it, so none of them owns it.
type Preparation<T> = Shared<BoxFuture<'static, Result<Arc<Kept<T>>, Arc<Error>>>>;

/// Tables by the address of their declaration, which their entry keeps alive, so that no other can have it.
type Tables<T> = HashMap<usize, Arc<TableStatements<T>>, BuildHasherDefault<Quick>>;

/// The prepared statements of a session, by declaration and shape.
#[derive(Debug)]
pub(crate) struct StatementCache<T = Statement> {
    tables: ArcSwap<Tables<T>>,
    /// What is being prepared. Taken by those who change `tables` too.
    pending: Mutex<HashMap<(usize, Shape), Preparation<T>>>,
}

#[derive(Debug)]
struct TableStatements<T> {
    spec: Arc<TableSpec>,
    shapes: HashMap<Shape, Arc<Kept<T>>, BuildHasherDefault<Quick>>,
}

impl<T> Default for StatementCache<T> {
    fn default() -> Self {
        Self { tables: ArcSwap::default(), pending: Mutex::default() }
    }
}

impl<T: Clone + Send + Sync + 'static> StatementCache<T> {
    /// The statement, if it is prepared.
    pub(crate) fn get(&self, table: &Arc<TableSpec>, shape: &Shape) -> Option<Arc<T>> {
        let tables = self.tables.load();
        let statement = tables.get(&address(table))?.shapes.get(shape)?;
        if !statement.used.load(Ordering::Relaxed) {
            statement.used.store(true, Ordering::Relaxed);
        }
        Some(statement.content.get())
    }

    /// The statement, prepared by `prepare` unless it is or is about to be.
    pub(crate) async fn get_or_prepare<F>(
        &self,
        table: &Arc<TableSpec>,
        shape: Shape,
        prepare: impl FnOnce() -> F,
    ) -> Result<Arc<T>>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let key = (address(table), shape);
        let preparation = {
            let mut pending = lock(&self.pending);
            if let Some(statement) = self.equal(table, &key.1) {
                self.keep(table, key.1, Arc::clone(&statement));
                return Ok(statement.content.get());
            }
            let keep = |content| Arc::new(Kept { content: Spread::new(&content), used: AtomicBool::new(false) });
            let begin = || prepare().map(move |outcome| outcome.map(keep).map_err(Arc::new)).boxed().shared();
            pending.entry(key.clone()).or_insert_with(begin).clone()
        };
        let outcome = preparation.clone().await;
        let mut pending = lock(&self.pending);
        // Only the first of those who waited finds it still pending.
        if pending.get(&key).is_some_and(|current| current.ptr_eq(&preparation)) {
            pending.remove(&key);
            if let Ok(statement) = &outcome {
                self.keep(table, key.1, Arc::clone(statement));
            }
        }
        outcome.map(|statement| statement.content.get()).map_err(|error| error.share())
    }

    /// Forgets all statements of a table, because it changed.
    pub(crate) fn forget(&self, name: &str) {
        let _pending = lock(&self.pending);
        let mut tables = Tables::clone(&self.tables.load());
        tables.retain(|_, declared| &**declared.spec.name() != name);
        self.tables.store(Arc::new(tables));
    }

    /// Forgets everything, preparations included.
    pub(crate) fn clear(&self) {
        let mut pending = lock(&self.pending);
        pending.clear();
        self.tables.store(Arc::default());
    }

    /// The statement of an equal declaration that was made apart.
    fn equal(&self, table: &TableSpec, shape: &Shape) -> Option<Arc<Kept<T>>> {
        let tables = self.tables.load();
        let mut equal = tables.values().filter(|declared| *declared.spec == *table);
        equal.find_map(|declared| declared.shapes.get(shape)).map(Arc::clone)
    }

    /// Adds a statement; the caller holds the lock. Declarations beyond the limit make all others go, and shapes beyond it
    /// those that were not used again since the last time, or all if that is none.
    fn keep(&self, table: &Arc<TableSpec>, shape: Shape, statement: Arc<Kept<T>>) {
        let mut tables = Tables::clone(&self.tables.load());
        let mut shapes = tables.get(&address(table)).map(|declared| declared.shapes.clone()).unwrap_or_default();
        if shapes.len() >= MAX_SHAPES {
            shapes.retain(|_, statement| statement.used.swap(false, Ordering::Relaxed));
            if shapes.len() >= MAX_SHAPES {
                shapes.clear();
            }
        }
        shapes.insert(shape, statement);
        if tables.len() >= MAX_DECLARATIONS && !tables.contains_key(&address(table)) {
            tables.clear();
        }
        tables.insert(address(table), Arc::new(TableStatements { spec: Arc::clone(table), shapes }));
        self.tables.store(Arc::new(tables));
    }
}

fn address(table: &Arc<TableSpec>) -> usize {
    Arc::as_ptr(table).addr()
}

/// A hash for keys that nobody chooses in bad faith: addresses and shapes. The standard one takes longer than all the rest
/// of a lookup.
#[derive(Debug, Default)]
struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // Multiplied with a random odd number, as Fx does, and the good upper bits brought down.
        let mixed = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

/// Nothing that is done under these locks leaves half a change, so a panic elsewhere doesn't spoil them.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures::future::pending;
    use peristyle_core::model::Type;
    use tokio::sync::Notify;

    use super::*;

    fn table(value: Type) -> Arc<TableSpec> {
        Arc::new(TableSpec::builder("t").partition("id", Type::I64).column("v", value).build().unwrap())
    }

    fn shape(column: usize) -> Shape {
        Shape::DeleteColumns { columns: std::iter::once(column).collect() }
    }

    #[tokio::test]
    async fn a_statement_is_prepared_once_for_each_shape_and_declaration() {
        let cache = StatementCache::<usize>::default();
        let prepared = AtomicUsize::new(0);
        let count = || {
            let number = prepared.fetch_add(1, Ordering::Relaxed);
            async move { Ok(number) }
        };
        let (first, other) = (table(Type::Text), table(Type::Blob));
        assert!(cache.get(&first, &shape(1)).is_none());
        assert_eq!(*cache.get_or_prepare(&first, shape(1), count).await.unwrap(), 0);
        assert_eq!(*cache.get_or_prepare(&first, shape(1), count).await.unwrap(), 0);
        assert_eq!(*cache.get_or_prepare(&first, shape(2), count).await.unwrap(), 1);
        assert_eq!(*cache.get_or_prepare(&other, shape(1), count).await.unwrap(), 2);
        // The same declaration made twice is prepared once.
        let twin = table(Type::Text);
        assert_eq!(*cache.get_or_prepare(&twin, shape(1), count).await.unwrap(), 0);
        assert_eq!(*cache.get(&twin, &shape(1)).unwrap(), 0);
        cache.forget("t");
        assert!(cache.get(&first, &shape(1)).is_none());
    }

    #[tokio::test]
    async fn callers_at_once_share_one_preparation_and_survive_the_first_leaving() {
        let cache = Arc::new(StatementCache::<u8>::default());
        let table = table(Type::Text);
        let go = Arc::new(Notify::new());
        let begun = Arc::new(AtomicUsize::new(0));
        let ask = || {
            let (cache, table, go, begun) = (cache.clone(), table.clone(), go.clone(), begun.clone());
            tokio::spawn(async move {
                let prepare = || async move {
                    begun.fetch_add(1, Ordering::Relaxed);
                    go.notified().await;
                    Ok(7)
                };
                cache.get_or_prepare(&table, shape(1), prepare).await
            })
        };
        let first = ask();
        tokio::task::yield_now().await;
        let second = ask();
        tokio::task::yield_now().await;
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        go.notify_one();
        assert_eq!(*second.await.unwrap().unwrap(), 7);
        assert_eq!(begun.load(Ordering::Relaxed), 1);
        assert!(cache.get(&table, &shape(1)).is_some());
    }

    #[tokio::test]
    async fn a_failed_preparation_is_shared_and_then_tried_again() {
        let cache = StatementCache::<u8>::default();
        let table = table(Type::Text);
        let fail = || async { Err(Error::invalid("no")) };
        assert_eq!(cache.get_or_prepare(&table, shape(1), fail).await.unwrap_err().message(), "no");
        assert_eq!(*cache.get_or_prepare(&table, shape(1), || async { Ok(1) }).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn the_number_of_shapes_and_declarations_is_bounded() {
        let cache = StatementCache::<usize>::default();
        let declared = table(Type::Text);
        for column in 0..3 * MAX_SHAPES {
            cache.get_or_prepare(&declared, shape(column), || async { Ok(0) }).await.unwrap();
        }
        assert!(cache.tables.load().values().all(|declared| declared.shapes.len() <= MAX_SHAPES));
        for number in 0..3 * MAX_DECLARATIONS {
            let other = TableSpec::builder("t").partition(format!("id{number}"), Type::I64).build().unwrap();
            cache.get_or_prepare(&Arc::new(other), shape(1), || async { Ok(0) }).await.unwrap();
        }
        assert!(cache.tables.load().len() <= MAX_DECLARATIONS);
        assert!(lock(&cache.pending).is_empty());
    }

    #[tokio::test]
    async fn statements_in_use_stay_when_room_is_made() {
        let cache = StatementCache::<usize>::default();
        let table = table(Type::Text);
        for column in 0..5 * MAX_SHAPES {
            cache.get_or_prepare(&table, shape(column), || async { Ok(0) }).await.unwrap();
            assert!(cache.get(&table, &shape(0)).is_some(), "after {column}");
        }
    }

    #[tokio::test]
    async fn a_preparation_without_end_holds_up_nobody_else() {
        let cache = StatementCache::<u8>::default();
        let table = table(Type::Text);
        let mut stuck = Box::pin(cache.get_or_prepare(&table, shape(1), pending));
        assert!(futures::poll!(&mut stuck).is_pending());
        assert_eq!(*cache.get_or_prepare(&table, shape(2), || async { Ok(2) }).await.unwrap(), 2);
    }
}
