//! The command line.

use std::path::PathBuf;

use crate::policies::Kind;
use crate::traces::{RECIPES, Recipe};

pub(crate) const USAGE: &str = "\
usage: bench/hit-ratio/run [OPTION]...
  --list            name the traces and the policies
  --trace NAME      only this trace; may be repeated
  --policy NAME     only this policy; may be repeated
  --seed NUMBER     the seed of the traces; 1
  --requests COUNT  requests in most traces; 800000
  --quick           200000 requests
  --jobs COUNT      traces at the same time; 1
  --out FILE        write the results to a file
  --against FILE    compare the store with such a file";

/// What to measure.
pub(crate) struct Options {
    pub(crate) help: bool,
    pub(crate) list: bool,
    /// None: all.
    traces: Vec<String>,
    pub(crate) policies: Vec<Kind>,
    pub(crate) seed: u64,
    pub(crate) requests: usize,
    pub(crate) jobs: usize,
    pub(crate) out: Option<PathBuf>,
    pub(crate) against: Option<PathBuf>,
}

impl Options {
    /// # Errors
    /// A message, if an option is unknown or its value invalid.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            help: false,
            list: false,
            traces: Vec::new(),
            policies: Vec::new(),
            seed: 1,
            requests: 800_000,
            jobs: 1,
            out: None,
            against: None,
        };
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{option} needs a value"));
            match option.as_str() {
                "--help" => options.help = true,
                "--list" => options.list = true,
                "--quick" => options.requests = 200_000,
                "--trace" => options.traces.push(known_trace(value()?)?),
                "--policy" => options.policies.push(policy(&value()?)?),
                "--seed" => options.seed = number(&option, &value()?)?,
                "--requests" => options.requests = number::<usize>(&option, &value()?)?.max(100),
                "--jobs" => options.jobs = number::<usize>(&option, &value()?)?.max(1),
                "--out" => options.out = Some(value()?.into()),
                "--against" => options.against = Some(value()?.into()),
                _ => return Err(format!("unknown option {option}")),
            }
        }
        if options.policies.is_empty() {
            options.policies = Kind::ALL.to_vec();
        }
        Ok(options)
    }

    /// Whether a trace is selected.
    pub(crate) fn takes(&self, recipe: &Recipe) -> bool {
        self.traces.is_empty() || self.traces.iter().any(|name| name == recipe.name)
    }
}

fn known_trace(name: String) -> Result<String, String> {
    let known = RECIPES.iter().any(|recipe| recipe.name == name);
    if known { Ok(name) } else { Err(format!("no trace {name}; --list names them")) }
}

fn policy(name: &str) -> Result<Kind, String> {
    let mut all = Kind::ALL.into_iter();
    all.find(|kind| kind.name() == name).ok_or(format!("no policy {name}; --list names them"))
}

fn number<T: std::str::FromStr>(option: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{option}: {value} is not a number"))
}
