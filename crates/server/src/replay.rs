//! `sandarac replay`: an access log, played through the balancer.

mod live;
mod player;
mod simulated;

use std::fs::File;
use std::io;

use sandarac_lab::{Log, LogError, LogOptions, LogTally};

use crate::cli::ReplayArgs;
use crate::failure::Failure;
use crate::human::{count, grouped};

/// `replay`.
pub fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    let of_simulation = args.of_simulation();
    match &args.simulate {
        Some(scenario) => simulated::simulate(args, scenario.as_deref()),
        None if args.config.is_none() && args.backend.is_empty() => {
            let what = "nothing to play the log before\n  help: name backends, `--backend http://localhost:8000`, or a \
                        configuration, `-c FILE`; `--simulate` plays it before simulated workers";
            Err(Failure::Usage(what.to_owned()))
        }
        // Checked here, not by the parser, which drops a requirement if another flag, such as --backend, rules out the
        // required one.
        None if !of_simulation.is_empty() => Err(Failure::Usage(format!(
            "{}: only a simulation heeds that\n  help: add `--simulate`, or leave it out",
            of_simulation.join(", ")
        ))),
        None => live::play(args),
    }
}

/// Opens the log.
fn open(args: &ReplayArgs) -> Result<Log, Failure> {
    let options = LogOptions { head: args.head, host: args.host.clone() };
    let log = if args.is_stdin() {
        Log::new(io::stdin(), options)
    } else {
        let file = File::open(&args.log)
            .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", args.log.display())))?;
        Log::new(file, options)
    };
    log.map_err(|error| unplayable(args, &error))
}

/// The message for a log that cannot be played.
fn unplayable(args: &ReplayArgs, error: &LogError) -> Failure {
    Failure::Usage(format!("{}: {error}", args.log_name()))
}

/// The part of the log that was not played, and why; `None` if all of it was.
fn left_out(tally: &LogTally, head: bool) -> String {
    let mut parts = Vec::new();
    if tally.others > 0 {
        let played = if head { "GET and HEAD" } else { "GET" };
        parts.push(format!("{} of other methods than {played}", grouped(tally.others)));
    }
    for (why, number, lines) in tally.reasons() {
        let more = if number > lines.len() as u64 { ", …" } else { "" };
        let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
        let which = match &lines[..] {
            [] => String::new(),
            [line] if more.is_empty() => format!(" (line {line})"),
            lines => format!(" (lines {}{more})", lines.join(", ")),
        };
        parts.push(format!("{} {why}{which}", grouped(number)));
    }
    let mut told = match parts.is_empty() {
        true => String::new(),
        false => format!("Of {} read, left out: {}\n", count(tally.lines, "line"), parts.join("; ")),
    };
    if tally.trailing {
        told.push_str("What follows the compressed lines in the file is not compressed, and was left out.\n");
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn what_is_left_out_is_told_with_its_lines() {
        let line = |request: &str| format!("a - - [21/Nov/2026:13:55:36 +0000] \"{request}\" 200 5\n");
        let text = [line("GET / HTTP/1.1"), line("POST / HTTP/1.1"), line("-"), "x\n".repeat(7)].concat();
        let mut log = Log::new(Cursor::new(text), LogOptions::default()).unwrap();
        while log.next_request().unwrap().is_some() {}
        assert_eq!(
            left_out(log.tally(), false),
            "Of 10 lines read, left out: 1 of other methods than GET; 7 not in a format of access logs (lines 4, 5, 6, 7, …); \
             1 without a request that can be read (line 3)\n"
        );
        assert_eq!(left_out(&LogTally::default(), false), "");
    }
}
