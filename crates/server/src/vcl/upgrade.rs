//! `vcl upgrade`.

use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use sandarac_vcl::{Limits, OldVersion, Parsed, Upgrade, UpgradeOptions, parse, render};

use crate::cli::VclUpgradeArgs;
use crate::failure::Failure;
use crate::human;
use crate::stderr::print_line;
use crate::vcl::include_files::IncludeFiles;

/// The exit status if a person has to decide about something.
const DECISIONS_LEFT: u8 = 4;

/// `vcl upgrade`.
pub(super) fn upgrade(args: &VclUpgradeArgs) -> Result<ExitCode, Failure> {
    let name = args.file.display().to_string();
    let text =
        fs::read(&args.file).map_err(|error| Failure::Failed(format!("cannot read {name}: {error}")))?;
    let mut loader = IncludeFiles::new(&args.file, &args.path);
    let parsed = parse(&name, Arc::from(text), &mut loader, Limits::default());
    let options = UpgradeOptions { version: args.from.map(OldVersion::from) };
    let upgraded = sandarac_vcl::upgrade(&parsed, options).map_err(|refusal| {
        let mistakes = parsed.diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
        mistakes.for_each(|mistake| print_line(render(&parsed.sources, mistake)));
        Failure::Failed(format!("{name}: {refusal}"))
    })?;
    match (args.diff, args.in_place) {
        (true, _) => print_diff(&parsed, &upgraded)?,
        (false, true) => write_files(&parsed, &upgraded)?,
        (false, false) => {
            let (_, text) = upgraded.files().next().unwrap_or_else(|| unreachable!("a program has a file"));
            io::stdout().write_all(text)?;
        }
    }
    print_line(upgraded.list(&parsed.sources).trim_end());
    let others: Vec<_> = changed_files(&parsed, &upgraded).into_iter().filter(|path| *path != name).collect();
    if !args.diff && !args.in_place && !others.is_empty() {
        print_line(format_args!(
            "note: --in-place writes included files, which change too: {}",
            others.join(", ")
        ));
    }
    let left: usize = upgraded.files().map(|(_, text)| sandarac_vcl::upgrade::decisions_left(text)).sum();
    if left > 0 {
        let decisions = human::count(left as u64, "decision");
        print_line(format_args!("{decisions} left, each marked by a comment `# DECISION`"));
        return Ok(ExitCode::from(DECISIONS_LEFT));
    }
    Ok(ExitCode::SUCCESS)
}

/// The names of the files whose text changes.
fn changed_files(parsed: &Parsed, upgraded: &Upgrade) -> Vec<String> {
    let changed = upgraded.files().filter(|(id, text)| **parsed.sources.file(*id).text() != **text);
    changed.map(|(id, _)| parsed.sources.file(id).name().to_owned()).collect()
}

fn print_diff(parsed: &Parsed, upgraded: &Upgrade) -> Result<(), Failure> {
    for (id, _) in upgraded.files() {
        io::stdout().write_all(upgraded.diff(&parsed.sources, id).as_bytes())?;
    }
    Ok(())
}

fn write_files(parsed: &Parsed, upgraded: &Upgrade) -> Result<(), Failure> {
    for (id, text) in upgraded.files() {
        let file = parsed.sources.file(id);
        if **file.text() != *text {
            let name = file.name();
            fs::write(name, text)
                .map_err(|error| Failure::Failed(format!("cannot write {name}: {error}")))?;
        }
    }
    Ok(())
}
