//! The subcommand `simulate`.

use std::fs;
use std::io::{self, Write};

use sandarac_lab::{Scenario, chart, simulate as play, table};

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
    let reports: Vec<_> = scenario.algorithms.iter().map(|algorithm| play(&scenario, algorithm)).collect();
    if let Some(path) = &args.svg {
        fs::write(path, chart(&scenario.title, &reports))
            .map_err(|error| Failure::Failed(format!("cannot write {}: {error}", path.display())))?;
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{}\n", scenario.title)?;
    out.write_all(table(&reports).as_bytes())?;
    Ok(())
}
