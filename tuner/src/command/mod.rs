//! The commands.

mod compare;
mod load;
mod man;
mod measure;
mod paths;
mod show;
mod sim;
mod workloads;
mod ycsb;
mod ycsb_sweep;

use clap::CommandFactory as _;

use crate::cli::{Cli, Command, SimCommand};
use crate::failure::{Exit, Result};
use crate::plan::{LoadPlan, Plan};
use crate::search::{Climb, Fixed, Ramp};

/// Runs a command.
pub(crate) fn run(command: Command) -> Result<Exit> {
    match command {
        Command::Run(settings) => {
            let plan = Plan::run(settings)?;
            measure::run(&plan, &Fixed::new(plan.space.lowest(), plan.budget, plan.rate()))
        }
        Command::Sweep(settings) => {
            let plan = Plan::sweep(settings)?;
            if plan.space.is_one_point() {
                measure::run(&plan, &Fixed::new(plan.space.lowest(), plan.budget, plan.rate()))
            } else {
                measure::run(&plan, &Climb::new(plan.space, plan.budget, plan.rate(), plan.seed))
            }
        }
        Command::Ramp(settings) => {
            let step = settings.step;
            let (plan, steps) = Plan::ramp(settings)?;
            measure::run(&plan, &Ramp::new(steps, step))
        }
        Command::Ycsb(command) => ycsb::run(&command),
        Command::Show { dir, json } => show::show(&dir, json),
        Command::Compare { first, second, json } => compare::run(&first, &second, json),
        Command::Apply { dir, to } => show::apply(&dir, to.as_deref()),
        Command::Man { to } => man::run(to.as_deref()),
        Command::Sim(SimCommand::Grid(settings)) => sim::grid(&settings),
        Command::Sim(SimCommand::Judge { seeds, only }) => sim::judge(seeds, &only),
        Command::Paths(settings) => paths::run(&settings),
        Command::Load(settings) => load::run(&LoadPlan::new(&settings)?),
        Command::Workloads { name } => workloads::run(name.as_deref()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "tuner", &mut script);
            // A closed pipe is no failure.
            let _ = std::io::Write::write_all(&mut std::io::stdout(), &script);
            Ok(Exit::Done)
        }
    }
}
