//! The validated settings of a run, sweep or load: everything that is needed, and nothing that can't be.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cli::{LoadSettings, PathsSettings, RampSettings, Settings, Subject};
use crate::failure::{Failure, Result};
use crate::machine::{ServerSource, cores};
use crate::objective::Objective;
use crate::search::{BUDGET, Load};
use crate::space::{Axis, Point, Space, Span};
use crate::stats::real_len;
use crate::target::TargetUri;
use crate::target::sim::{CORES, Server};
use crate::workload::Workload;

/// The most of each: above it a client only hurts itself.
const MOST: [(Axis, u32); 4] =
    [(Axis::Threads, 16_384), (Axis::IoThreads, 1_024), (Axis::Pool, 1_024), (Axis::Batch, 65_535)];
/// The least time for a sweep or run.
const LEAST_BUDGET: Duration = Duration::from_secs(2);

/// What a run or sweep needs.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) target: TargetUri,
    /// The simulated server, where the target is one.
    pub(crate) simulated: Option<Server>,
    pub(crate) workload: Arc<Workload>,
    pub(crate) space: Space,
    /// What every point must meet besides working without an error.
    pub(crate) objectives: Vec<Objective>,
    /// Requests per second in open loop: none in closed loop, and in a ramp one for each step.
    pub(crate) rates: Vec<f64>,
    /// T of the APDEX.
    pub(crate) apdex: Option<Duration>,
    /// What the chosen point is compared with at the end.
    pub(crate) beside: Option<Point>,
    /// How long the chosen point is held at the end.
    pub(crate) hold: Option<Duration>,
    /// Where the server is to be seen on this machine.
    pub(crate) server: Option<ServerSource>,
    /// Whether to go on with the run in `out`.
    pub(crate) resume: bool,
    pub(crate) budget: Duration,
    pub(crate) seed: u64,
    pub(crate) create: bool,
    pub(crate) out: PathBuf,
    pub(crate) json: bool,
    /// What the user should know before it begins.
    pub(crate) notes: Vec<String>,
}

/// What a load needs.
#[derive(Debug)]
pub(crate) struct LoadPlan {
    pub(crate) target: TargetUri,
    pub(crate) workload: Arc<Workload>,
    pub(crate) point: Point,
    pub(crate) rows: u64,
    pub(crate) create: bool,
}

/// A comparison of the ways to write.
#[derive(Debug)]
pub(crate) struct PathsPlan {
    pub(crate) target: TargetUri,
    pub(crate) workload: Arc<Workload>,
    pub(crate) point: Point,
    pub(crate) time: Duration,
    pub(crate) rounds: u32,
    pub(crate) create: bool,
    pub(crate) out: Option<PathBuf>,
    pub(crate) json: bool,
}

/// What nobody has tuned: the settings of a run.
fn untuned() -> Space {
    Space {
        threads: Span::fixed(32),
        io_threads: Span::fixed(cores()),
        pool: Span::fixed(1),
        batch: Span::fixed(1),
        cores: cores(),
    }
}

/// The ranges where none are given.
struct Defaults {
    space: Space,
    budget: Duration,
}

impl Plan {
    /// The plan of a sweep.
    pub(crate) fn sweep(settings: Settings) -> Result<Self> {
        let space = Space {
            threads: Span::up_to(512),
            io_threads: Span::up_to(cores().min(16)),
            pool: Span::up_to(4),
            batch: Span::up_to(256),
            cores: cores(),
        };
        Self::new(settings, &Defaults { space, budget: BUDGET })
    }

    /// The plan of a run, whose every range is one number.
    pub(crate) fn run(settings: Settings) -> Result<Self> {
        let plan = Self::new(settings, &Defaults { space: untuned(), budget: Duration::from_secs(20) })?;
        match Axis::ALL.into_iter().find(|axis| !plan.space.on(*axis).is_fixed()) {
            Some(axis) => Err(Failure::input(format!(
                "{} {} is a range, but a run measures one point; give one number, or use tuner sweep",
                flag(axis),
                plan.space.on(axis)
            ))),
            None => Ok(plan),
        }
    }

