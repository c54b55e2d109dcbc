//! What ends the rise of throughput, as one word for programs and a sentence for people, with one of what to do.

use serde::{Deserialize, Serialize};

use super::figures::cpu;
use super::table::percent;
use super::{Model, Outcome, Window};
use crate::machine::CpuShares;
use crate::plan::Plan;
use crate::search::{COLLAPSE, Ceiling, DELTA, NOT_REACHED, Verdict};
use crate::space::{Axis, Point};
use crate::stats::real;

/// From this share on a machine, or the client's threads, count as full.
const FULL: f64 = 0.9;
/// From this share of the machine on, the client's own work is its limit.
const CLIENT_BOUND: f64 = 0.8;
/// The generator's share of the client's time that spoils a measurement.
const GENERATOR: f64 = 0.2;
/// A ceiling within this ratio of the knee is what holds it.
const NEAR: u32 = 2;
/// Errors that say that a request is too large, not that it came at a bad time.
const REFUSALS: [&str; 2] = ["too_large", "invalid_argument"];
/// Contention that is worth a word.
const CONTENTION: f64 = 0.005;

/// What ends the rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    /// Requests fail.
    Errors,
    /// A latency objective is missed.
    Objective,
    /// Throughput breaks down.
    Collapse,
    /// The connections: more requests wait in the client for a free one.
    Connections,
    /// Requests of more rows fail.
    BatchThreshold,
    /// The client's processor.
    ClientBound,
    /// Making the requests.
    GeneratorBound,
    /// Client and server share a machine that is full.
    MachineFull,
    /// Pairs of clients hinder each other: throughput has a peak.
    Coherency,
    /// Clients queue for something shared: throughput has a limit.
    Contention,
    /// The range: throughput still rises at its end.
    Range,
    /// The offered rate: it was reached.
    OfferedRate,
    /// The capacity: a higher rate was offered and not reached.
    Capacity,
    /// Nothing that can be told from outside.
    Unknown,
}

/// A limit, why, and what to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Explanation {
    pub(crate) limit: Limit,
    pub(crate) why: String,
    pub(crate) advice: String,
}

impl Explanation {
    fn new(limit: Limit, why: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { limit, why: why.into(), advice: advice.into() }
    }

    /// The limit at the chosen point.
    pub(crate) fn of(plan: &Plan, outcome: &Outcome, model: Option<&Model>) -> Self {
        let answer = &outcome.answer;
        let Some(choice) = answer.knee.as_ref().or(answer.peak.as_ref()) else {
            return nothing_works(answer.ceiling.as_ref());
        };
        if answer.verdict == Verdict::NoPeakInRange && !plan.space.is_one_point() {
            return Self::new(
                Limit::Range,
                answer.stop_reason.clone(),
                "the best in range is given; it is at the edge",
            );
        }
        if answer.ceiling.as_ref().is_some_and(|ceiling| ceiling.cause == NOT_REACHED) {
            let advice = "that is what these settings can do: more threads, connections or nodes may do more";
            return Self::new(Limit::Capacity, answer.stop_reason.clone(), advice);
        }
        let windows = outcome.windows_at(&choice.trials);
        let peak = answer.peak.as_ref().map_or(choice.point, |peak| peak.point);
        let ceiling = next_failure(outcome, peak).or_else(|| answer.ceiling.clone());
        of_full_connections(plan, outcome, ceiling.as_ref(), peak)
            .or_else(|| of_ceiling(ceiling.as_ref(), peak))
            .or_else(|| of_connections(plan, peak))
            .or_else(|| of_offer(plan, &windows))
            .or_else(|| cpu(&windows).and_then(|cpu| of_processor(plan, choice.point, &windows, cpu)))
            .or_else(|| model.and_then(|model| of_model(model, plan.space.threads.hi())))
            .unwrap_or_else(|| {
                let why = format!("no dearer point gains {}", percent(DELTA));
                Self::new(Limit::Unknown, why, "look for what the server waits for: its disks, its locks, its network")
            })
    }
}

fn nothing_works(ceiling: Option<&Ceiling>) -> Explanation {
    match ceiling {
        Some(ceiling) if ceiling.errors == 0 => Explanation::new(
            Limit::Objective,
            format!("even the cheapest point misses {}", ceiling.cause),
            "relax the objective, or make the server faster",
        ),
        Some(ceiling) => Explanation::new(
            Limit::Errors,
            format!("even the cheapest point fails with {}", ceiling.cause),
            "mend that first: the first failure is below",
        ),
        None => Explanation::new(Limit::Unknown, "nothing was done at all", "see whether the server answers anything"),
    }
}

