//! What an operation costs the client, by the real YCSB with a Java driver, by the real YCSB with the binding, and by
//! `tuner ycsb`, one after the other in one run.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;
use peristyle_servers::Cassandra;

use super::build::{Home, Library};
use super::cost::{Cost, measure};
use crate::cargo::{self, Cargo};
use crate::examples::create_keyspace;

/// The mixes, by name, with the share of reads.
const MIXES: [(&str, f64); 2] = [("puts and gets", 0.5), ("gets", 1.0)];
const TABLE: &str = "bench";
const RECORDS: &str = "20000";

/// A comparison of clients.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Runs of each client and mix; what is told is their median.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Operations of a run. Virtual machines get faster within some hundred thousand.
    #[arg(long, default_value_t = 400_000)]
    operations: u32,
    /// Client threads.
    #[arg(long, default_value_t = 128)]
    threads: u32,
    /// A folder with YCSB's own binding for Cassandra and its jars, of a release of YCSB, to measure it instead of the plain
    /// class that stands for it here.
    #[arg(long, value_name = "FOLDER")]
    java_binding: Option<PathBuf>,
}

/// Who does the operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    JavaDriver,
    Binding,
    Tuner,
}

impl Client {
    const ALL: [Self; 3] = [Self::JavaDriver, Self::Binding, Self::Tuner];

    fn name(self) -> &'static str {
        match self {
            Self::JavaDriver => "YCSB, Java driver",
            Self::Binding => "YCSB, Peristyle",
            Self::Tuner => "tuner ycsb",
        }
    }
}

/// What all clients are given.
struct Lab {
    home: Home,
    tuner: PathBuf,
    uri: String,
    node: Cassandra,
    bench: Bench,
}

impl Bench {
    /// Builds everything, starts a Cassandra, measures, and prints the table.
    pub(crate) fn run(self) -> Result<(), String> {
        let home = Home::build(Library::Release)?;
        home.build_java_driver()?;
        Cargo::new(["build", "--release", "-p", "peristyle-tuner"]).run()?;
        let tuner = Cargo::target_folder()?.join("release/tuner");
        let node = Cassandra::builder().bench().start().map_err(|error| error.to_string())?;
        let uri = create_keyspace(&node)?;
        let mut lab = Lab { home, tuner, uri, node, bench: self };
        let compared = lab.compare();
        lab.node.stop().map_err(|error| error.to_string())?;
        compared
    }
}

impl Lab {
    fn compare(&self) -> Result<(), String> {
        let mut load = Command::new(&self.tuner);
        load.args(["ycsb", "load", "-p", "peristyle.create=true"]).stdout(Stdio::null());
        cargo::run(self.with_properties(load, Client::Tuner, 0.5))?;
        println!("\nclient processor time per operation, {} threads, 1 field of 10 bytes", self.bench.threads);
        println!("whole: from start to end; warm: of the second half of the run\n");
        for (mix, reads) in MIXES {
            println!("{mix:<18}  whole µs  warm µs    ops/s");
            let mut costs = Client::ALL.map(|_| Vec::new());
            for _ in 0..self.bench.rounds {
                for (client, costs) in Client::ALL.into_iter().zip(&mut costs) {
                    let cost = measure(self.command(client, reads), self.bench.operations)
                        .map_err(|why| format!("{}: {why}", client.name()))?;
                    println!("{:<18}  {cost}", client.name());
                    costs.push(cost);
                }
            }
            let [java, binding, tuner] = costs.map(|costs| Cost::median(&costs));
            println!("\nmedians\n{:<18}  {java}", Client::JavaDriver.name());
            for (client, cost) in [(Client::Binding, binding), (Client::Tuner, tuner)] {
                println!("{:<18}  {cost}   {}", client.name(), cost.against(java));
            }
            println!();
        }
        Ok(())
    }

    fn command(&self, client: Client, reads: f64) -> Command {
        let mut command = match client {
            Client::JavaDriver => self.home.java_driver(self.bench.java_binding.as_deref()),
            Client::Binding => self.home.ycsb(),
            Client::Tuner => Command::new(&self.tuner),
        };
        match client {
            Client::JavaDriver => command.arg("-t"),
            Client::Binding => command.arg("run"),
            Client::Tuner => command.args(["ycsb", "run"]),
        };
        command.args(["-s", "-p", "status.interval=1"]);
        self.with_properties(command, client, reads)
    }

    fn with_properties(&self, mut command: Command, client: Client, reads: f64) -> Command {
        let address = self.node.cql_address();
        let (reads, updates) = (reads.to_string(), (1.0 - reads).to_string());
        let (threads, operations) = (self.bench.threads.to_string(), self.bench.operations.to_string());
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let keyspace = self.uri.rsplit('/').next().unwrap_or_default();
        let mut properties = vec![
            ("workload", "site.ycsb.workloads.CoreWorkload"),
            ("table", TABLE),
            ("threadcount", &threads),
            ("recordcount", RECORDS),
            ("operationcount", &operations),
            ("fieldcount", "1"),
            ("fieldlength", "10"),
            ("requestdistribution", "zipfian"),
            ("readproportion", &reads),
            ("updateproportion", &updates),
        ];
        match client {
            Client::JavaDriver => {
                properties.extend([("hosts", host.as_str()), ("port", &port), ("cassandra.keyspace", keyspace)]);
            }
            Client::Binding | Client::Tuner => properties.push(("peristyle.uri", &self.uri)),
        }
        for (name, value) in properties {
            command.arg("-p").arg(format!("{name}={value}"));
        }
        command
    }
}
