//! The files of `tests/vcl` against the checker.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandarac_vcl::check::{BasicPatterns, check};
use sandarac_vcl::{
    Diagnostic, IncludeRequest, Limits, LoadError, LoadedFile, Loader, Parsed, parse, render,
};

/// A reader of included files: `./` is relative to the including file, other paths to a folder.
struct Folder(PathBuf);

impl Loader for Folder {
    fn load(&mut self, request: IncludeRequest<'_>) -> Result<Vec<LoadedFile>, LoadError> {
        let path = match request.path.strip_prefix("./") {
            Some(rest) => Path::new(request.from).parent().expect("a folder").join(rest),
            None => self.0.join(request.path),
        };
        let paths = match request.is_pattern {
            true => {
                let folder = path.parent().expect("a folder");
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                let (before, after) = name.split_once('*').expect("a pattern");
                let mut paths = files(folder);
                paths.retain(|path| {
                    let name = path.file_name().expect("a name").to_string_lossy();
                    name.starts_with(before) && name.ends_with(after)
                });
                paths
            }
            false => vec![path],
        };
        let load = |path: PathBuf| {
            let text = fs::read(&path).map_err(|_| LoadError::NotFound)?;
            Ok(LoadedFile { name: path.to_string_lossy().into_owned(), text: Arc::from(text) })
        };
        let loaded: Vec<LoadedFile> = paths.into_iter().map(load).collect::<Result<_, _>>()?;
        if loaded.is_empty() { Err(LoadError::NoMatch) } else { Ok(loaded) }
    }
}

fn corpus(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vcl").join(folder)
}

/// The files of a folder in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the corpus");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
}

fn checked(path: &Path) -> (Parsed, Vec<Diagnostic>) {
    let text = fs::read(path).expect("a file of the corpus");
    let mut loader = Folder(corpus("valid"));
    let parsed = parse(&path.to_string_lossy(), Arc::from(text), &mut loader, Limits::default());
    let diagnostics = check(&parsed, &BasicPatterns);
    (parsed, diagnostics)
}

fn name(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

/// The line, from 1, that has `mark`.
fn marked_line(text: &str, mark: &str) -> Option<usize> {
    text.lines().position(|line| line.contains(mark)).map(|at| at + 1)
}

#[test]
fn valid_files_have_no_error() {
    let mut count = 0;
    let mut failed = Vec::new();
    for path in files(&corpus("valid")).into_iter().chain(files(&corpus("newer"))) {
        count += 1;
        let (parsed, diagnostics) = checked(&path);
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
        failed.extend(errors.map(|error| render(&parsed.sources, error)));
    }
    assert!(count >= 140, "only {count} files were found");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Files whose error is not at the marked line, or that have none, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[];

#[test]
fn refused_files_have_an_error_at_the_marked_line() {
    let mut count = 0;
    let mut failed = Vec::new();
    let classes = fs::read_dir(corpus("refused")).expect("the classes");
    let mut classes: Vec<PathBuf> = classes.map(|entry| entry.expect("an entry").path()).collect();
    classes.sort();
    for path in classes.iter().flat_map(|class| files(class)) {
        count += 1;
        let text = fs::read_to_string(&path).expect("text");
        let line = marked_line(&text, "# <- refused").expect("a marked line");
        let (parsed, diagnostics) = checked(&path);
        let lines: Vec<usize> = diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.is_error())
            .map(|error| parsed.sources.position(error.span).line)
            .collect();
        let is_right = lines.contains(&line);
        let is_exception = EXCEPTIONS.iter().any(|(exception, _)| *exception == name(&path));
        if is_right == is_exception || lines.len() > 1 {
            let rendered: String = diagnostics.iter().map(|error| render(&parsed.sources, error)).collect();
            failed.push(format!("{}: errors at {lines:?}, expected at {line}\n{rendered}", path.display()));
        }
    }
    assert!(count >= 200, "only {count} files were found");
    assert!(failed.is_empty(), "{} failed\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn mistakes_of_people_are_found_at_their_lines_with_their_mends() {
    let mut wrong: BTreeMap<String, String> = BTreeMap::new();
    let (mut count, mut lines, mut mends) = (0, 0, 0);
    for path in files(&corpus("mistakes")) {
        count += 1;
        let text = fs::read_to_string(&path).expect("text");
        let header = text.lines().find_map(|line| line.strip_prefix("# line: "));
        let line = header
            .and_then(|line| line.trim().parse().ok())
            .or_else(|| marked_line(&text, "# <- LINE"))
            .expect("a marked line");
        let mend = text.lines().find_map(|line| line.strip_prefix("# mend: ")).map(str::trim);
        let (parsed, diagnostics) = checked(&path);
        let is_there = |diagnostic: &&Diagnostic| parsed.sources.position(diagnostic.span).line == line;
        let there: String =
            diagnostics.iter().filter(is_there).map(|found| render(&parsed.sources, found)).collect();
        let is_line_right = !there.is_empty();
        // The message itself, without the line of the program that it shows.
        let names_mend = diagnostics.iter().filter(is_there).any(|found| {
            let mend_text = found.mend.as_ref().map(|mend| mend.text.clone()).unwrap_or_default();
            let words = [vec![found.message.clone(), mend_text], found.notes.clone()].concat().join("\n");
            mend.is_none_or(|mend| words.contains(mend))
        });
        lines += usize::from(is_line_right);
        mends += usize::from(names_mend);
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
        let rendered: String = diagnostics.iter().map(|found| render(&parsed.sources, found)).collect();
        assert!(errors <= 2, "{}: {errors} errors\n{rendered}", path.display());
        if !is_line_right || !names_mend || errors > 1 {
            wrong.insert(name(&path), format!("line {line}, mend {mend:?}, {errors} errors\n{rendered}"));
        }
    }
    let list: String = wrong.iter().map(|(name, why)| format!("{name}: {why}\n")).collect();
    println!("{lines} of {count} lines, {mends} of {count} mends\n{list}");
    assert!(count >= 60, "only {count} files were found");
    assert!(lines >= 58, "only {lines} of {count} at the right line\n{list}");
    assert!(mends >= 45, "only {mends} of {count} with the right mend\n{list}");
}
