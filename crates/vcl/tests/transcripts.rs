//! Programs and the exact diagnostics about them, side by side: those of the parser in `tests/transcripts`,
//! those of parser and checker in `tests/checked`.
//!
//! A file holds cases. A case begins with `== NAME` and has a program; then, after `-- file NAME`, the text
//! of a file that it includes; then, after `--`, the diagnostics. `SANDARAC_BLESS=1` writes the diagnostics
//! anew.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandarac_vcl::check::{BasicPatterns, check};
use sandarac_vcl::{
    Diagnostic, Edit, IncludeRequest, Limits, LoadError, LoadedFile, Loader, Parsed, Span, apply_edits,
    parse, render,
};

/// A case of a transcript.
struct Case {
    name: String,
    program: String,
    files: Vec<(String, String)>,
    expected: String,
}

/// The files of a case. A pattern matches the files whose names begin with what is before its `*`.
struct Files<'c>(&'c [(String, String)]);

impl Loader for Files<'_> {
    fn load(&mut self, request: IncludeRequest<'_>) -> Result<Vec<LoadedFile>, LoadError> {
        let prefix = request.path.split('*').next().unwrap_or_default();
        let matches = |name: &str| match request.is_pattern {
            true => name.starts_with(prefix),
            false => name == request.path,
        };
        let found: Vec<LoadedFile> = self
            .0
            .iter()
            .filter(|(name, _)| matches(name))
            .map(|(name, text)| LoadedFile { name: name.clone(), text: Arc::from(text.as_bytes()) })
            .collect();
        match (found.is_empty(), request.is_pattern) {
            (false, _) => Ok(found),
            (true, true) => Err(LoadError::NoMatch),
            (true, false) => Err(LoadError::NotFound),
        }
    }
}

#[test]
fn each_program_has_exactly_its_diagnostics() {
    let bless = std::env::var_os("SANDARAC_BLESS").is_some();
    let mut count = 0;
    for path in transcripts() {
        let cases = cases(&fs::read_to_string(&path).expect("a transcript"));
        let mut written = String::new();
        for case in &cases {
            count += 1;
            let found = diagnostics(&read(&path, case, &case.program));
            assert!(bless || found == case.expected, "{}: {}\n{found}", path.display(), case.name);
            write!(written, "== {}\n{}", case.name, case.program).expect("a string");
            for (name, text) in &case.files {
                write!(written, "-- file {name}\n{text}").expect("a string");
            }
            write!(written, "--\n{found}\n").expect("a string");
        }
        if bless {
            fs::write(&path, written).expect("the transcript is written");
        }
    }
    assert!(count > 50, "only {count} cases were found");
}

#[test]
fn the_edits_of_all_mends_together_make_a_program_without_errors() {
    for path in transcripts() {
        for case in cases(&fs::read_to_string(&path).expect("a transcript")) {
            let parsed = read(&path, &case, &case.program);
            let has_edits =
                |diagnostic: &Diagnostic| diagnostic.mend.as_ref().is_some_and(|mend| !mend.edits.is_empty());
            // The edits are applied to the main file only.
            let is_other = !case.files.is_empty();
            if is_other || !parsed.has_errors() || !parsed.diagnostics.iter().all(has_edits) {
                continue;
            }
            let mended = mended(&case.program, &parsed);
            let again = read(&path, &case, &mended);
            assert!(
                !again.has_errors(),
                "{}: {}\n{mended}\n{}",
                path.display(),
                case.name,
                diagnostics(&again)
            );
        }
    }
}

#[test]
fn spans_of_diagnostics_lie_within_their_files() {
    for path in transcripts() {
        for case in cases(&fs::read_to_string(&path).expect("a transcript")) {
            let parsed = read(&path, &case, &case.program);
            let is_within = |span: Span| span.end as usize <= parsed.sources.file(span.file).text().len();
            for diagnostic in &parsed.diagnostics {
                let related = diagnostic.related.iter().map(|related| related.span);
                let edits = diagnostic.mend.iter().flat_map(|mend| mend.edits.iter().map(|edit| edit.span));
                let mut spans = std::iter::once(diagnostic.span).chain(related).chain(edits);
                assert!(spans.all(is_within), "{}: {diagnostic:?}", case.name);
            }
        }
    }
}

/// The program of a case of the transcript at `path`, with the diagnostics of the checker if it has those.
fn read(path: &Path, case: &Case, program: &str) -> Parsed {
    let text = Arc::from(program.as_bytes());
    let mut parsed = parse("main.vcl", text, &mut Files(&case.files), Limits::default());
    if path.parent().is_some_and(|folder| folder.ends_with("checked")) {
        parsed.diagnostics = check(&parsed, &BasicPatterns);
    }
    parsed
}

fn diagnostics(parsed: &Parsed) -> String {
    parsed.diagnostics.iter().map(|diagnostic| render(&parsed.sources, diagnostic)).collect()
}

/// The program with the edits of all diagnostics.
fn mended(program: &str, parsed: &Parsed) -> String {
    let mends = parsed.diagnostics.iter().filter_map(|diagnostic| diagnostic.mend.clone());
    let mut edits: Vec<Edit> = mends.flat_map(|mend| mend.edits).collect();
    // Of two insertions at one place, a `;` comes before the `}` of the block around it.
    edits.sort_by_key(|edit| edit.text.len());
    let text = apply_edits(program.as_bytes(), &edits).expect("edits that do not overlap");
    String::from_utf8(text).expect("text")
}

fn transcripts() -> Vec<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let entries = |name: &str| fs::read_dir(tests.join(name)).expect("the transcripts");
    let entries = entries("transcripts").chain(entries("checked"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn cases(text: &str) -> Vec<Case> {
    /// The part of a case that the next lines belong to.
    enum Part {
        Program,
        File,
        Expected,
    }
    let mut cases: Vec<Case> = Vec::new();
    let mut part = Part::Program;
    for line in text.split_inclusive('\n') {
        if let Some(name) = line.strip_prefix("== ") {
            let name = name.trim_end().to_owned();
            let (program, files, expected) = (String::new(), Vec::new(), String::new());
            cases.push(Case { name, program, files, expected });
            part = Part::Program;
            continue;
        }
        let case = cases.last_mut().expect("a transcript begins with a case");
        if let Some(name) = line.strip_prefix("-- file ") {
            case.files.push((name.trim_end().to_owned(), String::new()));
            part = Part::File;
        } else if line == "--\n" {
            part = Part::Expected;
        } else {
            match part {
                Part::Program => case.program.push_str(line),
                Part::File => case.files.last_mut().expect("a file").1.push_str(line),
                Part::Expected => case.expected.push_str(line),
            }
        }
    }
    for case in &mut cases {
        // One empty line stands between a case and the next.
        if case.expected.ends_with("\n\n") || case.expected == "\n" {
            case.expected.pop();
        }
    }
    cases
}
