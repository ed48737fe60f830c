//! The corpus of old files, each with a good result.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sandarac_vcl::tree::{Block, DeclarationKind, Statement, StatementKind};
use sandarac_vcl::{OldVersion, Parsed};

use crate::form::{declaration, expression, statement};
use crate::{new_text, read, upgraded};

/// Files whose new text differs from the expected one and is as good, with the difference.
const EQUALLY_GOOD: &[(&str, &str)] = &[("wiki", "`vcl_purge` is written; it answers as the built-in one")];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vcl/old")
}

/// The names of the old files.
fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("the corpus");
    let files = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    let mut names: Vec<String> =
        files.filter_map(|name| Some(name.strip_suffix(".expected.vcl")?.to_owned())).collect();
    names.sort();
    assert_eq!(names.len(), 62);
    names
}

fn old(name: &str) -> (String, Option<OldVersion>) {
    let text = fs::read_to_string(folder().join(format!("{name}.vcl"))).expect("an old file");
    let version = match text.lines().next() {
        Some("# vcl 2") => OldVersion::V2,
        Some("# vcl 3") => OldVersion::V3,
        other => panic!("{name}: {other:?} is no version"),
    };
    (text, Some(version))
}

fn expected(name: &str) -> String {
    fs::read_to_string(folder().join(format!("{name}.expected.vcl"))).expect("an expected file")
}

#[test]
fn each_file_becomes_a_program_without_errors() {
    for name in names() {
        let (text, version) = old(&name);
        let (_, upgraded) = upgraded(&text, version);
        let new = read(&new_text(&upgraded));
        assert_eq!(new.diagnostics, [], "{name}");
        assert_eq!(sandarac_vcl::upgrade::decisions_left(new_text(&upgraded).as_bytes()) > 0, {
            upgraded.decisions().count() > 0
        });
    }
}

#[test]
fn a_second_upgrade_changes_nothing() {
    for name in names() {
        let (text, version) = old(&name);
        let first = new_text(&upgraded(&text, version).1);
        let (_, second) = upgraded(&first, None);
        assert_eq!(new_text(&second), first, "{name}");
        assert!(second.changes.is_empty(), "{name}");
    }
}

#[test]
fn decisions_are_left_only_where_the_corpus_has_them() {
    let mut decided = Vec::new();
    for name in names() {
        let (text, version) = old(&name);
        let (_, upgraded) = upgraded(&text, version);
        let has = upgraded.decisions().count() > 0;
        let wants = expected(&name).starts_with("# decision: ");
        assert!(wants || !has, "{name}: {:?}", upgraded.decisions().next());
        if wants && !has {
            decided.push(name);
        }
    }
    // Each process has the storage `Transient`.
    assert_eq!(decided, ["storage-by-type"]);
}

#[test]
fn files_without_decisions_mean_what_is_expected() {
    let mut different = BTreeMap::new();
    for name in names() {
        let (text, version) = old(&name);
        let (_, upgraded) = upgraded(&text, version);
        let wanted = expected(&name);
        if upgraded.decisions().count() > 0 {
            continue;
        }
        let (found, wanted) = (meaning(&read(&new_text(&upgraded))), meaning(&read(&wanted)));
        if found != wanted {
            let missing: Vec<_> = wanted.difference(&found).collect();
            let added: Vec<_> = found.difference(&wanted).collect();
            different.insert(name, format!("expected: {missing:#?}\nfound: {added:#?}"));
        }
    }
    for (name, _) in EQUALLY_GOOD {
        assert!(different.remove(*name).is_some(), "{name} is as expected");
    }
    let shown: Vec<String> = different.iter().map(|(name, text)| format!("{name}: {text}")).collect();
    assert!(different.is_empty(), "{}", shown.join("\n"));
}

/// The declarations in written form, with the subs of one name as one, and assignments in no order.
fn meaning(parsed: &Parsed) -> BTreeSet<String> {
    let mut meaning = BTreeSet::new();
    let mut subs: BTreeMap<&str, Vec<Statement>> = BTreeMap::new();
    for found in &parsed.program.declarations {
        match &found.kind {
            DeclarationKind::Sub(sub) => {
                subs.entry(&sub.name.text).or_default().extend(sub.block.statements.iter().cloned());
            }
            kind => drop(meaning.insert(declaration(parsed, kind))),
        }
    }
    for (name, list) in subs {
        meaning.insert(format!("sub {name} {}", statements(parsed, &list)));
    }
    meaning
}

fn block(parsed: &Parsed, block: &Block) -> String {
    statements(parsed, &block.statements)
}

fn statements(parsed: &Parsed, list: &[Statement]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut run: Vec<String> = Vec::new();
    for found in list {
        let is_plain =
            matches!(found.kind, StatementKind::Set(_) | StatementKind::New(_) | StatementKind::Function(_));
        if !is_plain {
            run.sort();
            parts.append(&mut run);
        }
        match &found.kind {
            StatementKind::If { branches, otherwise } => {
                for branch in branches {
                    let condition = expression(parsed, &branch.condition);
                    parts.push(format!("if {condition} {}", block(parsed, &branch.block)));
                }
                let last = otherwise.as_ref().map(|last| format!("else {}", block(parsed, &last.block)));
                parts.extend(last);
            }
            _ if is_plain => run.push(statement(parsed, found)),
            _ => parts.push(statement(parsed, found)),
        }
    }
    run.sort();
    parts.append(&mut run);
    format!("{{ {} }}", parts.join("; "))
}
