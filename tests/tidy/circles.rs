//! Circles among the files of a crate: none, so that each file can be read with only those in mind that it
//! builds on.
//!
//! A file uses another where one of its `use` lines leads there. An item that is re-exported counts as the
//! file's that defines it, and the re-export itself is no use. Tests do not count, nor do `mod` lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::slice;

use super::{files, root};

/// The crates whose files form no circle.
const WITHOUT_CIRCLES: [&str; 16] = [
    "message", "coding", "balance", "wire", "cache", "tier", "policy", "config", "net", "tls", "acme",
    "discover", "proxy", "lab", "server", "vcl",
];

/// A file of a crate.
struct File {
    /// Its path below `src`.
    name: String,
    text: String,
    imports: Vec<Import>,
}

/// A name that a `use` line brings into a file.
struct Import {
    /// The path as it is written.
    path: Vec<String>,
    /// The name in this file.
    name: String,
    is_reexport: bool,
}

/// The files of a crate, each by the path of its module.
type Files = BTreeMap<Vec<String>, File>;

/// For each file, the files it uses, and of each the first item.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

#[test]
fn files_of_a_crate_do_not_use_each_other_in_circles() {
    let mut found = Vec::new();
    for name in WITHOUT_CIRCLES {
        let uses = uses(&parse(sources(&root().join("crates").join(name).join("src"))));
        assert!(uses.values().any(|used| !used.is_empty()), "no file of {name} uses another");
        found.extend(circles(&uses).into_iter().map(|circle| format!("{name}: {circle}")));
    }
    assert!(found.is_empty(), "circles among files:\n{}", found.join("\n"));
}

/// The files below a directory but for tests, each with its text.
fn sources(directory: &Path) -> Vec<(String, String)> {
    let mut paths = Vec::new();
    files(directory, "rs", &mut paths);
    let mut sources = Vec::new();
    for path in paths {
        let name = path.strip_prefix(directory).expect("a path below the directory").display().to_string();
        let is_test = |part: &str| part == "tests" || part.ends_with("_tests");
        if !name.trim_end_matches(".rs").split('/').any(is_test) {
            sources.push((name, fs::read_to_string(&path).expect("a source file")));
        }
    }
    sources
}

fn parse(sources: Vec<(String, String)>) -> Files {
    let mut files = Files::new();
    for (name, text) in sources {
        let mut module: Vec<String> = name.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        if module.last().is_some_and(|last| last == "mod" || last == "lib") {
            module.pop();
        }
        let imports = imports(&text);
        files.insert(module, File { name, text, imports });
    }
    files
}

impl File {
    /// Whether an item of this name is defined at the start of a line.
    fn defines(&self, item: &str) -> bool {
        const KINDS: [&str; 7] = ["struct", "enum", "trait", "fn", "const", "static", "type"];
        self.text.lines().filter(|line| !line.starts_with(' ')).any(|line| {
            let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            words.any(|word| KINDS.contains(&word)) && words.next() == Some(item)
        })
    }
}

/// What the `use` lines bring in that stand at the start of a line, as rustfmt leaves those outside of
/// functions and of modules within a file.
fn imports(text: &str) -> Vec<Import> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    let mut is_for_tests = false;
    while let Some(line) = lines.next() {
        let words = line.split_once("use ").filter(|(before, _)| {
            before.is_empty() || *before == "pub " || (before.starts_with("pub(") && before.ends_with(") "))
        });
        if let Some((visibility, first)) = words {
            let mut tree = first.to_owned();
            while !tree.ends_with(';') {
                tree.push_str(lines.next().expect("the end of the use line").trim());
            }
            if !is_for_tests {
                expand(&[], tree.trim_end_matches(';'), !visibility.is_empty(), &mut found);
            }
        }
        is_for_tests = line == "#[cfg(test)]";
    }
    found
}

/// The single names of a tree such as `a::{b, c::d as e}` below a path.
fn expand(below: &[String], tree: &str, is_reexport: bool, found: &mut Vec<Import>) {
    let join = |path: &str| -> Vec<String> {
        let parts = path.split("::").filter(|part| !part.is_empty());
        below.iter().cloned().chain(parts.map(str::to_owned)).collect()
    };
    if let Some((path, group)) = tree.split_once('{') {
        let path = join(path);
        let mut depth = 0;
        let branches = group.strip_suffix('}').expect("the end of a group").split(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        });
        for branch in branches.map(str::trim).filter(|branch| !branch.is_empty()) {
            expand(&path, branch, is_reexport, found);
        }
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias)));
    let mut path = join(path);
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = alias.or(path.last().map(String::as_str)).unwrap_or_default().to_owned();
    found.push(Import { path, name, is_reexport });
}

