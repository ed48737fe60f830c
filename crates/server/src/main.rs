//! The `sandarac` binary.

use std::process::ExitCode;

use clap::Parser;
use sandarac_server::cli::{Cli, Command, Job, RunArgs};
use sandarac_server::failure::Failure;
use sandarac_server::{check, commands, demo, replay, run, simulate, top};

/// Faster than the system's where small blocks come and go, as with every exchange.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match perform(Cli::parse().job()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn perform(job: Job) -> Result<(), Failure> {
    match job {
        Job::Run(args) => start(&args),
        Job::Other(Command::Demo(args)) => demo::demo(&args, run::accelerate),
        Job::Other(Command::Check(args)) => check::check(&args),
        Job::Other(Command::Config(args)) => check::config(&args),
        Job::Other(Command::Status(args)) => commands::status(&args),
        Job::Other(Command::Stats(args)) => commands::stats(&args),
        Job::Other(Command::Top(args)) => top::top(&args),
        Job::Other(Command::Purge(args)) => commands::purge(&args),
        Job::Other(Command::Ban(args)) => commands::ban(&args),
        Job::Other(Command::Reload(args)) => commands::reload(&args),
        Job::Other(Command::Log(args)) => commands::log(&args),
        Job::Other(Command::Simulate(args)) => simulate::simulate(&args),
        Job::Other(Command::Replay(args)) => replay::replay(&args),
    }
}

fn start(args: &RunArgs) -> Result<(), Failure> {
    if args.lacks_everything() {
        let what = "nothing to stand before\n  help: name an application, `--listen :8080 --backend \
                    http://localhost:8000`, or a configuration, `-c FILE`; `sandarac demo` needs neither";
        return Err(Failure::Usage(what.to_owned()));
    }
    let (config, warnings) = check::effective(args)?;
    for warning in &warnings {
        eprintln!("{warning}");
    }
    run::run(config, args)
}
