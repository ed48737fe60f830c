//! The subcommand `simulate`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use sandarac_lab::{Report, Scenario, chart, simulate as play, table};

use crate::cli::SimulateArgs;
use crate::failure::Failure;

/// `simulate`.
pub fn simulate(args: &SimulateArgs) -> Result<(), Failure> {
    let name = args.scenario.display();
    let text = fs::read_to_string(&args.scenario)
        .map_err(|error| Failure::Usage(format!("cannot read {name}: {error}")))?;
    let mut scenario =
        Scenario::from_toml(&text).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    prepare(args.svg.as_deref())?;
    let reports: Vec<_> = scenario.algorithms.iter().map(|algorithm| play(&scenario, algorithm)).collect();
    show(&scenario.title, "", &reports, args.svg.as_deref())
}

/// Checks that a chart can be written before the simulation, which may take minutes.
pub(crate) fn prepare(svg: Option<&Path>) -> Result<(), Failure> {
    match svg {
        Some(path) => match OpenOptions::new().create(true).append(true).open(path) {
            Ok(_) => Ok(()),
            Err(error) => Err(cannot_write(path, &error)),
        },
        None => Ok(()),
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::Failed(format!("cannot write {}: {error}", path.display()))
}

/// Prints reports after the lines of `facts`, and draws them if requested.
pub(crate) fn show(title: &str, facts: &str, reports: &[Report], svg: Option<&Path>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{title}\n{facts}")?;
    out.write_all(table(reports).as_bytes())?;
    match svg {
        Some(path) => fs::write(path, chart(title, reports)).map_err(|error| cannot_write(path, &error)),
        None => Ok(()),
    }
}
