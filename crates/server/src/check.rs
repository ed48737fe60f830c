//! Reading configuration files, and the subcommands `check` and `config`.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use sandarac_config::{AdminToken, Config, Flags, Warning};

use crate::cli::{self, CheckArgs, ConfigArgs, RunArgs};
use crate::failure::Failure;
use crate::stderr::say;

/// Reads the file at `path`; the admin token may come from elsewhere.
pub fn load(path: &Path, token: Option<AdminToken>) -> Result<(Config, Vec<Warning>), Failure> {
    load_with(path, &Flags { token, ..Flags::default() })
}

/// Reads the file at `path`, with `flags` over it.
pub(crate) fn load_with(path: &Path, flags: &Flags) -> Result<(Config, Vec<Warning>), Failure> {
    let name = path.display().to_string();
    let bytes = fs::read(path).map_err(|error| Failure::Usage(format!("cannot read {name}: {error}")))?;
    Config::from_bytes_and_flags(&name, &bytes, flags).map_err(Failure::Configuration)
}

/// The configuration that the command line asks for.
pub fn effective(args: &RunArgs) -> Result<(Config, Vec<Warning>), Failure> {
    let (mut config, warnings) = match &args.config {
        Some(path) => load_with(path, &args.flags()?)?,
        None => Config::from_flags(&args.flags()?).map_err(Failure::Configuration)?,
    };
    args.apply(&mut config);
    Ok((config, warnings))
}

/// `check`.
pub fn check(args: &CheckArgs) -> Result<(), Failure> {
    let (config, warnings) = load(&args.config, cli::token("", None)?)?;
    for warning in &warnings {
        say(warning);
    }
    check_tables(&config)?;
    if !args.quiet {
        let mut out = io::stdout().lock();
        out.write_all(sandarac_config::explain(&config).as_bytes())?;
    }
    Ok(())
}

/// Reads the tables of classes. The running process does without one that is not there yet.
fn check_tables(config: &Config) -> Result<(), Failure> {
    for classifier in config.pools.iter().filter_map(|pool| pool.classifier.as_ref()) {
        let Some(path) = classifier.table_path() else { continue };
        match fs::read(path) {
            Ok(text) => {
                classifier.with_table(&text).map_err(|error| Failure::Usage(error.to_string()))?;
            }
            Err(error) => say(format_args!(
                "warning: no request has a class yet: cannot read {}: {error}",
                path.display()
            )),
        }
    }
    Ok(())
}

/// `config`.
pub fn config(args: &ConfigArgs) -> Result<(), Failure> {
    let text = if args.schema {
        sandarac_config::schema()
    } else if args.manual {
        sandarac_config::manual()
    } else {
        sandarac_config::defaults()
    };
    writeln!(io::stdout(), "{}", text.trim_end())?;
    Ok(())
}
