//! The subcommand `vcl`.

mod include_files;
mod upgrade;

use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use sandarac_vcl::check::{BasicPatterns, check};
use sandarac_vcl::{Diagnostic, Limits, parse, render, to_json};
use serde_json::json;

use crate::cli::{VclCheckArgs, VclCommand};
use crate::failure::Failure;
use crate::human::count;
use include_files::IncludeFiles;

/// The exit status of a program without errors that has warnings, with `--strict`.
const WARNINGS: u8 = 3;

/// `vcl`.
pub fn vcl(command: &VclCommand) -> Result<ExitCode, Failure> {
    match command {
        VclCommand::Check(args) => vcl_check(args),
        VclCommand::Upgrade(args) => upgrade::upgrade(args),
    }
}

/// `vcl check`.
fn vcl_check(args: &VclCheckArgs) -> Result<ExitCode, Failure> {
    let name = args.file.display().to_string();
    let text =
        fs::read(&args.file).map_err(|error| Failure::Usage(format!("cannot read {name}: {error}")))?;
    let mut loader = IncludeFiles::new(&args.file, &args.path);
    let parsed = parse(&name, Arc::from(text), &mut loader, Limits::default());
    let diagnostics = check(&parsed, &BasicPatterns);
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let warnings = diagnostics.len() - errors;
    let mut out = io::stdout().lock();
    if args.json {
        let list: Vec<_> = diagnostics.iter().map(|found| to_json(&parsed.sources, found)).collect();
        let report = json!({ "file": name, "errors": errors, "warnings": warnings, "diagnostics": list });
        serde_json::to_writer(&mut out, &report).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        let show = |diagnostic: &Diagnostic| render(&parsed.sources, diagnostic);
        out.write_all(diagnostics.iter().map(show).collect::<Vec<_>>().join("\n").as_bytes())?;
        let gap = if diagnostics.is_empty() { "" } else { "\n" };
        writeln!(out, "{gap}{name}: {}", summary(errors, warnings))?;
    }
    Ok(match (errors, warnings) {
        (1.., _) => ExitCode::FAILURE,
        (0, 1..) if args.strict => ExitCode::from(WARNINGS),
        _ => ExitCode::SUCCESS,
    })
}

fn summary(errors: usize, warnings: usize) -> String {
    match (errors, warnings) {
        (0, 0) => "valid".to_owned(),
        (0, _) => format!("valid, {}", count(warnings as u64, "warning")),
        (_, 0) => count(errors as u64, "error"),
        _ => format!("{}, {}", count(errors as u64, "error"), count(warnings as u64, "warning")),
    }
}
