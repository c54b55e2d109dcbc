//! What the benches share: rounds of two contenders in turn, and the ratio of each pair.
//!
//! Machines are noisy, so no figure stands alone: both contenders run in one process, a block each in turn, and what is
//! printed is the median of the pairs' ratios with the middle half around it.

use std::future::Future;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tokio::task::JoinSet;

/// What a block of operations took.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// Operations.
    pub operations: u64,
    /// From the first send to the last answer.
    pub wall: Duration,
    /// CPU time of this process, over all its threads.
    pub cpu: Duration,
}

impl Block {
    /// Operations per second.
    #[expect(clippy::cast_precision_loss, reason = "counts of a bench are far below 2^52")]
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.wall.as_secs_f64()
    }

    /// Microseconds of CPU per operation.
    #[expect(clippy::cast_precision_loss, reason = "counts of a bench are far below 2^52")]
    pub fn cpu_micros(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.operations as f64
    }
}

/// The CPU time that this process has used.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Runs `clients` tasks, each of which does `each` operations, one after the other; `start` makes the operation of a client,
/// which is given numbers that no other client gets.
pub async fn run<O, F>(clients: u64, each: u64, start: impl Fn() -> O) -> Block
where
    O: Fn(u64) -> F + Send + 'static,
    F: Future<Output = ()> + Send,
{
    let (begin, cpu) = (Instant::now(), cpu_time());
    let mut tasks = JoinSet::new();
    for client in 0..clients {
        let operation = start();
        tasks.spawn(async move {
            for number in 0..each {
                operation(client * each + number).await;
            }
        });
    }
    tasks.join_all().await;
    Block { operations: clients * each, wall: begin.elapsed(), cpu: cpu_time().saturating_sub(cpu) }
}

/// The same with a thread for each client, for clients that block.
pub fn run_blocking<O: FnMut(u64) + Send>(clients: u64, each: u64, start: impl Fn() -> O) -> Block {
    let (begin, cpu) = (Instant::now(), cpu_time());
    std::thread::scope(|scope| {
        for client in 0..clients {
            let mut operation = start();
            scope.spawn(move || (0..each).for_each(|number| operation(client * each + number)));
        }
    });
    Block { operations: clients * each, wall: begin.elapsed(), cpu: cpu_time().saturating_sub(cpu) }
}

/// The median and the middle half of some figures.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    /// A quarter is below.
    pub low: f64,
    /// Half is below.
    pub median: f64,
    /// A quarter is above.
    pub high: f64,
}

impl Spread {
    /// Of these figures; zeros where there is none.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |quarter: usize| sorted.get(sorted.len() * quarter / 4).copied().unwrap_or_default();
        Self { low: at(1), median: at(2), high: at(3) }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} ({:.3} to {:.3})", self.median, self.low, self.high)
    }
}

/// Prints one comparison: the figure of both contenders, and the ratio of the first to the second, pair by pair.
pub fn compare(title: &str, unit: &str, pairs: &[(Block, Block)], figure: impl Fn(&Block) -> f64) {
    let ours = Spread::of(pairs.iter().map(|(ours, _)| figure(ours)));
    let theirs = Spread::of(pairs.iter().map(|(_, theirs)| figure(theirs)));
    let ratio = Spread::of(pairs.iter().map(|(ours, theirs)| figure(ours) / figure(theirs)));
    println!("{title:<44} {:>12.2} {:>12.2} {unit:<8} ratio {ratio}", ours.median, theirs.median);
}
