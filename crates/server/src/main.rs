//! The `sandarac` binary.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod allocator;

use std::process::ExitCode;

use sandarac_server::cli::{Cli, Command, Job, RunArgs};
use sandarac_server::failure::Failure;
use sandarac_server::stderr::print_line;
use sandarac_server::{check, commands, demo, intermediary, probe, replay, run, simulate, top, vcl};

fn main() -> ExitCode {
    if let Some(code) = intermediary::serve() {
        return code;
    }
    match Cli::read(std::env::args_os()) {
        Ok(cli) => perform(cli.job()).unwrap_or_else(|failure| failure.report()),
        Err(error) => refuse(&error),
    }
}

/// Prints an error of the command line, or the requested help.
fn refuse(error: &clap::Error) -> ExitCode {
    // If nothing can be written, there is no other way to report it.
    let _ = error.print();
    match std::env::args_os().nth(1) {
        // For a monitoring system, the status of wrong usage would mean that the pool is broken.
        Some(command) if command == "check-pool" && error.use_stderr() => {
            commands::unreadable(&error.to_string())
        }
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
    }
}

fn perform(job: Job) -> Result<ExitCode, Failure> {
    let done = match job {
        Job::Run(args) => start(&args),
        Job::Other(Command::Demo(args)) => demo::demo(&args, run::accelerate),
        Job::Other(Command::Check(args)) => check::check(&args),
        Job::Other(Command::Probe(args)) => probe::probe(&args),
        Job::Other(Command::Config(args)) => check::config(&args),
        Job::Other(Command::Status(args)) => commands::status(&args),
        Job::Other(Command::Stats(args)) => commands::stats(&args),
        Job::Other(Command::Top(args)) => top::top(&args),
        Job::Other(Command::Purge(args)) => commands::purge(&args),
        Job::Other(Command::Ban(args)) => commands::ban(&args),
        Job::Other(Command::Shared(command)) => commands::shared(&command),
        Job::Other(Command::Reload(args)) => commands::reload(&args),
        Job::Other(Command::Upgrade(args)) => commands::upgrade(&args),
        Job::Other(Command::Log(args)) => commands::log(&args),
        Job::Other(Command::Pools(args)) => commands::pools(&args),
        Job::Other(Command::Pool(args)) => commands::pool(&args),
        Job::Other(Command::CheckPool(args)) => return Ok(commands::check_pool(&args)),
        Job::Other(Command::Simulate(args)) => simulate::simulate(&args),
        Job::Other(Command::Replay(args)) => replay::replay(&args),
        Job::Other(Command::Vcl(command)) => return vcl::vcl(&command),
    };
    done.map(|()| ExitCode::SUCCESS)
}

fn start(args: &RunArgs) -> Result<(), Failure> {
    if args.lacks_everything() {
        let what = "nothing to stand before\n  help: name an application, `--listen :8080 --backend \
                    http://localhost:8000`, a directory, `--listen :8080 --files ./public`, or a configuration, `-c FILE`; \
                    `sandarac demo` needs none of them";
        return Err(Failure::Usage(what.to_owned()));
    }
    let (config, warnings) = check::effective(args)?;
    for warning in &warnings {
        print_line(warning);
    }
    run::run(config, args)
}