    /// The plan of a ramp with its steps: loads in ascending order.
    pub(crate) fn ramp(settings: RampSettings) -> Result<(Self, Vec<Load>)> {
        let RampSettings { rates, users, step, settings } = settings;
        let step_count = u32::try_from(rates.len() + users.len()).unwrap_or(u32::MAX);
        let mut settings = settings;
        // Every step, and as much again for connecting and for the warm-up of each window.
        settings.budget = settings.budget.or_else(|| step.checked_mul(step_count)?.checked_mul(2));
        let highest = users.iter().copied().max();
        settings.threads = settings.threads.or(highest.map(Span::fixed));
        let mut plan = Self::run(settings)?;
        let point = plan.space.lowest();
        let ascends = rates.is_sorted_by(|a, b| a < b) && users.is_sorted_by(|a, b| a < b);
        if !ascends || users.contains(&0) {
            return Err(Failure::input("the steps of a ramp must ascend, from 1 on"));
        }
        plan.rates.clone_from(&rates);
        let by_rate = rates.into_iter().map(|rate| (point, Some(rate)));
        let by_users = users.into_iter().map(|threads| (point.with(Axis::Threads, threads), None));
        Ok((plan, by_rate.chain(by_users).collect()))
    }

    /// Requests in flight that the connections of a point carry at once, where that is known and not beyond every number of threads:
    /// of a simulated server its streams, of HBase one for each Thrift connection to each gateway.
    pub(crate) fn carried(&self, point: Point) -> Option<f64> {
        carried(self.simulated.as_ref(), &self.target, point)
    }

    /// The requests per second of a run or sweep in open loop.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.rates.last().copied()
    }

    fn new(settings: Settings, defaults: &Defaults) -> Result<Self> {
        let (target, workload) = subject(&settings.subject)?;
        let simulated = simulated(&target, settings.subject.seed)?;
        objectives(&settings.objective, &workload)?;
        let mut notes = Vec::new();
        let of_uri = target.pool().transpose()?;
        let mut space = Space {
            threads: settings.threads.unwrap_or(defaults.space.threads),
            io_threads: settings.io_threads.unwrap_or(defaults.space.io_threads),
            pool: settings.pool.or(of_uri).unwrap_or(defaults.space.pool),
            batch: settings.batch.unwrap_or(defaults.space.batch),
            cores: cores(),
        };
        check(&space)?;
        if target.is_in_process() {
            space.pool = Span::fixed(1);
            if settings.pool.is_some_and(|pool| pool != space.pool) {
                notes.push("pool means nothing to an engine in the process: it stays 1".into());
            }
        }
        if !workload.has_batches() {
            space.batch = Span::fixed(1);
            notes.push(format!("batch means nothing to the queries of {}: it stays 1", workload.name));
        }
        if let Some(server) = &simulated {
            space = Space { cores: CORES, ..server.narrow(space) };
        }
        let budget = settings.budget.unwrap_or(defaults.budget);
        if budget < LEAST_BUDGET {
            let given = humantime::format_duration(budget);
            return Err(Failure::input(format!("--budget {given} is too short; give at least 2s")));
        }
        let server = server(settings.server_pid, settings.server_cgroup)?;
        let most = Point { threads: space.threads.hi(), io_threads: 1, pool: space.pool.hi(), batch: 1 };
        let carried = carried(simulated.as_ref(), &target, most);
        if let Some(carried) = carried.filter(|carried| f64::from(most.threads) > *carried) {
            let pool = space.pool;
            notes.push(format!(
                "connections carry {carried:.0} requests with pool {pool}: threads beyond that wait in the client"
            ));
        }
        let resume = settings.resume.is_some();
        let out = settings.resume.or(settings.out).unwrap_or_else(|| default_folder(&workload.name));
        let (seed, create) = (settings.subject.seed, settings.subject.create);
        let objectives = settings.objective;
        Ok(Self {
            target,
            simulated,
            workload,
            space,
            objectives,
            rates: settings.rate.into_iter().collect(),
            apdex: settings.apdex,
            beside: settings.against_defaults.then(|| untuned().lowest()),
            hold: settings.hold,
            server,
            resume,
            budget,
            seed,
            create,
            out,
            json: settings.json,
            notes,
        })
    }
}

impl LoadPlan {
    /// The plan of a load.
    pub(crate) fn new(settings: &LoadSettings) -> Result<Self> {
        let (target, workload) = subject(&settings.subject)?;
        if target.simulated().is_some() {
            return Err(Failure::input(format!(
                "--target {target} is simulated and holds no rows; there is nothing to load"
            )));
        }
        if target.is_temporary() {
            return Err(Failure::input(format!(
                "--target {target} is gone when the load ends; give a folder, as in embedded:/folder, or a server"
            )));
        }
        let space = Space {
            threads: settings.threads,
            io_threads: settings.io_threads.unwrap_or(Span::fixed(cores())),
            pool: settings.pool,
            batch: settings.batch,
            cores: cores(),
        };
        let point = one_point(&space, "a load")?;
        let rows = settings.rows.unwrap_or(workload.rows.count());
        Ok(Self { target, workload, point, rows, create: settings.subject.create })
    }
}