/// The next number of threads that fails, with all else as at the peak.
fn next_failure(outcome: &Outcome, peak: Point) -> Option<Ceiling> {
    let above = |window: &&Window| {
        let point = window.trial.probe.point;
        point.threads > peak.threads && point == peak.with(Axis::Threads, point.threads)
    };
    let failed = outcome.windows.iter().filter(above).filter(|window| window.measurement.failures() > 0);
    let window = failed.min_by_key(|window| window.trial.probe.point.threads)?;
    let cause = window.measurement.cause()?.to_owned();
    Some(Ceiling { point: window.trial.probe.point, cause, errors: window.measurement.failures() })
}

/// The largest number of threads that works with the other settings of a point, and a window that fails with no more of them but
/// fewer connections or io threads.
pub(super) fn poorer_failure(outcome: &Outcome, chosen: Point) -> Option<(Point, &Window)> {
    let point = |window: &Window| window.trial.probe.point;
    let like = |window: &Window| point(window) == chosen.with(Axis::Threads, point(window).threads);
    let works = |threads: u32| {
        let mut here = outcome.windows.iter().filter(|window| like(window) && point(window).threads == threads);
        here.all(|window| window.measurement.failures() == 0)
    };
    let threads = outcome.windows.iter().filter(|window| like(window)).map(|window| point(window).threads);
    let most = chosen.with(Axis::Threads, threads.filter(|threads| works(*threads)).max()?);
    let poorer = |window: &&Window| {
        let Point { threads, io_threads, pool, batch } = point(window);
        let fewer =
            pool <= most.pool && io_threads <= most.io_threads && (pool, io_threads) != (most.pool, most.io_threads);
        fewer && threads <= most.threads && batch == most.batch && window.measurement.failures() > 0
    };
    let failed = outcome.windows.iter().filter(poorer).max_by_key(|window| point(window))?;
    Some((most, failed))
}

/// Errors just above the peak that fewer connections meet sooner: each of them takes so many requests at once.
fn of_full_connections(plan: &Plan, outcome: &Outcome, ceiling: Option<&Ceiling>, peak: Point) -> Option<Explanation> {
    let Ceiling { point, cause, .. } = ceiling.filter(|it| it.errors > 0 && is_just_above(it.point, peak))?;
    let (_, sooner) = poorer_failure(outcome, peak)?;
    let fewer = sooner.trial.probe.point;
    if fewer.pool == peak.pool || sooner.measurement.cause() != Some(cause.as_str()) {
        return None;
    }
    let why = format!(
        "from {} threads on requests fail with {cause}, and with {} instead of {} connections sooner: each of them takes only so \
         many at once",
        point.threads, fewer.pool, peak.pool
    );
    let advice = if peak.pool == plan.space.pool.hi() {
        format!("raise --pool above {}: more connections carry more threads; or stay at {}", peak.pool, peak.threads)
    } else {
        format!("keep to {} threads with pool {}", peak.threads, peak.pool)
    };
    Some(Explanation::new(Limit::Errors, why, advice))
}

/// Whether a point has more threads than the peak, but not many more.
fn is_just_above(point: Point, peak: Point) -> bool {
    point.threads > peak.threads && point.threads <= peak.threads.saturating_mul(NEAR)
}

/// Connections that carry no more requests than there are threads.
fn of_connections(plan: &Plan, peak: Point) -> Option<Explanation> {
    let carried = plan.carried(peak)?;
    let full = f64::from(peak.threads) >= FULL * carried && f64::from(plan.space.threads.hi()) > carried;
    full.then(|| {
        let more = plan.space.pool.hi() > peak.pool;
        let advice = if more {
            "more connections gained nothing: the server has no more"
        } else {
            "raise --pool: more connections carry more"
        };
        Explanation::new(
            Limit::Connections,
            format!("connections carry {carried:.0} requests: further threads wait in the client for a free one"),
            advice,
        )
    })
}