/// The file that defines what a path leads to from a module, and the item. `None` where that is outside the
/// crate.
fn defining<'f>(files: &'f Files, from: &[String], path: &[String]) -> Option<(&'f File, String)> {
    let (first, mut rest) = path.split_first()?;
    let mut module = from.to_vec();
    match first.as_str() {
        "crate" => module.clear(),
        "self" => {}
        "super" => _ = module.pop(),
        child => {
            module.push(child.to_owned());
            files.get(&module)?;
        }
    }
    while let Some((part, after)) = rest.split_first() {
        rest = after;
        if part == "super" {
            module.pop();
            continue;
        }
        let file = files.get(&module)?;
        module.push(part.clone());
        if !files.contains_key(&module) {
            module.pop();
            if part == "*" || file.defines(part) {
                return Some((file, part.clone()));
            }
            let elsewhere = file.imports.iter().find_map(|import| {
                let path = match import.path.split_last()? {
                    (last, path) if last == "*" => [path, slice::from_ref(part)].concat(),
                    _ if import.name == *part => import.path.clone(),
                    _ => return None,
                };
                let (defines, item) = defining(files, &module, &[&path[..], after].concat())?;
                (import.name != "*" || defines.defines(&item)).then_some((defines, item))
            });
            return Some(elsewhere.unwrap_or_else(|| (file, part.clone())));
        }
    }
    Some((files.get(&module)?, module.last()?.clone()))
}

fn uses(files: &Files) -> Uses {
    let mut uses = Uses::new();
    for (module, file) in files {
        let used = uses.entry(file.name.clone()).or_default();
        for import in file.imports.iter().filter(|import| !import.is_reexport) {
            if let Some((other, item)) = defining(files, module, &import.path)
                && other.name != file.name
            {
                used.entry(other.name.clone()).or_insert(item);
            }
        }
    }
    uses
}

/// The circles, as texts. Of those that share a file, one.
fn circles(uses: &Uses) -> Vec<String> {
    let mut found = Vec::new();
    let mut reported: Vec<&str> = Vec::new();
    for file in uses.keys() {
        if let Some(circle) = circle(uses, file)
            && !circle.iter().any(|file| reported.contains(file))
        {
            found.push(describe(uses, &circle));
            reported.extend(circle);
        }
    }
    found
}

/// The shortest way from a file back to itself.
fn circle<'u>(uses: &'u Uses, start: &'u str) -> Option<Vec<&'u str>> {
    let mut ways = vec![vec![start]];
    let mut seen = Vec::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            for next in uses[way[way.len() - 1]].keys() {
                let way: Vec<&str> = way.iter().copied().chain([next.as_str()]).collect();
                if next == start {
                    return Some(way);
                }
                if !seen.contains(&next) {
                    seen.push(next);
                    longer.push(way);
                }
            }
        }
        ways = longer;
    }
    None
}

/// A circle, each file with the item that the one before uses of it.
fn describe(uses: &Uses, circle: &[&str]) -> String {
    let mut text = circle[0].to_owned();
    for pair in circle.windows(2) {
        _ = write!(text, " -> {} ({})", pair[1], uses[pair[0]][pair[1]]);
    }
    text
}

fn circles_of(sources: &[(&str, &str)]) -> Vec<String> {
    let sources = sources.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
    circles(&uses(&parse(sources)))
}

#[test]
fn a_circle_is_named_with_the_items_that_make_it() {
    let found = circles_of(&[
        ("lib.rs", "mod body;\nmod object;\npub use object::Object;\n"),
        ("object.rs", "use crate::body::{\n    Body, Segment as Piece,\n};\n"),
        ("body.rs", "use std::fmt;\n\nuse crate::{Key, Object};\n"),
    ]);
    assert_eq!(found, ["body.rs -> object.rs (Object) -> body.rs (Body)"]);
}

#[test]
fn a_circle_may_go_through_a_folder() {
    let found = circles_of(&[
        ("lib.rs", ""),
        ("pool/mod.rs", "mod pick;\nuse pick::Pick;\n"),
        ("pool/pick.rs", "use super::queue::Queue;\n"),
        ("pool/queue.rs", "use super::super::pool::Pool;\n"),
    ]);
    assert_eq!(found, ["pool/mod.rs -> pool/pick.rs (Pick) -> pool/queue.rs (Queue) -> pool/mod.rs (Pool)"]);
}

#[test]
fn tests_and_reexports_make_no_circle() {
    let found = circles_of(&[
        ("lib.rs", "mod object;\npub(crate) use object::Object;\npub use reader::*;\npub struct Key;\n"),
        (
            "object.rs",
            "use crate::Key;\n#[cfg(test)]\nuse crate::reader::Reader;\n\nmod tests {\n    use crate::reader;\n}\n",
        ),
        ("reader.rs", "use crate::Object;\n\npub struct Reader;\n"),
        ("stream.rs", "use crate::Reader;\n"),
    ]);
    assert_eq!(found, [""; 0]);
}