impl PathsPlan {
    /// The plan of a comparison.
    pub(crate) fn new(settings: &PathsSettings) -> Result<Self> {
        let (target, workload) = subject(&settings.subject)?;
        if target.simulated().is_some() {
            return Err(Failure::input(format!("--target {target} is simulated and takes no rows; give a database")));
        }
        if settings.time.is_zero() {
            return Err(Failure::input("--time 0s: each path needs some time to write"));
        }
        let space = Space {
            threads: settings.threads,
            io_threads: settings.io_threads.unwrap_or(Span::fixed(cores())),
            pool: settings.pool,
            batch: Span::fixed(1),
            cores: cores(),
        };
        let point = one_point(&space, "a comparison of paths")?;
        Ok(Self {
            target,
            workload,
            point,
            time: settings.time,
            rounds: settings.rounds,
            create: settings.subject.create,
            out: settings.out.clone(),
            json: settings.json,
        })
    }
}

/// The only point of a space, for commands that take one.
fn one_point(space: &Space, command: &str) -> Result<Point> {
    check(space)?;
    match Axis::ALL.into_iter().find(|axis| !space.on(*axis).is_fixed()) {
        Some(axis) => Err(Failure::input(format!("{} is a range; {command} takes one number", flag(axis)))),
        None => Ok(space.lowest()),
    }
}

fn subject(subject: &Subject) -> Result<(TargetUri, Arc<Workload>)> {
    let target = TargetUri::parse(&subject.target)?;
    let workload = Workload::find(&subject.workload, subject.seed)?;
    Ok((target, Arc::new(workload)))
}

/// See [`Plan::carried`].
fn carried(simulated: Option<&Server>, target: &TargetUri, point: Point) -> Option<f64> {
    match simulated {
        Some(server) => server.carried(point),
        None => target.gateways().map(|gateways| f64::from(point.pool) * real_len(gateways)),
    }
}

/// The server's process or control group, if it is there.
fn server(pid: Option<u32>, group: Option<PathBuf>) -> Result<Option<ServerSource>> {
    let source = pid.map(ServerSource::Process).or(group.map(ServerSource::Group));
    match source {
        Some(source) if source.clock().is_some() => Ok(Some(source)),
        Some(ServerSource::Process(pid)) => {
            Err(Failure::input(format!("--server-pid {pid}: there is no such process on this machine")))
        }
        Some(ServerSource::Group(folder)) => Err(Failure::input(format!(
            "--server-cgroup {}: no cpu.stat with usage_usec; give the folder of a control group of version 2",
            folder.display()
        ))),
        None => Ok(None),
    }
}

/// The simulated server of a URI, if it is one.
fn simulated(target: &TargetUri, seed: u64) -> Result<Option<Server>> {
    target.simulated().map(|uri| Server::parse(uri, seed)).transpose()
}

/// Refuses objectives for operations that the workload doesn't have: they would be met by nothing at all.
fn objectives(objectives: &[Objective], workload: &Workload) -> Result<()> {
    let has = |name| workload.operations.iter().any(|operation| operation.kind.name() == name);
    match objectives.iter().find(|objective| !objective.operation().is_none_or(has)) {
        Some(objective) => Err(Failure::input(format!(
            "--objective {objective}: {} has no such operation; it has {}",
            workload.name,
            workload.operations.iter().map(|operation| operation.kind.name()).collect::<Vec<_>>().join(", ")
        ))),
        None => Ok(()),
    }
}

/// Refuses more than a client could bear.
pub(crate) fn check(space: &Space) -> Result<()> {
    for (axis, most) in MOST {
        if space.on(axis).hi() > most {
            return Err(Failure::input(format!("{} {} is too much; at most {most}", flag(axis), space.on(axis))));
        }
    }
    Ok(())
}

fn flag(axis: Axis) -> &'static str {
    match axis {
        Axis::Threads => "--threads",
        Axis::IoThreads => "--io-threads",
        Axis::Pool => "--pool",
        Axis::Batch => "--batch",
    }
}

/// `runs/<date>-<workload>`, with a number behind it when that day has one already.
pub(crate) fn default_folder(workload: &str) -> PathBuf {
    let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    let date = now.get(..10).unwrap_or("undated");
    let folder = |suffix: String| PathBuf::from("runs").join(format!("{date}-{workload}{suffix}"));
    let numbered = (2..10_000).map(|number| folder(format!("-{number}")));
    let mut candidates = std::iter::once(folder(String::new())).chain(numbered);
    candidates.find(|folder| !folder.exists()).unwrap_or_else(|| folder("-more".into()))
}