/// Errors, a missed objective or a collapse just above the peak.
fn of_ceiling(ceiling: Option<&Ceiling>, peak: Point) -> Option<Explanation> {
    let ceiling = ceiling?;
    let Ceiling { point, cause, errors } = ceiling;
    let by_threads = is_just_above(*point, peak);
    if !by_threads && point.batch > peak.batch && *errors > 0 {
        let why = format!("requests of {} rows fail with {cause}", point.batch);
        return Some(if REFUSALS.contains(&cause.as_str()) {
            let advice = format!("stay at {} rows per request, or raise the server's threshold", peak.batch);
            Explanation::new(Limit::BatchThreshold, why, advice)
        } else {
            Explanation::new(Limit::Errors, why, format!("stay at {} rows per request, or wait longer", peak.batch))
        });
    }
    by_threads.then(|| match (cause.as_str(), errors) {
        (COLLAPSE, _) => Explanation::new(
            Limit::Collapse,
            format!("throughput breaks down at {} threads", point.threads),
            "stay below: what is asked for beyond that only queues in the server",
        ),
        (_, 0) => Explanation::new(
            Limit::Objective,
            format!("{cause} is missed from {} threads on", point.threads),
            "more throughput within the objective needs a faster server, not more clients",
        ),
        _ => Explanation::new(
            Limit::Errors,
            format!("from {} threads on requests fail with {cause}", point.threads),
            "stay below, or give the server, the connections or the time limits more room",
        ),
    })
}

/// In open loop the offer, where it was met.
fn of_offer(plan: &Plan, windows: &[&Window]) -> Option<Explanation> {
    let rate = plan.rate()?;
    let met = windows.iter().all(|window| window.trial.reaches_offer());
    met.then(|| {
        Explanation::new(
            Limit::OfferedRate,
            format!("the offered {rate} requests/s are answered"),
            "offer more to find the limit",
        )
    })
}

/// Whose the processor time was.
fn of_processor(plan: &Plan, point: Point, windows: &[&Window], cpu: CpuShares) -> Option<Explanation> {
    let (client, others, total) = (percent(cpu.client), percent(cpu.others), cpu.client + cpu.others);
    let cores = f64::from(plan.space.cores.max(1));
    let making = windows.iter().map(|window| window.measurement.generator).sum::<f64>() / real(windows.len() as u64);
    let share = making / (cpu.client * cores).max(f64::EPSILON);
    let share_of_threads = f64::from(point.io_threads.min(plan.space.cores)) / cores;
    let threads_full = cpu.client >= FULL * share_of_threads && plan.space.on(Axis::IoThreads).hi() == point.io_threads;
    if share > GENERATOR && making > CLIENT_BOUND * share_of_threads * cores {
        return Some(Explanation::new(
            Limit::GeneratorBound,
            format!("generator-bound: making the requests takes {} of the client's time", percent(share.min(1.0))),
            "use simpler rows, or more machines for the client",
        ));
    }
    if plan.target.is_in_process() {
        return (total >= FULL).then(|| {
            Explanation::new(
                Limit::MachineFull,
                format!(
                    "the machine is full: client and engine are one process, which takes {client}, all else {others}"
                ),
                "more cores are the way to more throughput",
            )
        });
    }
    match (plan.target.is_on_this_machine(), cpu.client >= CLIENT_BOUND || threads_full, total >= FULL) {
        (here, true, _) => {
            let shared = if here {
                format!(" of the machine that it shares with the server ({others} with all else)")
            } else {
                String::new()
            };
            Some(Explanation::new(
                Limit::ClientBound,
                format!("client-bound: the client takes {client}{shared}"),
                "the server may take more: give the client more io threads, cores or machines",
            ))
        }
        (true, false, true) => Some(Explanation::new(
            Limit::MachineFull,
            format!("the machine is full: the client takes {client} of it, the server with all else {others}"),
            "on machines of their own both may go further",
        )),
        _ => None,
    }
}

/// What the fitted law says, where it fits.
fn of_model(model: &Model, most: u32) -> Option<Explanation> {
    let contention = format!("{:.1} % of the work waits for something shared", model.sigma * 100.0);
    match model.peak_threads {
        Some(peak) if peak <= f64::from(most) && model.residual < 0.1 => Some(Explanation::new(
            Limit::Coherency,
            format!("throughput falls again beyond {peak:.0} threads: {contention}, and clients wait for each other"),
            "more threads make it worse; more nodes, or less that they share, make it better",
        )),
        _ if model.sigma > CONTENTION && model.residual < 0.1 => Some(Explanation::new(
            Limit::Contention,
            format!("more threads only queue: {contention}"),
            "find what is shared in the server; more clients change nothing",
        )),
        _ => None,
    }
}
