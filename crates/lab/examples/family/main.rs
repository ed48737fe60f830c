//! Judges `resume` on a hundred random scenarios.
//!
//! `cargo run --release -p sandarac-lab --example family -- [OPTIONS]` draws 100 scenarios from their numbers
//! and simulates each with `resume`, `published`, `least_requests` and hashing with three factors. It prints a
//! line for each scenario, geometric means for groups of them, and whether the bars hold. Each figure is the
//! median of the seeds.
//!
//! 20 to 1600 sites of 10 to 300 objects, 1 to 25 of them per request, 3 to 50 workers, caches for 0.3 to 6
//! times the objects, 1 to 25 ms for each request and 0.5 to 20 ms for each object to be loaded, 0.5 to 6
//! clients per worker, all evenly on a logarithmic scale; Zipf 0.6 to 1.2; in a quarter of the scenarios
//! nothing changes, else up to 0.2 objects with each request. A third each has equal workers, one slow worker,
//! and mixed speeds. Half have a closed load and half an open one.
//!
//! - `--seeds N`: seeds per scenario (3)
//! - `--jobs N`: simulations at a time (as many as there are cores)
//! - `--scenarios FROM..TO`: these (0..100); 100 is the case with plenty of memory, and greater numbers are
//!   scenarios that the choice was not tuned on
//! - `--concurrency N`: workers work on this many requests at a time, and there are as many times more clients
//! - `--algorithms A,B`: only these; a label that begins with `resume` is `resume`
//! - `--save FILE`: writes the results, a JSON object a line
//! - `--with FILE`: takes results from there instead of simulating them again; may be repeated
//! - `--subject LABEL`: the judged algorithm, if it is not `resume`
//! - `--against LABEL`: adds the ratios to this algorithm, from `--with`

mod draw;
mod run;
mod tables;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};

use draw::{Drawn, PLENTY};
use run::Outcome;

fn main() {
    let options = Options::read(std::env::args().skip(1));
    let mut outcomes: BTreeMap<run::Key, Outcome> = BTreeMap::new();
    for file in &options.with {
        let lines =
            BufReader::new(File::open(file).unwrap_or_else(|error| panic!("{file}: {error}"))).lines();
        for line in lines.map(|line| line.expect("the file can be read")) {
            let outcome: Outcome = serde_json::from_str(&line).expect("a line that --save wrote");
            outcomes.insert(outcome.key(), outcome);
        }
    }
    let drawn: Vec<Drawn> = options
        .scenarios
        .clone()
        .map(|number| if number == PLENTY { draw::plenty() } else { draw::scenario(number) })
        .map(|drawn| drawn.with_concurrency(options.concurrency))
        .collect();
    let new = run::simulate_all(&drawn, &options, &outcomes);
    if let Some(file) = &options.save {
        let mut file = File::create(file).unwrap_or_else(|error| panic!("{file}: {error}"));
        for outcome in &new {
            let line = serde_json::to_string(outcome).expect("numbers");
            writeln!(file, "{line}").expect("the file can be written");
        }
    }
    outcomes.extend(new.into_iter().map(|outcome| (outcome.key(), outcome)));
    tables::print(&drawn, &options, &outcomes);
}

/// The arguments.
pub(crate) struct Options {
    seeds: u64,
    jobs: usize,
    concurrency: u32,
    scenarios: std::ops::RangeInclusive<u32>,
    algorithms: Vec<String>,
    save: Option<String>,
    with: Vec<String>,
    subject: String,
    against: Option<String>,
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Options {
        let mut options = Options {
            seeds: 3,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            concurrency: 1,
            scenarios: 0..=PLENTY,
            algorithms: run::USUAL.map(str::to_owned).to_vec(),
            save: None,
            with: Vec::new(),
            subject: "resume".to_owned(),
            against: None,
        };
        while let Some(name) = arguments.next() {
            let value = arguments.next().unwrap_or_else(|| panic!("{name} has no value"));
            let number = || value.parse::<u32>().unwrap_or_else(|_| panic!("{value} is not a number"));
            match name.as_str() {
                "--seeds" => options.seeds = u64::from(number()),
                "--jobs" => options.jobs = number() as usize,
                "--concurrency" => options.concurrency = number(),
                "--scenarios" => {
                    let (from, to) = value.split_once("..").expect("FROM..TO");
                    let bound = |text: &str| text.parse().expect("the number of a scenario");
                    options.scenarios = bound(from)..=bound(to);
                }
                "--algorithms" => options.algorithms = value.split(',').map(str::to_owned).collect(),
                "--save" => options.save = Some(value),
                "--with" => options.with.push(value),
                "--subject" => options.subject = value,
                "--against" => options.against = Some(value),
                _ => panic!("there is no option {name}"),
            }
        }
        options
    }
}
