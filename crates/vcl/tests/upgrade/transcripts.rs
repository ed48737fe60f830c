//! Old programs with their new text and the list of what changes, side by side in `transcripts.txt`.
//!
//! A case begins with `== NAME` and has a program; then, after `-- file NAME`, the text of a file that it
//! includes; then, after `-- new`, the new texts, and after `-- list` the list. `SANDARAC_BLESS=1` writes
//! both anew.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use sandarac_vcl::{IncludeRequest, Limits, LoadError, LoadedFile, Loader, UpgradeOptions, parse, upgrade};

struct Case {
    name: String,
    program: String,
    files: Vec<(String, String)>,
    results: String,
}

struct Files<'c>(&'c [(String, String)]);

impl Loader for Files<'_> {
    fn load(&mut self, request: IncludeRequest<'_>) -> Result<Vec<LoadedFile>, LoadError> {
        let found = self.0.iter().find(|(name, _)| name == request.path);
        let (name, text) = found.ok_or(LoadError::NotFound)?;
        Ok(vec![LoadedFile { name: name.clone(), text: Arc::from(text.as_bytes()) }])
    }
}

#[test]
fn each_program_becomes_exactly_its_new_text() {
    let bless = std::env::var_os("SANDARAC_BLESS").is_some();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/upgrade/transcripts.txt");
    let text = fs::read_to_string(&path).expect("the transcripts");
    let mut written = String::new();
    for case in cases(&text) {
        let results = results(&case);
        assert!(bless || results.trim_end() == case.results, "{}:\n{results}", case.name);
        write!(written, "== {}\n{}", case.name, case.program).expect("a string");
        for (name, text) in &case.files {
            write!(written, "-- file {name}\n{text}").expect("a string");
        }
        written += &format!("{}\n\n", results.trim_end());
    }
    if bless {
        fs::write(&path, written).expect("the transcripts are written");
    }
}

fn results(case: &Case) -> String {
    let text = Arc::from(case.program.as_bytes());
    let parsed = parse("old.vcl", text, &mut Files(&case.files), Limits::default());
    match upgrade(&parsed, UpgradeOptions::default()) {
        Ok(new) => {
            let mut out = String::new();
            for (id, text) in new.files() {
                let name = parsed.sources.file(id).name();
                let of = if name == "old.vcl" { String::new() } else { format!(" {name}") };
                write!(out, "-- new{of}\n{}", String::from_utf8_lossy(text)).expect("a string");
            }
            out + "-- list\n" + &new.list(&parsed.sources) + "\n"
        }
        Err(refusal) => format!("-- new\n-- list\n{refusal}\n\n"),
    }
}

fn cases(text: &str) -> Vec<Case> {
    let text = format!("\n{text}");
    let parts = text.split("\n== ").skip(1);
    let case = |part: &str| {
        let (name, rest) = part.split_once('\n').expect("a name");
        let rest = rest.trim_end();
        let (program, results) = match rest.find("-- new") {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let mut sections = program.split("-- file ");
        let program = format!("{}\n", sections.next().unwrap_or_default().trim_end());
        let files = sections.filter_map(|section| section.split_once('\n'));
        let files = files.map(|(name, text)| (name.to_owned(), format!("{}\n", text.trim_end()))).collect();
        Case { name: name.to_owned(), program, files, results: results.to_owned() }
    };
    parts.map(case).collect()
}
