//! Runs one step of the exchange a given number of times, to have its instructions counted from outside.
//!
//! `sandarac-micro CASE TIMES` runs it, `sandarac-micro --list` names the cases. `./compare` counts two different numbers of
//! times under valgrind; the difference holds the step alone, without start-up. Nothing here is random or reads a clock,
//! so that the counts repeat to the instruction.

mod cases;
mod samples;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--list"] => {
            cases::CASES.iter().for_each(|(name, _)| println!("{name}"));
            ExitCode::SUCCESS
        }
        [name, times] => {
            let case = cases::CASES.iter().find(|(known, _)| *known == name);
            let (Some((_, run)), Ok(times)) = (case, times.parse()) else {
                eprintln!("no case {name}, or {times} is not a number");
                return ExitCode::FAILURE;
            };
            run(times);
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("usage: sandarac-micro CASE TIMES | --list");
            ExitCode::FAILURE
        }
    }
}
